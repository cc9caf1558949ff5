"""A seekable file over a store's ranged reads: of a large checkpoint only parts are moved."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import BinaryIO, cast

__all__ = ["open_ranged"]

_READ_AHEAD_BYTES = 256 * 1024
_BUFFER_BYTES = 64 * 1024


def open_ranged(
    size_bytes: int,
    fetch: Callable[[int, int], bytes],
    *,
    tail: bytes = b"",
    read_ahead_bytes: int = _READ_AHEAD_BYTES,
) -> BinaryIO:
    """A read-only file of so many bytes.

    Args:
        size_bytes: The length of the whole.
        fetch: Gives the bytes from an offset on, of a length greater than zero; called with ranges
            that lie within the file. It must serve one version of the file, or raise.
        tail: The end of the file, where it was fetched already.
        read_ahead_bytes: How much is fetched at least.
    """
    raw = _RangedFile(size_bytes, fetch, tail, read_ahead_bytes)
    return cast(BinaryIO, io.BufferedReader(raw, _BUFFER_BYTES))


class _RangedFile(io.RawIOBase):
    def __init__(
        self, size_bytes: int, fetch: Callable[[int, int], bytes], tail: bytes, ahead: int
    ) -> None:
        self._size = size_bytes
        self._fetch = fetch
        self._tail = tail
        self._tail_start = size_bytes - len(tail)
        self._ahead = ahead
        self._block = b""
        self._block_start = 0
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        if start + offset < 0:
            raise ValueError(f"cannot seek to {start + offset}, before the start of the file")
        self._position = start + offset
        return self._position

    def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]  # any writable buffer
        length = min(len(buffer), self._size - self._position)
        if length <= 0:
            return 0
        block, start = self._block_at(self._position, length)
        offset = self._position - start
        data = block[offset : offset + length]
        buffer[: len(data)] = data
        self._position += len(data)
        return len(data)

    def _block_at(self, position: int, wanted: int) -> tuple[bytes, int]:
        """Bytes among which the position is, and where they start."""
        if position >= self._tail_start:
            return self._tail, self._tail_start
        if not self._block_start <= position < self._block_start + len(self._block):
            length = min(max(wanted, self._ahead), self._tail_start - position)
            self._block = self._fetch(position, length)
            self._block_start = position
        return self._block, self._block_start
