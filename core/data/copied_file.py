"""A data file copied byte by byte from one table to another."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyarrow import fs

from optimist.core.data.filesystem import filesystem_for, make_directories, open_to_read
from optimist.core.data.new_file import new_file
from optimist.core.data.storage_errors import storage_errors
from optimist.core.data.table_ref import TableRef
from optimist.core.errors import StorageError, TableError
from optimist.core.errors.foreign_text import shown
from optimist.core.plugins.data_access import DataAccess

__all__ = ["copy_file"]

_PIECE_BYTES = 8 << 20


def copy_file(
    path: str, access: DataAccess | None, table: TableRef, copy: str, *, size_bytes: int | None
) -> None:
    """Copy a file into a table's directory; nobody sees a part of it under its name.

    Args:
        path: The full path of the file.
        access: How it is reached.
        table: The table that the copy is for.
        copy: The full path of the copy, a name that nothing else has.
        size_bytes: How long the log says that the file is; None if it does not say.

    Raises:
        TableError: The file is gone (kind `DELTA_FILE_NOT_FOUND_DETAILED`), or has another length
            (`OPTIMIST_DATA_FILE_DIFFERS`).
        StorageError: One of the two stores failed.
    """
    target_access = table.data_access()
    filesystem, inner = filesystem_for(copy, target_access)
    is_local = isinstance(filesystem, fs.LocalFileSystem)
    # A store creates the whole file in one step; on a disk it gets its name when it is whole.
    written = f"{inner}.{table.clock.new_uuid()}" if is_local else inner
    with storage_errors("written", copy):
        make_directories(filesystem, [inner])
        file = new_file(
            copy,
            filesystem,
            written,
            access=target_access,
            clock=table.clock,
            policy=table.options.retry_policy,
        )
        try:
            _pour(path, access, file.sink, size_bytes)
            file.publish()
            if is_local:
                Path(written).rename(inner)
        except BaseException:
            file.discard()
            if is_local:
                Path(written).unlink(missing_ok=True)
            raise


def _pour(path: str, access: DataAccess | None, sink: Any, size_bytes: int | None) -> None:
    """Write the bytes of a file to a sink."""
    filesystem, inner = filesystem_for(path, access)
    num_bytes = 0
    with storage_errors("read", path):
        try:
            source = open_to_read(filesystem, inner)
        except FileNotFoundError:
            raise TableError(
                f"The file {shown(path)} is gone, although the table's log names it. VACUUM "
                "removes files that no version within the retention period needs. Nothing was "
                "committed. Copy a newer version.",
                kind="DELTA_FILE_NOT_FOUND_DETAILED",
                path=path,
            ) from None
        with source:
            while piece := source.read(_PIECE_BYTES):
                num_bytes += len(piece)
                sink.write(piece)
    if size_bytes is not None and num_bytes != size_bytes:
        raise StorageError(
            f"The file {shown(path)} has {num_bytes} bytes, but the table's log says {size_bytes}. "
            "Nothing was committed. Find out who changed it, and copy an older version.",
            kind="OPTIMIST_DATA_FILE_DIFFERS",
            path=path,
        )
