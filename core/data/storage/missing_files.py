"""The search for missing files among many."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import fs

from optimist.core.data.storage.filesystem import filesystem_for
from optimist.core.data.storage.storage_errors import storage_errors
from optimist.core.data.storage.stored_files import files_below, store_of
from optimist.core.errors import StorageError
from optimist.core.paths import parent_of
from optimist.core.plugins.data_access import DataAccess

__all__ = ["missing_files"]

_AT_A_TIME = 1 << 16
_FEW_DIRECTORIES = 16
_INVALID_PATH = "OPTIMIST_INVALID_PATH"


def missing_files(
    paths: pa.ChunkedArray,
    root: str,
    access: DataAccess | None = None,
    tell: Callable[[int], None] | None = None,
) -> pa.Array:
    """Return the paths at which no file exists, in their order.

    A file system is asked for each file. A store is asked for listings of the files' directories,
    or of the whole table if these are many. So one request covers a thousand files.

    Args:
        paths: Full paths.
        root: The table's directory. Files may also be elsewhere.
        access: The access to data files.
        tell: Called now and then with how many of the paths are done: asked for one by one, or
            found in the listings so far.

    Raises:
        StorageError: The store or the file system failed.
    """
    given = paths.combine_chunks()
    if not len(given):
        return given
    directories = pa.array(sorted({parent_of(path) for path in given.to_pylist()}), pa.string())
    is_stored = [store_of(f"{each}/", access) is not None for each in directories.to_pylist()]
    if not all(is_stored):
        is_missing = list(_check_each(given, access, tell))
        return given.filter(pa.array(is_missing, pa.bool_()))
    exists = pa.array([False] * len(given), pa.bool_())
    for page in _list_paths(_directories_to_list(directories.to_pylist(), root), access):
        exists = pc.or_(exists, pc.is_in(given, value_set=page))
        if tell is not None:
            tell(exists.true_count)
    return given.filter(pc.invert(exists))


def _check_each(
    paths: pa.Array, access: DataAccess | None, tell: Callable[[int], None] | None
) -> Iterator[bool]:
    for done, path in enumerate(paths.to_pylist(), 1):
        filesystem, inner = filesystem_for(path, access)
        is_missing = True
        with _ignore_impossible_names(), storage_errors("looked for", path):
            is_missing = filesystem.get_file_info(inner).type != fs.FileType.File
        if tell is not None:
            tell(done)
        yield is_missing


def _directories_to_list(directories: list[str], root: str) -> list[str]:
    """Return directories that hold all of these, none of which is below another."""
    inside = [each for each in directories if f"{each}/".startswith(f"{root}/")]
    if len(inside) > _FEW_DIRECTORIES:
        directories = [*(each for each in directories if each not in set(inside)), root]
    found: list[str] = []
    for each in sorted(directories):
        if not any(f"{each}/".startswith(f"{above}/") for above in found):
            found.append(each)
    return found


def _list_paths(directories: list[str], access: DataAccess | None) -> Iterator[pa.Array]:
    page: list[str] = []
    for directory in directories:
        with _ignore_impossible_names():
            for status in files_below(directory, access):
                page.append(status.path)
                if len(page) >= _AT_A_TIME:
                    yield pa.array(page, pa.string())
                    page = []
    yield pa.array(page, pa.string())


@contextmanager
def _ignore_impossible_names() -> Iterator[None]:
    """Ignore the error for a name that no file can have: whoever can commit chooses the names."""
    try:
        yield
    except StorageError as error:
        if error.kind != _INVALID_PATH:
            raise
