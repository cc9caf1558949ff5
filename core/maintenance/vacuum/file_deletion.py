"""The deletion of a table's files and directories, and of nothing outside the table."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa

from optimist.core.data.storage.data_paths import DataPaths
from optimist.core.data.storage.listed_files import is_on_disk
from optimist.core.data.storage.stored_files import remove_files
from optimist.core.data.table_ref import TableRef
from optimist.core.paths import join, parent_of, strip_file_scheme
from optimist.core.plugins.data_access import DataAccess
from optimist.core.runtime.begun_changes import note_change_begun
from optimist.core.runtime.read_ahead import read_ahead

__all__ = ["DeleteFiles", "Deletion", "DeletionRule", "delete_batch", "delete_here"]

_BATCH = 1000
_THREADS = 8


@dataclass(frozen=True, slots=True)
class DeletionRule:
    """How files of a table are deleted, as a small value that Spark tasks can carry.

    Attributes:
        paths: The table's paths.
        access: The access to its files.
        num_threads: The number of batches that one process deletes at a time.
    """

    paths: DataPaths
    access: DataAccess | None
    num_threads: int

    @classmethod
    def of(cls, table: TableRef) -> DeletionRule:
        """Make the rule of a table from its options."""
        options = table.options
        in_order = is_on_disk(table.table_path) and not options.vacuum_parallel_delete_enabled
        threads = options.vacuum_parallel_delete_parallelism or _THREADS
        return cls(table.data_paths, table.data_access(), 1 if in_order else threads)

    def full_path(self, path: str) -> str:
        """Return the full path of a file, from its relative path."""
        return join(self.paths.table_path, path)


DeleteFiles: TypeAlias = Callable[[Sequence[Sequence[str]], DeletionRule], Iterable[int]]
"""Deletes batches of relative paths, and returns counts of files as they are deleted."""


def delete_here(batches: Sequence[Sequence[str]], rule: DeletionRule) -> Iterable[int]:
    """Delete files in this process, by threads (see `delete_batch`)."""
    delete, threads = partial(delete_batch, rule=rule), rule.num_threads
    if threads == 1:
        return map(delete, batches)
    return read_ahead(delete, batches, threads=threads, ahead=2 * threads)


def delete_batch(paths: Sequence[str], rule: DeletionRule) -> int:
    """Delete files by their relative paths. A file that is already gone is ignored.

    Returns:
        The number of given files.

    Raises:
        StorageError: The store or the file system failed.
        TableError: A symbolic link now leads out of the table.
    """
    full = list(map(rule.full_path, paths))
    for folder in sorted({parent_of(path) for path in full}):
        rule.paths.ensure_not_led_out(join(folder, "file"))
    remove_files(full, rule.access)
    if is_on_disk(rule.paths.table_path):
        for path in full:
            _remove_sum(strip_file_scheme(path))
    return len(paths)


class Deletion:
    """Deletes files and counts them, for one thread.

    Args:
        table: The table.
        on_progress: Called with `num_files` now and then.
        delete: Deletes the files.

    Attributes:
        num_files: The number of files deleted so far.
    """

    def __init__(
        self, table: TableRef, on_progress: Callable[[int], None], delete: DeleteFiles = delete_here
    ) -> None:
        self.num_files = 0
        self._rule = DeletionRule.of(table)
        self._on_progress = on_progress
        self._delete_files = delete

    def delete(self, paths: pa.Array) -> None:
        """Delete files by their relative paths. A file that is already gone is ignored.

        Raises:
            StorageError: The store or the file system failed. Earlier files are deleted.
            TableError: A symbolic link now leads out of the table.
        """
        note_change_begun()
        batches = [paths.slice(at, _BATCH).to_pylist() for at in range(0, len(paths), _BATCH)]
        for count in self._delete_files(batches, self._rule):
            self.num_files += count
            self._on_progress(self.num_files)

    def delete_empty_directories(self, paths: Sequence[str]) -> None:
        """Delete empty directories, inner ones first. Only disks have directories."""
        for path in sorted(paths, key=lambda path: path.count("/"), reverse=True):
            full = self._rule.full_path(path)
            self._rule.paths.ensure_not_led_out(full)
            with suppress(OSError):  # it is not empty, or already gone
                Path(strip_file_scheme(full)).rmdir()


def _remove_sum(path: str) -> None:
    """Remove the checksum file that Hadoop writes beside each file of a local disk."""
    folder, name = os.path.split(path)
    with suppress(OSError):
        Path(folder, f".{name}.crc").unlink()
