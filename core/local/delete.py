"""DELETE without Spark, by vectors or by copy on write (spec 10.15, profiles D0, DP, DX of 2.13).

1. Without a condition, or with one on partition columns alone, whole files are removed, and no row
   is read.
2. Otherwise the files that statistics leave are searched: only the columns of the condition.
3. Where the table has deletion vectors, the matching rows are marked in vectors, and no row is
   written. Elsewhere those files are removed, and their other rows are written again. With the
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
        condition: What matches; None for all rows.
    """

    command: ClassVar[RowCommand] = "DELETE"
    writer: RowWriter
    condition: LocalCondition | None

    @property
    def txn(self) -> OptimisticTransaction:
        """The transaction."""
        return self.writer.target.txn

    def search(self, candidates: pa.Table, *, with_rows: bool) -> TouchedFiles:  # noqa: ARG002
        """See `RowTarget`; the rows are always told."""
        return self.writer.target.search(candidates, self.condition)

    def write(self, touched: TouchedFiles, chosen: Sequence[ChosenRows] | None) -> WrittenFiles:
        """Write the rows that do not match, of files of which some rows do."""
        deleted = touched.rows
        if chosen is not None or not deleted:
            return WrittenFiles()

        has_changes = self.writer.records_changes

        def others(place: int, batch: pa.RecordBatch, positions: Positions) -> Iterator[Written]:
            rows, is_deleted = pa.Table.from_batches([batch]), is_among(positions(), deleted[place])
            yield KEPT, rows.filter(pc.invert(is_deleted))
            if has_changes:
                yield DELETED, rows.filter(is_deleted)

        return self.writer.rewrite(touched.files, "DELETE", others)
