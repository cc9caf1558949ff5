"""One S3 object as a seekable file, by ranged reads with read-ahead of one state of the object.

The first request fetches the end of the object: all of a small file, or a Parquet file's footer,
which readers need first, and the size. Later requests name the first answer's entity tag, so that a
replaced file is detected and not mixed.

Recovery through an arbiter may replace a commit by the same bytes under another tag (spec 3.5). So
for commit files, the reader continues with the new object if it has the same size, at most
`READ_RETRIES` times in a row.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import BinaryIO, Protocol

from botocore.exceptions import ClientError

from optimist.core.errors import StorageError
from optimist.logstores.s3.errors import code_of
from optimist.logstores.shared import ranged_file

__all__ = ["READ_RETRIES", "Fetched", "RangeSource", "open_ranged"]

READ_RETRIES = 3
TAIL_BYTES = 512 * 1024


@dataclass(frozen=True, slots=True)
class Fetched:
    """A part of an object: the wanted range, or more if a server ignores `Range`.

    Attributes:
        data: The bytes.
        start: The offset of the first byte.
        size_bytes: The size of the whole object.
        etag: Its entity tag.
    """

    data: bytes
    start: int
    size_bytes: int
    etag: str


class RangeSource(Protocol):
    """A function that fetches parts of one object."""

    def __call__(self, byte_range: str, etag: str | None) -> Fetched:
        """Fetch a range, written as in HTTP, if the object still has the tag.

        Raises:
            StorageError: As in the store's reads; the cause is the SDK's error.
        """


def open_ranged(
    fetch: RangeSource, *, path: str, read_ahead_bytes: int, replacements: int
) -> BinaryIO:
    """Open the object, and fetch its end at once.

    Args:
        fetch: Fetches a range of it.
        path: For messages.
        read_ahead_bytes: The fewest bytes that a read fetches.
        replacements: How many times in a row the reader continues with another object of the same
            name and size, which is assumed to have the same bytes.

    Raises:
        LogFileNotFoundError: The object does not exist.
    """
    try:
        tail = fetch(f"bytes=-{TAIL_BYTES}", None)
    except StorageError as error:
        if not _has_status(error, 416):
            raise
        return io.BytesIO(b"")  # an empty object has no last bytes
    if len(tail.data) == tail.size_bytes:
        return ranged_file.open_whole(tail.data, identity=tail.etag)
    same = _SameObject(fetch, tail, path, replacements)
    return ranged_file.open_ranged(
        tail.size_bytes,
        same.read,
        tail=tail.data,
        read_ahead_bytes=read_ahead_bytes,
        identity=tail.etag,
    )


class _SameObject:
    """Ranges of the object that was opened, or of an object that has replaced it."""

    def __init__(self, fetch: RangeSource, opened: Fetched, path: str, replacements: int) -> None:
        self._fetch = fetch
        self._path = path
        self._replacements = replacements
        self._etag = opened.etag
        self._size = opened.size_bytes

    def read(self, offset: int, length: int) -> bytes:
        """Return the bytes from an offset on.

        Raises:
            StorageError: Another object has the name now (kind `OPTIMIST_FILE_CHANGED`).
        """
        byte_range = f"bytes={offset}-{offset + length - 1}"
        for _ in range(self._replacements + 1):
            try:
                found = self._fetch(byte_range, self._etag)
                return found.data[offset - found.start :][:length]
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
