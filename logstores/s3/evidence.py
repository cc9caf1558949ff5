"""The evidence that an answer of S3 must carry before it counts.

A 200 alone proves nothing. CompleteMultipartUpload sends it before the object exists, headers may
be cut off, and a proxy answers with its own pages. An SDK reads all of these as success, or as an
empty listing.

| request | evidence |
|---|---|
| creates or reads an object, sends a part | the entity tag |
| begins or completes an upload | the upload's id, the entity tag; roots have several names |
| lists, deletes many | the root element of its own answer |
| deletes, aborts an upload | the status 204 |
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from botocore.exceptions import IncompleteReadError

from optimist.core.runtime.whole_answer import is_whole

__all__ = ["UnclearAnswerError", "ensure_evidence"]

_WITH_TAG: Final = ("GetObject", "PutObject", "UploadPart")
_ROOTS: Final = {
    "DeleteObjects": b"DeleteResult",
    "ListMultipartUploads": b"ListMultipartUploadsResult",
    "ListObjectsV2": b"ListBucketResult",
}
_ELEMENTS: Final = {
    "CompleteMultipartUpload": re.compile(rb"<(?:\w+:)?ETag>\s*[^<\s]"),
    "CreateMultipartUpload": re.compile(rb"<(?:\w+:)?UploadId>\s*[^<\s]"),
}
_ROOT: Final = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:<\?xml[^>]*>)?\s*<(?:\w+:)?(\w+)")


class UnclearAnswerError(Exception):
    """An answer that looks like success but does not say what it is about."""


def ensure_evidence(operation_model: Any, response_dict: Mapping[str, Any], **_: object) -> None:
    """Refuse an answer that was cut off, or that lacks the evidence of its operation.

    It handles botocore's event `before-parse.s3`. botocore itself checks only the body of a file.

    Raises:
        IncompleteReadError: The answer was cut off.
        UnclearAnswerError: The evidence is missing.
    """
    try:
        if operation_model.http.get("method") == "GET":
            _ensure_whole(response_dict)
        if response_dict["status_code"] < 300 and not _has_evidence(operation_model, response_dict):
            raise UnclearAnswerError(operation_model.name)
    except BaseException:
        body = response_dict["body"]
        if not isinstance(body, bytes):
            body.close()
        raise


def _ensure_whole(response: Mapping[str, Any]) -> None:
    body = response["body"]
    received = len(body) if isinstance(body, bytes) else None
    if not is_whole(response["headers"], received):
        raise IncompleteReadError(actual_bytes=received or 0, expected_bytes=-1)


def _has_evidence(operation_model: Any, response: Mapping[str, Any]) -> bool:
    name = operation_model.name
    if name in _WITH_TAG:
        return bool(response["headers"].get("ETag"))
    if name in _ELEMENTS:
        return _ELEMENTS[name].search(response["body"]) is not None
    if name in _ROOTS:
        root = _ROOT.match(response["body"])
        return root is not None and root[1] == _ROOTS[name]
    expected = operation_model.http.get("responseCode")
    return expected is None or response["status_code"] == expected
