"""A data file copied from one table to another: by a store with both, or byte by byte.

S3, Azure and Google Cloud Storage copy a file within themselves in one request, and its bytes don't
come here. If a store refuses to copy a file, this module reads and writes it. The same goes for a
file that needs another encryption than the bucket's own.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pyarrow import fs

from optimist.core.data.storage.filesystem import filesystem_for, make_directories, open_to_read
from optimist.core.data.storage.new_file import new_file
from optimist.core.data.storage.storage_errors import storage_errors
from optimist.core.errors import StorageError, TableError
from optimist.core.errors.foreign_text import shown
from optimist.core.plugins.data_access import DataAccess
from optimist.core.runtime.clock import Clock
from optimist.core.runtime.retry import RetryPolicy

__all__ = ["CopyRule", "FileCopy", "copy_file"]

_PIECE_BYTES = 8 << 20
_COPYING_STORES: Final = ("s3", "abfs", "gcs")
"""Arrow's own file systems, by name, whose service copies a file."""
_MOST_BYTES_AT_ONCE = 5 << 30
"""The largest file that S3 copies in one request."""


@dataclass(frozen=True, slots=True)
class FileCopy:
    """One file to copy.

    Attributes:
        path: Its full path.
        target: The full path of the copy, with a name that nothing else has.
        size_bytes: Its size according to the log.
    """

    path: str
    target: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class CopyRule:
    """The rule for copying files. A small value that tasks of Spark may carry.

    Attributes:
        source: The access to the files.
        target: The access to the files of the table that gets the copies.
        policy: The limits for repeating a request without a clear answer.
    """

    source: DataAccess | None
    target: DataAccess | None
    policy: RetryPolicy


def copy_file(copy: FileCopy, rule: CopyRule, clock: Clock) -> None:
    """Copy a file into a table's directory, where nobody sees an incomplete copy.

    Args:
        copy: The file and its target.
        rule: The rule for copying.
        clock: The clock for names, and for the pauses before a repeated request.

    Raises:
        TableError: The file is gone (kind `DELTA_FILE_NOT_FOUND_DETAILED`).
        StorageError: The file has another size than the log has (kind
            `OPTIMIST_DATA_FILE_DIFFERS`), or one of the two stores failed.
    """
    filesystem, inner = filesystem_for(copy.target, rule.target)
    if _try_copy_by_store(copy, rule, filesystem, inner):
        return
    is_local = isinstance(filesystem, fs.LocalFileSystem)
    # A store creates the whole file in one step. On a disk it gets its name when it is whole.
    written = f"{inner}.{clock.new_uuid()}" if is_local else inner
    with storage_errors("written", copy.target):
        make_directories(filesystem, [inner])
        file = new_file(
            copy.target, filesystem, written, access=rule.target, clock=clock, policy=rule.policy
        )
        try:
            _write_copy(copy, rule.source, file.sink)
            file.publish()
            if is_local:
                Path(written).rename(inner)
        except BaseException:
            file.discard()
            if is_local:
                Path(written).unlink(missing_ok=True)
            raise


def _try_copy_by_store(
    copy: FileCopy, rule: CopyRule, filesystem: fs.FileSystem, inner: str
) -> bool:
    """Have the store copy its own file, and return False if it must be read and written.

    The copy's name follows from the source, so a request that arrives late or twice writes the same
    bytes again.
    """
    if filesystem.type_name not in _COPYING_STORES or copy.size_bytes > _MOST_BYTES_AT_ONCE:
        return False
    if rule.target is not None and not rule.target.copies_alike:
        return False
    origin, source = filesystem_for(copy.path, rule.source)
    if not origin.equals(filesystem):
        return False
    try:
        filesystem.copy_file(source, inner)
        num_bytes = filesystem.get_file_info(inner).size
        if num_bytes == copy.size_bytes:
            return True
        filesystem.delete_file(inner)
    except OSError:
        pass
    return False  # the reader of the source finds out whether it is gone or changed


def _write_copy(copy: FileCopy, access: DataAccess | None, sink: Any) -> None:
    """Write the bytes of a file to a sink."""
    filesystem, inner = filesystem_for(copy.path, access)
    num_bytes = 0
    with storage_errors("read", copy.path):
        try:
            source = open_to_read(filesystem, inner)
        except FileNotFoundError:
            raise TableError(
                f"The file {shown(copy.path)} is gone, although the table's log names it. VACUUM "
                "removes files that no version within the retention period needs. Nothing was "
                "committed. Copy a newer version.",
                kind="DELTA_FILE_NOT_FOUND_DETAILED",
                path=copy.path,
            ) from None
        with source:
            while piece := source.read(_PIECE_BYTES):
                num_bytes += len(piece)
                sink.write(piece)
    if num_bytes != copy.size_bytes:
        raise _size_differs(copy, num_bytes)


def _size_differs(copy: FileCopy, num_bytes: int | None) -> StorageError:
    return StorageError(
        f"The file {shown(copy.path)} has {num_bytes} bytes, but the table's log says "
        f"{copy.size_bytes}. Nothing was committed. Find out who changed it, and copy an older "
        "version.",
        kind="OPTIMIST_DATA_FILE_DIFFERS",
        path=copy.path,
    )
