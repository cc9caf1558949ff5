"""A second read of a data file after an error: was the answer cut, or is the file damaged?

An answer that the network cut off looks like a damaged file to a reader of Parquet. So if a file is
not on this machine, a failed read is repeated from a copy of the whole file. The store's own client
fetches it if there is one, because it accepts no partial answers and asks again. A failure to fetch
is the store's error. A fault in the whole file is the table's error.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, TypeVar, cast

import pyarrow as pa
from pyarrow import fs

from optimist.core.data.storage.filesystem import filesystem_for, open_to_read
from optimist.core.data.storage.storage_errors import storage_errors
from optimist.core.data.storage.stored_files import store_of
from optimist.core.errors import StorageError
from optimist.core.errors.foreign_text import shown
from optimist.core.plugins.data_access import DataAccess

__all__ = ["UNREADABLE", "may_be_cut", "read_surely", "whole_copy"]

_Result = TypeVar("_Result")

UNREADABLE = (
    pa.ArrowInvalid,
    pa.ArrowNotImplementedError,
    pa.ArrowMemoryError,
    OSError,
    UnicodeDecodeError,
)
"""The errors that pyarrow raises for a damaged file, or for a part of one.

Names that are not UTF-8 and sizes beyond all memory count as damage, too.
"""

_IN_MEMORY_BYTES = 8 << 20
_PIECE_BYTES = 8 << 20


def read_surely(path: str, access: DataAccess | None, read: Callable[[Any], _Result]) -> _Result:
    """Read from a file. If that fails and the network may be to blame, read a whole copy.

    Args:
        path: The file's full path.
        access: The access to the table's data files.
        read: Reads the open file, perhaps twice.

    Raises:
        FileNotFoundError: The file does not exist.
        StorageError: The store can't deliver the file.
        Exception: One of `UNREADABLE`: the file is damaged.
    """
    filesystem, inner = filesystem_for(path, access)
    try:
        with open_to_read(filesystem, inner) as source:
            return read(source)
    except UNREADABLE as error:
        if not may_be_cut(filesystem, error):
            raise
    with whole_copy(path, access) as copy:
        return read(copy)


def may_be_cut(filesystem: fs.FileSystem, error: BaseException) -> bool:
    """Return whether an error of `UNREADABLE` may come from an incomplete answer."""
    is_local = isinstance(filesystem, fs.LocalFileSystem)
    return not is_local and not isinstance(error, FileNotFoundError)


@contextmanager
def whole_copy(path: str, access: DataAccess | None) -> Iterator[pa.NativeFile]:
    """Yield a copy of a file from elsewhere: in memory, or in `TMPDIR` if it is large.

    Raises:
        FileNotFoundError: The file does not exist.
        StorageError: The store can't deliver it.
    """
    with tempfile.SpooledTemporaryFile(_IN_MEMORY_BYTES, prefix="optimist-") as spool:
        copy = cast(BinaryIO, spool)
        store = store_of(path, access)
        if store is None:
            _copy_by_file_system(path, access, copy)
        else:
            with store.open_read(path) as source:
                shutil.copyfileobj(source, copy, _PIECE_BYTES)
        copy.seek(0)
        yield pa.PythonFile(copy, mode="r")


def _copy_by_file_system(path: str, access: DataAccess | None, copy: BinaryIO) -> None:
    filesystem, inner = filesystem_for(path, access)
    try:
        with storage_errors("read", path), filesystem.open_input_file(inner) as source:
            shutil.copyfileobj(source, copy, _PIECE_BYTES)
            size_bytes = filesystem.get_file_info(inner).size
    except StorageError as error:
        if isinstance(error.__context__, FileNotFoundError):
            raise error.__context__ from None
        raise
    if size_bytes is not None and copy.tell() != size_bytes:
        raise StorageError(
            f"The data of {shown(path)} could not be read: {copy.tell()} of its {size_bytes} bytes "
            "arrived. Nothing was committed. Run the operation again.",
            kind="OPTIMIST_STORAGE_FAILED",
            path=path,
            retryable=True,
        )
