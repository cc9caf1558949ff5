"""The search and removal of data files, as opposed to reading and writing them.

If a store creates the data files (see `new_file`), it also lists and removes them. Arrow's file
systems use the services' C++ SDKs for that. An unexpected answer makes such an SDK end the whole
process, the driver's or an executor's. A store's own client raises an error instead.

| path | how |
|---|---|
| where Arrow's own file system for S3, Azure or Google would serve it | by the log's store |
| every other: local, fsspec's drivers | by the file system |
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress

from pyarrow import fs

from optimist.core.data.storage.filesystem import filesystem_for, is_reached_by_arrow
from optimist.core.data.storage.storage_errors import storage_errors
from optimist.core.errors import LogFileNotFoundError, OptimistError, StorageError
from optimist.core.errors.system_causes import NO_SUCH_FILE
from optimist.core.paths import join, name_of
from optimist.core.plugins.data_access import DataAccess
from optimist.core.plugins.logstore import FileStatus, LogStore
from optimist.core.plugins.logstore_registry import find_store

__all__ = [
    "files_below",
    "files_in",
    "names_in",
    "remove_directory",
    "remove_file",
    "remove_files",
    "store_of",
    "try_remove_file",
]

_INVALID_PATH = "OPTIMIST_INVALID_PATH"


def files_below(directory: str, access: DataAccess | None = None) -> Iterator[FileStatus]:
    """Yield the files below a directory at any depth, by full path, or none if it is absent.

    A time of 0 means that the file system gives none.

    Raises:
        StorageError: The store or the file system failed.
    """
    store = store_of(directory, access)
    if store is not None:
        yield from store.list_below(directory)
        return
    filesystem, inner = filesystem_for(directory, access)
    selector = fs.FileSelector(inner, recursive=True, allow_not_found=True)
    with storage_errors("listed", directory):
        found = filesystem.get_file_info(selector)
    for info in found:
        if info.type == fs.FileType.File:
            path = join(directory, info.path[len(inner.rstrip("/")) + 1 :])
            yield FileStatus(path, info.size, (info.mtime_ns or 0) // 1_000_000)


def files_in(directory: str, access: DataAccess | None = None) -> Iterator[str]:
    """Yield the full paths of the files in a directory, or none if it is absent.

    Raises:
        StorageError: The store or the file system failed.
    """
    store = store_of(directory, access)
    if store is None:
        names = names_in(directory, access)
        yield from (join(directory, name) for name in names)
        return
    with suppress(LogFileNotFoundError):
        yield from (status.path for status in store.list_from(join(directory, "")))


def names_in(directory: str, access: DataAccess | None = None) -> list[str]:
    """Return the sorted names in a directory, or none if it is absent.

    Raises:
        StorageError: The store or the file system failed.
    """
    store = store_of(directory, access)
    if store is not None:
        return sorted(store.list_names(directory))
    filesystem, inner = filesystem_for(directory, access)
    with storage_errors("listed", directory):
        selector = fs.FileSelector(inner, allow_not_found=True)
        return sorted(name_of(info.path) for info in filesystem.get_file_info(selector))


def remove_file(path: str, access: DataAccess | None = None) -> None:
    """Remove a file. Do nothing if none exists, or none can have that name.

    Raises:
        StorageError: The store or the file system failed.
    """
    store = store_of(path, access)
    if store is not None:
        store.delete(path)
        return
    filesystem, inner = filesystem_for(path, access)
    with storage_errors("removed", path), suppress(FileNotFoundError):
        try:
            filesystem.delete_file(inner)
        except OSError as error:
            if error.errno not in NO_SUCH_FILE:
                raise


def remove_files(paths: Sequence[str], access: DataAccess | None = None) -> None:
    """Remove files of one table. A store uses as few requests as it can.

    Raises:
        StorageError: The store or the file system failed. Some of the files may be gone.
    """
    store = store_of(paths[0], access) if paths else None
    if store is not None:
        _remove_by_store(store, paths)
        return
    for path in paths:
        remove_file(path, access)


def _remove_by_store(store: LogStore, paths: Sequence[str]) -> None:
    try:
        store.delete_data_files(paths)
    except StorageError as error:
        if error.kind != _INVALID_PATH:
            raise
        # No file has such a name. Go one by one, so that the others are removed.
        for path in paths if len(paths) > 1 else ():
            _remove_by_store(store, [path])


def try_remove_file(path: str, access: DataAccess | None = None) -> None:
    """Try to remove a file without hiding an earlier error. VACUUM finds what is left."""
    with suppress(OptimistError):
        remove_file(path, access)


def remove_directory(path: str, access: DataAccess | None = None) -> None:
    """Remove a directory and its content. Do nothing if it is absent.

    Raises:
        StorageError: The store or the file system failed.
    """
    if store_of(path, access) is not None:
        for status in files_below(path, access):
            remove_file(status.path, access)
        return
    filesystem, inner = filesystem_for(path, access)
    with storage_errors("removed", path):
        if filesystem.get_file_info(inner).type == fs.FileType.Directory:
            filesystem.delete_dir(inner)


def store_of(path: str, access: DataAccess | None) -> LogStore | None:
    """Return the store that finds and removes the data file at a path, or None."""
    if access is None or not is_reached_by_arrow(path, access):
        return None
    return find_store(path, access.store_options)
