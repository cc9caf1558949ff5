"""The deletion of files and directories of one table, and of nothing outside it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pyarrow as pa

from optimist.core.data.listed_files import is_on_disk
from optimist.core.data.stored_files import remove_files
from optimist.core.data.table_ref import TableRef
from optimist.core.paths import join, parent_of, strip_file_scheme
from optimist.core.running.read_ahead import read_ahead

__all__ = ["Deletion"]

_BATCH = 1000
_THREADS = 8


class Deletion:
    """Deletes, and counts what it has deleted; for one thread.

    Attributes:
        num_files: How many files it has deleted.
    """

    def __init__(self, table: TableRef, told: Callable[[int], None]) -> None:
        self.num_files = 0
        self._table = table
        self._told = told
        self._access = table.data_access()
        self._is_on_disk = is_on_disk(table.table_path)

    def delete(self, paths: pa.Array) -> None:
        """Delete files by their relative paths; one that is gone already is fine.

        Raises:
            StorageError: The store or the file system failed; those before are deleted.
            TableError: A symbolic link by now leads out of the table.
        """
        batches = (paths.slice(at, _BATCH).to_pylist() for at in range(0, len(paths), _BATCH))
        for count in self._counts(batches):
            self.num_files += count
            self._told(self.num_files)

    def delete_empty_directories(self, paths: Sequence[str]) -> None:
        """Delete directories that are empty, those within others first. Only disks have any."""
        for path in sorted(paths, key=lambda path: path.count("/"), reverse=True):
            full = self._full(path)
            self._table.data_paths.ensure_not_led_out(full)
            with suppress(OSError):  # it is not empty, or gone
                Path(strip_file_scheme(full)).rmdir()

    def _counts(self, batches: Iterator[list[str]]) -> Iterator[int]:
        options = self._table.options
        if self._is_on_disk and not options.vacuum_parallel_delete_enabled:
            return map(self._delete, batches)
        threads = options.vacuum_parallel_delete_parallelism or _THREADS
        return read_ahead(self._delete, batches, threads=threads, ahead=2 * threads)

    def _delete(self, paths: list[str]) -> int:
        full = [self._full(path) for path in paths]
        for folder in sorted({parent_of(path) for path in full}):
            self._table.data_paths.ensure_not_led_out(join(folder, "file"))
        remove_files(full, self._access)
        if self._is_on_disk:
            for path in full:
                _remove_sum(strip_file_scheme(path))
        return len(paths)

    def _full(self, path: str) -> str:
        return join(self._table.table_path, path)


def _remove_sum(path: str) -> None:
    """Remove the checksum that Hadoop writes beside each file of a local disk."""
    folder, name = os.path.split(path)
    with suppress(OSError):
        Path(folder, f".{name}.crc").unlink()
