"""The files in which a command found rows to change, with these rows (spec 10.15)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import compress

import pyarrow as pa
from pyroaring import BitMap64

from optimist.core.commands.marked_files import (
    ChosenRows,
    choose_rows,
    deleted_rows,
    without_rows,
)
from optimist.core.data.table_ref import TableRef
from optimist.core.log.file_table import add_files
from optimist.core.protocol.actions import AddFile

__all__ = ["TouchedFiles"]


@dataclass(frozen=True, slots=True)
class TouchedFiles:
    """The candidates that hold matching rows.

    Attributes:
        files: The files, as rows of `Snapshot.files`.
        num_matching: The number of matching rows in all files; None if every row matches.
        rows: The positions of the matching rows in each file; None if they were not wanted, or if
            every row matches.
        deleted: The positions that the vector of each file deletes, if they were read already.
    """

    files: pa.Table
    num_matching: int | None
    rows: tuple[BitMap64, ...] | None = None
    deleted: tuple[BitMap64, ...] | None = None

    @property
    def adds(self) -> tuple[AddFile, ...]:
        """The files as actions."""
        return add_files(self.files)

    def live(self, table: TableRef) -> TouchedFiles:
        """Return the matching rows that no vector deletes, after a search that ignored vectors.

        Raises:
            TableError: A vector is gone or damaged; see `read_deletion_vectors`.
        """
        deleted = deleted_rows(table, self.adds)
        rows = [found - gone for found, gone in zip(self.rows or (), deleted, strict=True)]
        has_any = pa.array(map(bool, rows), pa.bool_())
        return TouchedFiles(
            self.files.filter(has_any),
            sum(map(len, rows)),
            tuple(filter(None, rows)),
            tuple(compress(deleted, rows)),
        )

    def choose_rows(self, table: TableRef) -> tuple[ChosenRows, ...] | None:
        """Return the matching rows for deletion by vectors, or None to rewrite whole files."""
        if self.rows is None:
            return None
        return choose_rows(table, self.adds, self.rows, deleted=self.deleted)

    def others(self, table: TableRef) -> pa.Table:
        """Return the files, as rows of `Snapshot.files`, without the matching rows.

        A second pass reads the remaining rows from them without the condition (see `only_chosen`).

        Raises:
            TableError: A vector is gone or damaged; see `read_deletion_vectors`.
            ValueError: The search did not return positions, so the remaining rows are unknown.
        """
        if self.rows is None:
            if self.num_matching is not None and self.files.num_rows:
                raise ValueError("The search did not ask for positions. Nothing was written.")
            return self.files.slice(0, 0)  # every row matches
        files = self.adds
        deleted = deleted_rows(table, files) if self.deleted is None else self.deleted
        gone = [old | found for old, found in zip(deleted, self.rows, strict=True)]
        return without_rows(files, gone)
