"""The files in which a command found rows to change, and these rows (spec 10.15)."""

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
        files: Those files, as rows of `Snapshot.files`.
        num_matching: How many rows match, in all of them; None where every row does.
        rows: The positions of the matching rows in each of the files; None where they were not
            asked for, or every row matches.
        deleted: The positions that the vector of each file deletes, where they were read already.
    """

    files: pa.Table
    num_matching: int | None
    rows: tuple[BitMap64, ...] | None = None
    deleted: tuple[BitMap64, ...] | None = None

    @property
    def adds(self) -> tuple[AddFile, ...]:
        """The files as values."""
        return add_files(self.files)

    def live(self, table: TableRef) -> TouchedFiles:
        """The matching rows that no vector deletes, for a search that ignored vectors.

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
        """The matching rows, to be deleted by vectors; None where whole files are rewritten."""
        if self.rows is None:
            return None
        return choose_rows(table, self.adds, self.rows, deleted=self.deleted)

    def others(self, table: TableRef) -> pa.Table:
        """The files as rows of `Snapshot.files`, whose vectors leave the rows that do not match.

        So a second pass reads what stays as it is, and asks no condition again; see `only_chosen`.

        Raises:
            TableError: A vector is gone or damaged; see `read_deletion_vectors`.
            ValueError: The positions were not asked for, so nobody knows which rows stay.
        """
        if self.rows is None:
            if self.num_matching is not None and self.files.num_rows:
                raise ValueError("The search did not ask for positions. Nothing was written.")
            return self.files.slice(0, 0)  # every row matches
        files = self.adds
        deleted = deleted_rows(table, files) if self.deleted is None else self.deleted
        gone = [old | found for old, found in zip(deleted, self.rows, strict=True)]
        return without_rows(files, gone)
