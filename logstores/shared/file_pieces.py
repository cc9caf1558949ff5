"""A local file in pieces, since checkpoints and data files may not fit in memory."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterator
from typing import BinaryIO, TypeVar

from optimist.core.runtime.read_ahead import read_ahead

__all__ = ["PIECE_BYTES", "md5_of", "pieces", "send_pieces", "size_of"]

_Result = TypeVar("_Result")

PIECE_BYTES = 8 << 20
"""Small enough to keep a few in memory, and large enough for few requests."""


_SENT_AT_A_TIME = 4
_MOST_PIECES = 10_000
"""The most pieces of one object in S3.

Azure takes five times as many.
"""


def pieces(file: BinaryIO, piece_bytes: int = PIECE_BYTES) -> Iterator[bytes]:
    """Yield the whole file from its beginning, in pieces that are never empty."""
    file.seek(0)
    while piece := file.read(piece_bytes):
        yield piece


def send_pieces(file: BinaryIO, send: Callable[[int, bytes], _Result]) -> list[_Result]:
    """Send a file in pieces, a few at a time, and return the results in order.

    Args:
        file: The file, read in this thread; only a few pieces are in memory at a time.
        send: Sends a piece, called by several threads with the piece's number (from 1 on) and the
            piece.
    """
    piece_bytes = max(PIECE_BYTES, -(-size_of(file) // _MOST_PIECES))
    numbered = enumerate(pieces(file, piece_bytes), start=1)
    return list(
        read_ahead(
            lambda each: send(*each), numbered, threads=_SENT_AT_A_TIME, ahead=_SENT_AT_A_TIME
        )
    )


def md5_of(content: bytes | BinaryIO) -> str:
    """Return the MD5 in base64, by which a store can refuse damaged bytes.

    A file is rewound.
    """
    digest = hashlib.md5(usedforsecurity=False)
    for piece in (content,) if isinstance(content, bytes) else pieces(content):
        digest.update(piece)
    if not isinstance(content, bytes):
        content.seek(0)
    return base64.b64encode(digest.digest()).decode("ascii")


def size_of(file: BinaryIO) -> int:
    """Return the size in bytes, and leave the file at its end."""
    return file.seek(0, 2)
