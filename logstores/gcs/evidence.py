"""The evidence that an answer of Google Cloud Storage must carry before it counts.

A 200 alone proves nothing: a proxy sends its own pages, an SDK reads `{}` as an empty listing, and
a server that ignores `Range` sends the whole object.

| request | evidence |
|---|---|
| lists, describes an object | `kind`, which Google's JSON always has |
| reads an object | its generation, or its entity tag; for a range also its position |
| deletes | the status 204, or `null` from fake-gcs-server |
| creates | name, length and digest, which the store compares |
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import parse_qs, urlsplit

import requests

from optimist.logstores.shared.whole_answers import ensure_asked_range

__all__ = ["ensure_evidence"]

_LISTING_KIND: Final = re.compile(rb'"kind"\s*:\s*"storage#objects"')
_OBJECT_KIND: Final = re.compile(rb'"kind"\s*:\s*"storage#object"')
_VERSION: Final = ("X-Goog-Generation", "ETag")


def ensure_evidence(request: requests.PreparedRequest, response: requests.Response) -> None:
    """Refuse a success without the needed evidence.

    Raises:
        requests.ConnectionError: The evidence is missing.
    """
    if not _has_evidence(request, response):
        raise requests.ConnectionError("the answer says too little", request=request)
    ensure_asked_range(str(request.headers.get("Range", "")), response)


def _has_evidence(request: requests.PreparedRequest, response: requests.Response) -> bool:
    if request.method == "DELETE":
        return response.status_code == 204 or response.content.strip() == b"null"
    if request.method != "GET":
        return True
    parts = urlsplit(request.url or "")
    if "alt=media" in parts.query and parse_qs(parts.query).get("alt") == ["media"]:
        return any(response.headers.get(name) for name in _VERSION)
    kind = _LISTING_KIND if parts.path.endswith("/o") else _OBJECT_KIND
    return kind.search(response.content) is not None
