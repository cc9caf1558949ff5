"""UPDATE without Spark, by vectors or by copy on write (spec 10.15, profile U of 2.13).

1. If the condition names data columns, the files that statistics can't exclude are searched, with
   the condition's columns only. Otherwise the log alone gives the files.
2. If the table has deletion vectors and rows were searched, the matching rows are written with
   their new values, and their old rows are marked in vectors. Otherwise all rows of those files are
   written again, the matching ones with their new values: in their places, or after the others
   where texts or nested values change. With the change data feed, the old and the new rows are
   written to change files, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from optimist.core.commands.marked_files import ChosenRows, only_chosen
from optimist.core.commands.row_rewrite import RowCommand
from optimist.core.commands.touched_files import TouchedFiles
from optimist.core.commands.written_files import WrittenFiles
from optimist.core.data.parquet.parquet_reader import Positions
from optimist.core.data.parquet.text_dictionaries import with_plain_texts
from optimist.core.local.assignments import LocalAssignments
from optimist.core.local.conditions import LocalCondition
from optimist.core.local.row_writer import AFTER, BEFORE, KEPT, RowWriter, Written
from optimist.core.local.target import is_among
from optimist.core.transaction.optimistic import OptimisticTransaction

__all__ = ["LocalUpdate"]


@dataclass(frozen=True, slots=True)
class LocalUpdate:
    """One UPDATE, as a `RowTarget`.

    Attributes:
        writer: Writes the rows.
        condition: The condition for matching rows; None for all rows.
        assignments: The new values.
    """

    command: ClassVar[RowCommand] = "UPDATE"
    writer: RowWriter
    condition: LocalCondition | None
    assignments: LocalAssignments

    @property
    def txn(self) -> OptimisticTransaction:
        """The transaction."""
        return self.writer.target.txn

    def search(self, candidates: pa.Table, *, with_rows: bool) -> TouchedFiles:  # noqa: ARG002
        """Find the matching rows, with their positions (see `RowTarget`)."""
        return self.writer.target.search(candidates, self.condition)

    def write(self, touched: TouchedFiles, chosen: Sequence[ChosenRows] | None) -> WrittenFiles:
        """Write the chosen rows, or all rows of whole files, the matching ones with new values."""
        files = touched.files if chosen is None else only_chosen(chosen)
        matching = touched.rows if chosen is None else None
        change = _Update(self.assignments, matching, apart=self.writer.records_changes)
        return self.writer.rewrite(files, "UPDATE", change, with_dictionaries=True)


@dataclass(frozen=True, slots=True)
class _Update:
    """Changes the rows of a file.

    Attributes:
        assignments: The new values.
        rows: The positions of the matching rows in each file; None if every row matches.
        apart: Whether the matching rows must be told apart from the others, for the change feed.
    """

    assignments: LocalAssignments
    rows: tuple[BitMap64, ...] | None
    apart: bool

    def __call__(
        self, index: int, batch: pa.RecordBatch, positions: Positions
    ) -> Iterator[Written]:
        whole = pa.Table.from_batches([batch])
        if self.rows is None:
            whole = with_plain_texts(whole)
            yield AFTER, self.assignments.updated(whole, whole)
            yield BEFORE, whole
            return
        mask = is_among(positions(), self.rows[index])
        hit = with_plain_texts(whole.filter(mask))
        new = self.assignments.updated(hit, hit)
        others = set(self.assignments.schema.names) - self.assignments.changed
        changed = [name for name in whole.column_names if name not in others]
        if not self.apart and all(_has_fixed_size(whole[name].type) for name in changed):
            yield KEPT, _with_new_values(whole, mask, new.select(changed))
            return
        yield KEPT, whole.filter(pc.invert(mask))
        yield AFTER, new
        yield BEFORE, hit


def _has_fixed_size(data_type: pa.DataType) -> bool:
    """Tell whether old and new values always fit in one array, as too long texts may not."""
    return bool(pa.types.is_primitive(data_type) or pa.types.is_decimal(data_type))


def _with_new_values(rows: pa.Table, mask: pa.BooleanArray, new: pa.Table) -> pa.Table:
    """Return the rows, with the new values of some columns in the rows that the mask chooses."""
    for name in new.column_names:
        at = rows.schema.get_field_index(name)
        old, values = rows[name].combine_chunks(), new[name].combine_chunks()
        changed = pc.replace_with_mask(old, mask, values)
        rows = rows.set_column(at, rows.schema.field(at), changed)
    return rows
