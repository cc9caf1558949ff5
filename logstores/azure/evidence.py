"""The evidence that an answer of Azure's Blob service must carry before it counts.

A 200 alone proves nothing: headers may be cut off, and a proxy sends its own pages, which an SDK
reads as a blob or as an empty listing.

| request | evidence |
|---|---|
| every one | a header that only the service sends: the id of the request, or the API's version |
| creates or reads a blob | the entity tag; for a range also its position |
| lists | the root element `EnumerationResults` |
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import parse_qs, urlsplit

import requests

from optimist.logstores.shared.whole_answers import ensure_asked_range

__all__ = ["ensure_evidence"]

_SERVICE_HEADERS: Final = ("x-ms-request-id", "x-ms-version")
_ROOT: Final = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:<\?xml[^>]*>)?\s*<EnumerationResults[\s>/]")
_WITHOUT_TAG: Final = ("block", "batch")


def ensure_evidence(request: requests.PreparedRequest, response: requests.Response) -> None:
    """Refuse a success without the needed evidence.

    Raises:
        requests.ConnectionError: The evidence is missing.
    """
    if not _has_evidence(request, response):
        raise requests.ConnectionError("the answer says too little", request=request)
    ensure_asked_range(str(request.headers.get("x-ms-range", "")), response)


def _has_evidence(request: requests.PreparedRequest, response: requests.Response) -> bool:
    if not any(response.headers.get(name) for name in _SERVICE_HEADERS):
        return False
    [asked] = parse_qs(urlsplit(request.url or "").query).get("comp", [""])
    if asked == "list":
        return _ROOT.match(response.content) is not None
    if request.method == "DELETE" or asked in _WITHOUT_TAG:
        return True
    return bool(response.headers.get("ETag"))
