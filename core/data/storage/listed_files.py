"""The files below a table's directory, page by page, so that memory stays flat.

A local disk is walked directory by directory. Symbolic links are neither followed nor returned as
files, because their targets do not belong to the table. Names that are not text are left out, too,
because no log can hold them. A store lists page by page, and has no directories.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple

import pyarrow as pa

from optimist.core.data.storage.storage_errors import storage_errors
from optimist.core.data.storage.stored_files import files_below
from optimist.core.paths import scheme_of, strip_file_scheme
from optimist.core.plugins.data_access import DataAccess

__all__ = ["LISTED_SCHEMA", "Enters", "LeadsTo", "is_on_disk", "listed_pages"]

LISTED_SCHEMA = pa.schema(
    [
        ("path", pa.string()),
        ("size", pa.int64()),
        ("modified_ms", pa.int64()),
        ("is_directory", pa.bool_()),
    ]
)
"""One row per file or directory. `path` is relative to the table's directory, not encoded."""
PAGE_ROWS = 1 << 16

Enters = Callable[[str, str], bool]
"""Returns whether to read a name in a directory. The directory is a relative path."""
LeadsTo = Callable[[str], None]
"""Called with each path below the listed directory to which a link leads, as a relative path."""


class _Found(NamedTuple):
    path: str
    size_bytes: int
    modified_ms: int
    is_directory: bool = False


def listed_pages(
    directory: str, access: DataAccess | None, enters: Enters, leads_to: LeadsTo
) -> Iterator[pa.RecordBatch]:
    """Yield files, and local directories, in batches of `LISTED_SCHEMA`, in no order.

    Args:
        directory: The full path of the table's directory.
        access: The access to data files.
        enters: Decides for each name on the way to a file.
        leads_to: Called with the targets of symbolic links.

    Raises:
        StorageError: The store or the file system failed.
    """
    if is_on_disk(directory):
        yield from _walk_disk(strip_file_scheme(directory), directory, enters, leads_to)
    else:
        yield from _pages_of(_list_store(directory, access, enters))


def is_on_disk(path: str) -> bool:
    """Return whether a path is on a disk of this machine."""
    return scheme_of(path) in ("", "file")


def _pages_of(found: Iterable[_Found]) -> Iterator[pa.RecordBatch]:
    """Yield the rows in batches of limited length."""
    page: list[_Found] = []
    for each in found:
        page.append(each)
        if len(page) >= PAGE_ROWS:
            yield _build_batch(page)
            page = []
    if page:
        yield _build_batch(page)


def _build_batch(page: list[_Found]) -> pa.RecordBatch:
    columns = [
        pa.array([each.path for each in page], pa.string()),
        pa.array([each.size_bytes for each in page], pa.int64()),
        pa.array([each.modified_ms for each in page], pa.int64()),
        pa.array([each.is_directory for each in page], pa.bool_()),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=LISTED_SCHEMA)


def _walk_disk(
    root: str, directory: str, enters: Enters, leads_to: LeadsTo
) -> Iterator[pa.RecordBatch]:
    waiting, page = [""], _Page()
    real_root = os.path.realpath(root).rstrip("/") + "/"

    def note_link(path: str) -> None:
        target = os.path.realpath(path)
        if target.startswith(real_root):
            leads_to(target[len(real_root) :])

    with storage_errors("listed", directory):
        while waiting:
            parent = waiting.pop()
            for entry in _entered(root, parent, enters, note_link):
                path = f"{parent}/{entry.name}" if parent else entry.name
                if page.add(entry, path):
                    waiting.append(path)
                if len(page.paths) >= PAGE_ROWS:
                    yield page.batch()
                    page = _Page()
    if page.paths:
        yield page.batch()


class _Page:
    """The next rows of a listing, as columns: a tree of very many files costs little a file."""

    def __init__(self) -> None:
        self.paths: list[str] = []
        self._sizes: list[int] = []
        self._modified_ms: list[int] = []
        self._is_directory: list[bool] = []

    def add(self, entry: os.DirEntry[str], path: str) -> bool:
        """Add a file or a directory, and return whether it is a directory.

        A file that someone has removed meanwhile is left out, and so is a pipe or a device.
        """
        is_directory = not entry.is_file(follow_symlinks=False)
        if is_directory and not entry.is_dir(follow_symlinks=False):
            return False
        try:
            status = entry.stat(follow_symlinks=False)
        except FileNotFoundError:
            return False
        self.paths.append(path)
        self._sizes.append(0 if is_directory else status.st_size)
        self._modified_ms.append(status.st_mtime_ns // 1_000_000)
        self._is_directory.append(is_directory)
        return is_directory

    def batch(self) -> pa.RecordBatch:
        """Return the rows."""
        columns = (self.paths, self._sizes, self._modified_ms, self._is_directory)
        arrays = [pa.array(rows, f.type) for rows, f in zip(columns, LISTED_SCHEMA, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=LISTED_SCHEMA)


def _entered(
    root: str, parent: str, enters: Enters, note_link: Callable[[str], None]
) -> Iterator[os.DirEntry[str]]:
    """Yield the entries one by one, and none if someone removed the folder meanwhile."""
    with (
        suppress(FileNotFoundError, NotADirectoryError),
        os.scandir(f"{root}/{parent}") as entries,
    ):
        for entry in entries:
            name = entry.name
            is_entered = (name.isascii() or _is_text(name)) and enters(parent, name)
            if entry.is_symlink():
                note_link(entry.path)
            elif is_entered:
                yield entry


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _list_store(directory: str, access: DataAccess | None, enters: Enters) -> Iterator[_Found]:
    start = len(directory.rstrip("/")) + 1
    for status in files_below(directory, access):
        path = status.path[start:]
        if _is_entered(path, enters):
            yield _Found(path, status.size_bytes, status.modified_ms)


def _is_entered(path: str, enters: Enters) -> bool:
    parent = ""
    for name in filter(None, path.split("/")):
        if not enters(parent, name):
            return False
        parent = f"{parent}/{name}".lstrip("/")
    return True
