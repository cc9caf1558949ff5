"""Rows of a table and changes of its rows, each written to files of its own (spec 10.11).

A command that records changes gives its rows with the kind of each. A row whose kind is null goes
into the table's files. Any other row is a change: it goes into a change file, which has the table's
columns and `_change_type`, and belongs to no version of the table. So a command gives a new row
twice, once without a kind and once with one, in the same job. A value that is random, or that reads
the clock, is then the same in both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.data.parquet.parquet_writer import FileSpec, TaskFiles
from optimist.core.paths import join
from optimist.core.protocol.actions import AddCDCFile, AddFile
from optimist.core.runtime.clock import Clock

__all__ = [
    "CHANGE_TYPE",
    "DELETE",
    "INSERT",
    "UPDATE_POSTIMAGE",
    "UPDATE_PREIMAGE",
    "RowFiles",
    "change_files",
    "change_spec",
]

CHANGE_TYPE = "_change_type"
"""The column of change files that holds the kind of a change."""
INSERT, DELETE = "insert", "delete"
UPDATE_PREIMAGE, UPDATE_POSTIMAGE = "update_preimage", "update_postimage"

_DIRECTORY = "_change_data"


def change_spec(spec: FileSpec) -> FileSpec:
    """Return the common spec of change files that are written together with data files.

    Args:
        spec: The common spec of the data files.
    """
    return replace(
        spec,
        stats_columns=None,
        directory=join(_DIRECTORY, spec.directory) if spec.directory else _DIRECTORY,
        prefix="cdc",
    )


def change_files(files: Sequence[AddFile]) -> tuple[AddCDCFile, ...]:
    """Return the actions for files that were written by a `change_spec`."""
    return tuple(AddCDCFile(file.path, file.partition_values, file.size) for file in files)


class RowFiles:
    """The data and change files that one task writes. End them as a `TaskFiles`.

    Args:
        spec: The common spec of the data files.
        clock: See `TaskFiles`.
        task: The task's number, for the names.

    Attributes:
        num_rows: The number of written rows of the table.
    """

    def __init__(self, spec: FileSpec, clock: Clock, *, task: int = 0) -> None:
        self.num_rows = 0
        self._rows = TaskFiles(spec, clock, task=task)
        self._changes = TaskFiles(change_spec(spec), clock, task=task)

    def write(self, rows: pa.Table, kinds: pa.ChunkedArray | None = None) -> None:
        """Write some rows, which have the table's columns (void ones may be missing).

        Args:
            rows: The rows.
            kinds: The kind of change of each row, null for rows of the table. None if all are rows
                of the table.

        Raises:
            StorageError: The file system failed (kind `OPTIMIST_STORAGE_FAILED`).
        """
        if kinds is not None:
            changes = rows.append_column(CHANGE_TYPE, kinds).filter(pc.is_valid(kinds))
            self._changes.write(changes)
            rows = rows.filter(pc.is_null(kinds))
        self.num_rows += rows.num_rows
        self._rows.write(rows)

    def close(self) -> tuple[tuple[AddFile, ...], tuple[AddCDCFile, ...]]:
        """Finish the last files, and return the actions of the data files and the change files.

        Raises:
            StorageError: The file system failed (kind `OPTIMIST_STORAGE_FAILED`).
        """
        return self._rows.close(), change_files(self._changes.close())

    def abort(self) -> None:
        """Remove all written files. VACUUM finds those that can't be removed."""
        self._rows.abort()
        self._changes.abort()
