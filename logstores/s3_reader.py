"""One S3 object as a seekable file: ranged reads, read ahead, of one state of the object.

The first request asks for the end of the object: it brings all of a small file, and of a Parquet
file the footer, which readers want first, together with the size. Later requests name the entity
tag of the first, so that a file that is replaced meanwhile is noticed rather than mixed.

Recovery through an arbiter may replace a commit by the same bytes under another tag (spec 3.5). For
commit files the reader therefore goes on with the new object if it has the same size, at most
`READ_RETRIES` times in a row.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import BinaryIO, Protocol, cast

from botocore.exceptions import ClientError

from optimist.core.errors import StorageError
from optimist.logstores.s3_errors import code_of

__all__ = ["READ_RETRIES", "Fetched", "RangeSource", "open_ranged"]

READ_RETRIES = 3
TAIL_BYTES = 512 * 1024
_BUFFER_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Fetched:
    """A part of an object.

    Attributes:
        data: The bytes.
        start: Where they start.
        size_bytes: The size of the whole object.
        etag: Its entity tag.
    """

    data: bytes
    start: int
    size_bytes: int
    etag: str


class RangeSource(Protocol):
    """Fetches parts of one object."""

    def __call__(self, byte_range: str, etag: str | None) -> Fetched:
        """A range, in the words of HTTP, if the object still has the tag.

        Raises:
            StorageError: As the store's reads do; the cause is the SDK's error.
        """


def open_ranged(
    fetch: RangeSource, *, path: str, read_ahead_bytes: int, replacements: int
) -> BinaryIO:
    """Open the object; its end is fetched at once.

    Args:
        fetch: Fetches a range of it.
        path: For messages.
        read_ahead_bytes: How much a read fetches at least.
        replacements: How many times in a row the reader goes on with another object of the same
            size under the name, because it has the same bytes.

    Raises:
        LogFileNotFoundError: There is no such object.
    """
    try:
        tail = fetch(f"bytes=-{TAIL_BYTES}", None)
    except StorageError as error:
        if not _has_status(error, 416):
            raise
        return io.BytesIO(b"")  # an empty object has no end to ask for
    if len(tail.data) == tail.size_bytes:
        return io.BytesIO(tail.data)
    raw = _RangedFile(fetch, tail, path, read_ahead_bytes, replacements)
    return cast(BinaryIO, io.BufferedReader(raw, _BUFFER_BYTES))


class _RangedFile(io.RawIOBase):
    def __init__(
        self, fetch: RangeSource, tail: Fetched, path: str, ahead: int, replacements: int
    ) -> None:
        super().__init__()
        self._fetch = fetch
        self._path = path
        self._ahead = ahead
        self._replacements = replacements
        self._etag = tail.etag
        self._size = tail.size_bytes
        self._tail = tail
        self._block = tail
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
            raise ValueError("negative seek position")
        self._position = start + offset
        return self._position

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # any buffer
        wanted = min(len(buffer), self._size - self._position)
        if wanted <= 0:
            return 0
        block = self._block_at(self._position, wanted)
        offset = self._position - block.start
        data = block.data[offset : offset + wanted]
        buffer[: len(data)] = data
        self._position += len(data)
        return len(data)

    def _block_at(self, position: int, wanted: int) -> Fetched:
        for block in (self._block, self._tail):
            if block.start <= position < block.start + len(block.data):
                return block
        # Up to the tail, which is here already.
        end = min(position + max(wanted, self._ahead), self._tail.start)
        self._block = self._fetch_same(f"bytes={position}-{end - 1}")
        return self._block

    def _fetch_same(self, byte_range: str) -> Fetched:
        for _ in range(self._replacements + 1):
            try:
                return self._fetch(byte_range, self._etag)
            except StorageError as error:
                if not _has_status(error, 412) or not self._replacements:
                    raise
            found = self._fetch("bytes=-1", None)
            if found.size_bytes != self._size:
                break
            self._etag = found.etag
        raise StorageError(
            f"{self._path} was replaced while it was being read. Run the operation again.",
            kind="OPTIMIST_FILE_CHANGED",
            path=self._path,
            retryable=True,
        )


def _has_status(error: StorageError, status: int) -> bool:
    cause = error.__cause__
    return isinstance(cause, ClientError) and code_of(cause)[1] == status
