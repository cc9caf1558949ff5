"""A seekable file over a store's ranged reads, which fetches only parts of a large checkpoint."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import BinaryIO, cast

from optimist.core.errors import StorageError

__all__ = ["READ_AHEAD_BYTES", "open_ranged", "open_whole"]

READ_AHEAD_BYTES = 256 * 1024
_BUFFER_BYTES = 64 * 1024


def open_ranged(
    size_bytes: int,
    fetch: Callable[[int, int], bytes],
    *,
    head: bytes = b"",
    tail: bytes = b"",
    read_ahead_bytes: int = READ_AHEAD_BYTES,
    identity: str = "",
) -> BinaryIO:
    """Open a read-only file whose size is known.

    Args:
        size_bytes: The length of the file.
        fetch: Returns the bytes at an offset, of a length greater than zero; every range is within
            the file. It must serve one version of the file, or raise. If a server ignores ranges,
            it may return the whole file.
        head: The beginning of the file, if it was fetched already.
        tail: The end of the file, if it was fetched already.
        read_ahead_bytes: The fewest bytes to fetch at once, except at the end.
        identity: What tells this version of the file from any other (see `LogStore.open_read`).
    """
    raw = _RangedFile(size_bytes, fetch, (head, tail), read_ahead_bytes)
    raw.identity = identity
    return cast(BinaryIO, io.BufferedReader(raw, _BUFFER_BYTES))


def open_whole(data: bytes, *, identity: str) -> BinaryIO:
    """Open a read-only file that was fetched as a whole (see `open_ranged`)."""
    return _WholeFile(data, identity)


class _WholeFile(io.BytesIO):
    def __init__(self, data: bytes, identity: str) -> None:
        super().__init__(data)
        self.identity = identity


class _RangedFile(io.RawIOBase):
    def __init__(
        self,
        size_bytes: int,
        fetch: Callable[[int, int], bytes],
        ends: tuple[bytes, bytes],
        ahead: int,
    ) -> None:
        self.identity = ""
        self._size = size_bytes
        self._fetch = fetch
        head, self._tail = ends
        self._tail_start = size_bytes - len(self._tail)
        self._ahead = ahead
        self._block = head
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
        """Return a block of bytes that holds the position, and the block's start."""
        if position >= self._tail_start:
            return self._tail, self._tail_start
        if not self._block_start <= position < self._block_start + len(self._block):
            length = min(max(wanted, self._ahead), self._tail_start - position)
            self._block = self._cut_range(self._fetch(position, length), position, length)
            self._block_start = position
        return self._block, self._block_start

    def _cut_range(self, found: bytes, position: int, length: int) -> bytes:
        """Cut the wanted range from an answer that may be the whole file."""
        if len(found) == self._size:
            found = found[position : position + length]
        if len(found) != length:
            raise StorageError(
                f"{len(found)} bytes of a file came where {length} were asked for. Run the "
                "operation again.",
                kind="OPTIMIST_STORE_NO_ANSWER",
                retryable=True,
            )
        return found
