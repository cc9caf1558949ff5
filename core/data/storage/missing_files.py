"""Which of many files are no longer there."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import fs

from optimist.core.data.storage.filesystem import filesystem_for
from optimist.core.data.storage.storage_errors import storage_errors
from optimist.core.data.storage.stored_files import files_below, store_of
from optimist.core.paths import parent_of
from optimist.core.plugins.data_access import DataAccess

__all__ = ["missing_files"]

_AT_A_TIME = 1 << 16
_FEW_DIRECTORIES = 16


def missing_files(paths: pa.ChunkedArray, root: str, access: DataAccess | None = None) -> pa.Array:
    """The paths at which there is no file, in their order.

    A file system is asked for each file. A store is asked for listings: of the files' directories
    if these are few, else of the whole table, so that a request tells of a thousand files.

    Args:
        paths: Full paths.
        root: The table's directory; files may also be elsewhere.
        access: How data files are reached.

    Raises:
        StorageError: The store or the file system failed.
    """
    given = paths.combine_chunks()
    if not len(given):
        return given
    directories = pa.array(sorted({parent_of(path) for path in given.to_pylist()}), pa.string())
    is_stored = [store_of(f"{each}/", access) is not None for each in directories.to_pylist()]
    if not all(is_stored):
        return given.filter(pa.array(list(_absences(given, access)), pa.bool_()))
    is_there = pa.array([False] * len(given), pa.bool_())
    for page in _listed(_to_list(directories.to_pylist(), root), access):
        is_there = pc.or_(is_there, pc.is_in(given, value_set=page))
    return given.filter(pc.invert(is_there))


def _absences(paths: pa.Array, access: DataAccess | None) -> Iterator[bool]:
    for path in paths.to_pylist():
        filesystem, inner = filesystem_for(path, access)
        with storage_errors("looked for", path):
            yield filesystem.get_file_info(inner).type != fs.FileType.File


def _to_list(directories: list[str], root: str) -> list[str]:
    """Directories that hold all of these, none of which is below another."""
    inside = [each for each in directories if f"{each}/".startswith(f"{root}/")]
    if len(inside) > _FEW_DIRECTORIES:
        directories = [*(each for each in directories if each not in set(inside)), root]
    found: list[str] = []
    for each in sorted(directories):
        if not any(f"{each}/".startswith(f"{above}/") for above in found):
            found.append(each)
    return found


def _listed(directories: list[str], access: DataAccess | None) -> Iterator[pa.Array]:
    page: list[str] = []
    for directory in directories:
        for status in files_below(directory, access):
            page.append(status.path)
            if len(page) >= _AT_A_TIME:
                yield pa.array(page, pa.string())
                page = []
    yield pa.array(page, pa.string())
