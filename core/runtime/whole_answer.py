"""A check that an HTTP answer arrived whole.

If a connection breaks during the headers, Python returns the headers so far with an empty body. An
SDK would read that as an empty listing, an empty file, or a missing entry.
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["is_whole"]


def is_whole(headers: Mapping[str, str], received_bytes: int | None = None) -> bool:
    """Tell whether an answer states its length, and arrived in that length.

    Args:
        headers: Its headers, with names in any case.
        received_bytes: The length of its body as received; None if it is not known yet.
    """
    lower = {name.lower(): text.strip() for name, text in headers.items()}
    if lower.get("transfer-encoding", "").lower() == "chunked":
        return True  # the last chunk is marked as the last, and transports check it
    length = lower.get("content-length")
    if length is None:
        return bool(received_bytes)  # no body follows headers that were cut off
    return length.isdecimal() and received_bytes in (None, int(length))
