"""What an answer of Google Cloud Storage must carry before it counts as one to its request.

A 200 alone proves nothing: a proxy sends pages, `{}` is a listing of nothing to an SDK, and a
server that ignores `Range` sends the whole object.

| request | evidence |
|---|---|
| lists, describes an object | `kind`, which Google's JSON always has |
| reads an object | its generation, or its entity tag; of a range also where it lies |
| deletes | the status 204; `null` is what fake-gcs-server says |
| creates | name, length and digest, which the store compares |
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import parse_qs, urlsplit

import requests

from optimist.logstores.shared.whole_answers import ensure_asked_range

__all__ = ["ensure_evidence"]

_OF_LISTING: Final = re.compile(rb'"kind"\s*:\s*"storage#objects"')
_OF_OBJECT: Final = re.compile(rb'"kind"\s*:\s*"storage#object"')
_VERSION: Final = ("X-Goog-Generation", "ETag")


def ensure_evidence(request: requests.PreparedRequest, response: requests.Response) -> None:
    """Refuse a success that says too little.

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
    kind = _OF_LISTING if parts.path.endswith("/o") else _OF_OBJECT
    return kind.search(response.content) is not None
