"""DELETE without Spark, by vectors or by copy on write (spec 10.15, profiles D0, DP, DX of 2.13).

1. Without a condition, or with a condition on partition columns only, whole files are removed, and
   no row is read.
2. Otherwise the files that statistics can't exclude are searched, with the condition's columns
   only.
3. If the table has deletion vectors, the matching rows are marked in vectors, and no row is
   written. Otherwise those files are removed, and their other rows are written again. With the
   change data feed, the deleted rows are then written to change files.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.commands.marked_files import ChosenRows
from optimist.core.commands.row_rewrite import RowCommand
from optimist.core.commands.touched_files import TouchedFiles
from optimist.core.commands.written_files import WrittenFiles
from optimist.core.data.parquet.parquet_reader import Positions
from optimist.core.local.conditions import LocalCondition
from optimist.core.local.row_writer import DELETED, KEPT, RowWriter, Written
from optimist.core.local.target import is_among
from optimist.core.transaction.optimistic import OptimisticTransaction

__all__ = ["LocalDelete"]


@dataclass(frozen=True, slots=True)
class LocalDelete:
    """One DELETE, as a `RowTarget`.

    Attributes:
        writer: Writes the rows.
        condition: The condition for matching rows; None for all rows.
    """

    command: ClassVar[RowCommand] = "DELETE"
    writer: RowWriter
    condition: LocalCondition | None

    @property
    def txn(self) -> OptimisticTransaction:
        """The transaction."""
        return self.writer.target.txn

    def search(self, candidates: pa.Table, *, with_rows: bool) -> TouchedFiles:  # noqa: ARG002
        """Find the matching rows, with their positions (see `RowTarget`)."""
        return self.writer.target.search(candidates, self.condition)

    def write(self, touched: TouchedFiles, chosen: Sequence[ChosenRows] | None) -> WrittenFiles:
        """Write the rows that do not match, from files in which some rows match."""
        deleted = touched.rows
        if chosen is not None or not deleted:
            return WrittenFiles()

        has_changes = self.writer.records_changes

        def split_rows(
            index: int, batch: pa.RecordBatch, positions: Positions
        ) -> Iterator[Written]:
            rows, is_deleted = pa.Table.from_batches([batch]), is_among(positions(), deleted[index])
            yield KEPT, rows.filter(pc.invert(is_deleted))
            if has_changes:
                yield DELETED, rows.filter(is_deleted)

        return self.writer.rewrite(touched.files, "DELETE", split_rows, with_dictionaries=True)
