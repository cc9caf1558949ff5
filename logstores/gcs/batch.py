"""Many deletions by one request: the batch of Google's JSON API.

Body and answer are multipart messages; each part of the body is a request, each part of the answer
an answer. They belong together by their `Content-ID`, whatever their order. The SDK's own batch
sends none, and takes answers in the order in which they come.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from email.message import Message
from email.parser import BytesParser

__all__ = ["DELETIONS_A_REQUEST", "deletions", "numbers_gone"]

DELETIONS_A_REQUEST = 100
"""More parts than this are refused."""

_ID = re.compile(r"<response-.*\+(\d+)>")
_STATUS = re.compile(r"HTTP/\S+ (\d{3})\b")
_GONE = ("200", "204", "404")


def deletions(targets: Sequence[str], boundary: str) -> bytes:
    """The body of a batch that deletes objects.

    Args:
        targets: Path and query of each object's address, quoted.
        boundary: What stands between the parts.
    """
    parts = [
        f"--{boundary}\r\nContent-Type: application/http\r\nContent-ID: <{boundary}+{number}>\r\n"
        f"\r\nDELETE {target} HTTP/1.1\r\n\r\n\r\n"
        for number, target in enumerate(targets)
    ]
    return "".join((*parts, f"--{boundary}--\r\n")).encode()


def numbers_gone(content_type: str, content: bytes) -> set[int]:
    """Which deletions the answer to a batch confirms, by their number; of garbage, none.

    An object that was absent already counts as deleted.
    """
    head = f"Content-Type: {content_type}\r\n\r\n".encode("latin-1", "replace")
    gone, others = set[int](), set[int]()
    for part in BytesParser().parsebytes(head + content).walk():
        number = _ID.fullmatch((part.get("Content-ID") or "").strip())
        if number is not None:
            (gone if _status(part) in _GONE else others).add(int(number[1]))
    return gone - others


def _status(part: Message) -> str:
    payload = part.get_payload()
    status = _STATUS.match(payload) if isinstance(payload, str) else None
    return "" if status is None else status[1]
