"""A local file, piece by piece: checkpoints and data files are large, and memory is not."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterator
from typing import BinaryIO, TypeVar

from optimist.core.runtime.read_ahead import read_ahead

__all__ = ["PIECE_BYTES", "md5_of", "pieces", "send_pieces", "size_of"]

_Result = TypeVar("_Result")

PIECE_BYTES = 8 << 20
"""Small enough to have a few in memory, large enough that requests are few."""


_SENT_AT_A_TIME = 4
_MOST_PIECES = 10_000
"""The most that S3 takes for one object; Azure takes five times as many."""


def pieces(file: BinaryIO, piece_bytes: int = PIECE_BYTES) -> Iterator[bytes]:
    """The whole file from its beginning; no piece is empty."""
    file.seek(0)
    while piece := file.read(piece_bytes):
        yield piece


def send_pieces(file: BinaryIO, send: Callable[[int, bytes], _Result]) -> list[_Result]:
    """Send a file in pieces, a few at a time; returns what `send` gave for each, in order.

    Args:
        file: Read in this thread; only a few pieces of it are in memory at a time.
        send: Called by several threads, with the number of a piece (from 1 on) and the piece.
    """
    piece_bytes = max(PIECE_BYTES, -(-size_of(file) // _MOST_PIECES))
    numbered = enumerate(pieces(file, piece_bytes), start=1)
    return list(
        read_ahead(
            lambda each: send(*each), numbered, threads=_SENT_AT_A_TIME, ahead=_SENT_AT_A_TIME
        )
    )


def md5_of(content: bytes | BinaryIO) -> str:
    """The MD5 in base64, so that a store can refuse what arrives damaged; rewinds a file."""
    digest = hashlib.md5(usedforsecurity=False)
    for piece in (content,) if isinstance(content, bytes) else pieces(content):
        digest.update(piece)
    if not isinstance(content, bytes):
        content.seek(0)
    return base64.b64encode(digest.digest()).decode("ascii")


def size_of(file: BinaryIO) -> int:
    """The size in bytes; the file is left at its end."""
    return file.seek(0, 2)
