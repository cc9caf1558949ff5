"""The deletion of files and directories of one table, and of nothing outside it."""

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
    """How files of a table are deleted. A small value that tasks of Spark may carry.

    Attributes:
        paths: The table's paths.
        access: How its files are reached.
        num_threads: How many batches one process deletes at a time.
    """

    paths: DataPaths
    access: DataAccess | None
    num_threads: int

    @classmethod
    def of(cls, table: TableRef) -> DeletionRule:
        """The rule of a table, by its options."""
        options = table.options
        in_order = is_on_disk(table.table_path) and not options.vacuum_parallel_delete_enabled
        threads = options.vacuum_parallel_delete_parallelism or _THREADS
        return cls(table.data_paths, table.data_access(), 1 if in_order else threads)

    def full_path(self, path: str) -> str:
        """The full path of a file, by its relative path."""
        return join(self.paths.table_path, path)


DeleteFiles: TypeAlias = Callable[[Sequence[Sequence[str]], DeletionRule], Iterable[int]]
"""Deletes files, given in batches of relative paths; returns numbers of files, as they are gone."""


def delete_here(batches: Sequence[Sequence[str]], rule: DeletionRule) -> Iterable[int]:
    """Delete files in this process, by threads; see `delete_batch`."""
    delete, threads = partial(delete_batch, rule=rule), rule.num_threads
    if threads == 1:
        return map(delete, batches)
    return read_ahead(delete, batches, threads=threads, ahead=2 * threads)


def delete_batch(paths: Sequence[str], rule: DeletionRule) -> int:
    """Delete files by their relative paths; one that is gone already is fine.

    Returns:
        How many files these are.

    Raises:
        StorageError: The store or the file system failed.
        TableError: A symbolic link by now leads out of the table.
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
    """Deletes, and counts what it has deleted; for one thread.

    Args:
        table: The table.
        told: Called with `num_files` now and then.
        delete: Deletes the files.

    Attributes:
        num_files: How many files it has deleted.
    """

    def __init__(
        self, table: TableRef, told: Callable[[int], None], delete: DeleteFiles = delete_here
    ) -> None:
        self.num_files = 0
        self._rule = DeletionRule.of(table)
        self._told = told
        self._delete_files = delete

    def delete(self, paths: pa.Array) -> None:
        """Delete files by their relative paths; one that is gone already is fine.

        Raises:
            StorageError: The store or the file system failed; those before are deleted.
            TableError: A symbolic link by now leads out of the table.
        """
        note_change_begun()
        batches = [paths.slice(at, _BATCH).to_pylist() for at in range(0, len(paths), _BATCH)]
        for count in self._delete_files(batches, self._rule):
            self.num_files += count
            self._told(self.num_files)

    def delete_empty_directories(self, paths: Sequence[str]) -> None:
        """Delete directories that are empty, those within others first. Only disks have any."""
        for path in sorted(paths, key=lambda path: path.count("/"), reverse=True):
            full = self._rule.full_path(path)
            self._rule.paths.ensure_not_led_out(full)
            with suppress(OSError):  # it is not empty, or gone
                Path(strip_file_scheme(full)).rmdir()


def _remove_sum(path: str) -> None:
    """Remove the checksum that Hadoop writes beside each file of a local disk."""
    folder, name = os.path.split(path)
    with suppress(OSError):
        Path(folder, f".{name}.crc").unlink()
