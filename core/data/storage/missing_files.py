"""The search for missing files among many."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import islice

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import fs

from optimist.core.data.storage.filesystem import filesystem_for
from optimist.core.data.storage.storage_errors import storage_errors
from optimist.core.data.storage.stored_files import files_below, files_in, store_of
from optimist.core.errors import LogFileNotFoundError, StorageError
from optimist.core.paths import parent_of
from optimist.core.plugins.data_access import DataAccess
from optimist.core.runtime.read_ahead import read_ahead

__all__ = ["certainly_missing_files", "missing_files"]

_READERS = 8

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
    or of the whole table if these are many. So one request covers a thousand files. Outside of the
    table only the directory itself is listed, and not what is below it: a log may name a file in
    the root of a large bucket.

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
    for page in _pages_of_paths(_listed_paths(directories.to_pylist(), root, access)):
        exists = pc.or_(exists, pc.is_in(given, value_set=page))
        if tell is not None:
            tell(exists.true_count)
    return given.filter(pc.invert(exists))


def certainly_missing_files(
    paths: pa.ChunkedArray, root: str, access: DataAccess | None = None
) -> pa.Array:
    """Return the paths at which no file exists, as `missing_files`, before files are given up.

    What a listing does not show is not gone for certain. So a store is also asked for each of the
    files by its name.

    Raises:
        StorageError: The store or the file system failed.
    """
    unlisted = missing_files(paths, root, access)
    is_gone = read_ahead(
        lambda path: not _can_be_read(path, access),
        unlisted.to_pylist(),
        threads=_READERS,
        ahead=2 * _READERS,
    )
    return unlisted.filter(pa.array(is_gone, pa.bool_()))


def _can_be_read(path: str, access: DataAccess | None) -> bool:
    store = store_of(path, access)
    if store is None:
        return False  # the file system was asked by this name
    with _ignore_impossible_names(), suppress(LogFileNotFoundError):
        with store.open_read(path) as file:
            file.read(1)
        return True
    return False


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


def _listed_paths(directories: list[str], root: str, access: DataAccess | None) -> Iterator[str]:
    """Yield the paths of the files in these directories, and of some more below the table's."""
    inside = [each for each in directories if f"{each}/".startswith(f"{root}/")]
    for each in _tops([root] if len(inside) > _FEW_DIRECTORIES else inside):
        with _ignore_impossible_names():
            yield from (status.path for status in files_below(each, access))
    for each in directories:
        if not f"{each}/".startswith(f"{root}/"):
            with _ignore_impossible_names():
                yield from files_in(each, access)


def _tops(directories: list[str]) -> list[str]:
    """Return those of the directories that are not below another."""
    found: list[str] = []
    for each in sorted(directories, key=lambda path: f"{path}/"):
        if not found or not f"{each}/".startswith(f"{found[-1]}/"):
            found.append(each)
    return found


def _pages_of_paths(paths: Iterator[str]) -> Iterator[pa.Array]:
    while page := list(islice(paths, _AT_A_TIME)):
        yield pa.array(page, pa.string())


@contextmanager
def _ignore_impossible_names() -> Iterator[None]:
    """Ignore the error for a name that no file can have: whoever can commit chooses the names."""
    try:
        yield
    except StorageError as error:
        if error.kind != _INVALID_PATH:
            raise
