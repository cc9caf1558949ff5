"""A local file, piece by piece: checkpoints are as large as the table, and memory is not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

__all__ = ["PIECE_BYTES", "pieces", "size_of"]

PIECE_BYTES = 8 << 20
"""Small enough to have a few in memory, large enough that requests are few."""


def pieces(file: BinaryIO) -> Iterator[bytes]:
    """The whole file from its beginning; no piece is empty."""
    file.seek(0)
    while piece := file.read(PIECE_BYTES):
        yield piece


def size_of(file: BinaryIO) -> int:
    """The size in bytes; the file stands at its end afterwards."""
    return file.seek(0, 2)
