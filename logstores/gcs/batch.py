"""Many deletions in one request: the batch of Google's JSON API.

Body and answer are multipart messages. Each part of the body is a request, and each part of the
answer is an answer (`batch_answers`). The SDK's own batch sends no `Content-ID`, which links them,
and matches answers by their order.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

__all__ = ["DELETIONS_A_REQUEST", "PART_ID", "deletions"]

DELETIONS_A_REQUEST = 100
"""The most parts, beyond which Google refuses."""
PART_ID = re.compile(r"<response-.*\+(\d+)>")
"""The `Content-ID` of an answer's part."""


def deletions(targets: Sequence[str], boundary: str) -> bytes:
    """Return the body of a batch that deletes objects.

    Args:
        targets: Path and query of each object's address, quoted.
        boundary: The text between the parts.
    """
    parts = [
        f"--{boundary}\r\nContent-Type: application/http\r\nContent-ID: <{boundary}+{number}>\r\n"
        f"\r\nDELETE {target} HTTP/1.1\r\n\r\n\r\n"
        for number, target in enumerate(targets)
    ]
    return "".join((*parts, f"--{boundary}--\r\n")).encode()
