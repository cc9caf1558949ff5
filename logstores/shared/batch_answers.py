"""The answer to many deletions in one request, of Google's service and of Azure's.

It is a multipart message, and each part is an answer. `Content-ID` says which request a part
belongs to, whatever the order of the parts.
"""

from __future__ import annotations

import re
from email.message import Message
from email.parser import BytesParser

__all__ = ["numbers_gone"]

_STATUS = re.compile(r"HTTP/\S+ (\d{3})\b")
_GONE = ("200", "202", "204", "404")


def numbers_gone(content_type: str, content: bytes, part_id: re.Pattern[str]) -> set[int]:
    """Return the numbers of the deletions that the answer confirms.

    A missing object counts as deleted. A malformed answer confirms none.

    Args:
        content_type: The header of the answer.
        content: Its body.
        part_id: Matches the `Content-ID` of a part, with the number as its group.
    """
    head = f"Content-Type: {content_type}\r\n\r\n".encode("latin-1", "replace")
    gone, others = set[int](), set[int]()
    for part in BytesParser().parsebytes(head + content).walk():
        number = part_id.fullmatch((part.get("Content-ID") or "").strip())
        if number is not None:
            (gone if _status_of_part(part) in _GONE else others).add(int(number[1]))
    return gone - others


def _status_of_part(part: Message) -> str:
    payload = part.get_payload()
    status = _STATUS.match(payload) if isinstance(payload, str) else None
    return "" if status is None else status[1]
