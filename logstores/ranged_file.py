"""A seekable file over a store's ranged reads: of a large checkpoint only parts are moved."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import BinaryIO, cast

__all__ = ["open_ranged"]

_READ_AHEAD_BYTES = 256 * 1024


def open_ranged(size_bytes: int, fetch: Callable[[int, int], bytes]) -> BinaryIO:
    """A read-only file of so many bytes.

    Args:
        size_bytes: The length of the whole.
        fetch: Gives the bytes from an offset on, of a length greater than zero; called with ranges
            that lie within the file. It must serve one version of the file, or raise.
    """
    return cast(BinaryIO, io.BufferedReader(_RangedFile(size_bytes, fetch), _READ_AHEAD_BYTES))


class _RangedFile(io.RawIOBase):
    def __init__(self, size_bytes: int, fetch: Callable[[int, int], bytes]) -> None:
        self._size = size_bytes
        self._fetch = fetch
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
        data = self._fetch(self._position, length)
        buffer[: len(data)] = data
        self._position += len(data)
        return len(data)
