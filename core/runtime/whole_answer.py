"""Tells whether an HTTP answer arrived whole.

If a connection breaks while the headers arrive, Python takes the headers so far, with an empty
body, for an answer. An SDK would read that as an empty listing, an empty file, or a missing entry.
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["is_whole"]


def is_whole(headers: Mapping[str, str], received_bytes: int | None = None) -> bool:
    """Whether an answer says where it ends, and arrived up to that end.

    Args:
        headers: Its headers, with names in upper or lower case.
        received_bytes: The length of its body as it came over the wire; None if that is not known
            yet.
    """
    lower = {name.lower(): text.strip() for name, text in headers.items()}
    if lower.get("transfer-encoding", "").lower() == "chunked":
        return True  # the last chunk says that it is the last, and transports insist on it
    length = lower.get("content-length")
    if length is None:
        return bool(received_bytes)  # no body follows headers that were cut off
    return length.isdecimal() and received_bytes in (None, int(length))
