"""UPDATE without Spark, by vectors or by copy on write (spec 10.15, profile U of 2.13).

1. If the condition names data columns, the files that statistics leave are searched: only the
   columns of the condition. Otherwise the log alone tells the files.
2. Where the table has deletion vectors, and rows were looked for, the matching rows are written
   with their new values, and marked in vectors where they were. Elsewhere all rows of those files
   are written again, the matching ones with their new values.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from optimist.core.commands.command import Stopwatch
from optimist.core.commands.marked_files import MarkedFiles, only_chosen
from optimist.core.commands.rewrite import Rewrite
from optimist.core.commands.touched_files import has_vectors
from optimist.core.data.parquet_reader import Positions
from optimist.core.local.assignments import LocalAssignments
from optimist.core.local.conditions import LocalCondition
from optimist.core.local.rewriting import RowWriter
from optimist.core.local.target import is_among

__all__ = ["update_rows"]


def update_rows(
    writer: RowWriter, condition: LocalCondition | None, assignments: LocalAssignments
) -> Rewrite:
    """Find the matching rows, and write them, or all rows of their files, again.

    Raises:
        ProtocolError: The table has a feature under which files can't be rewritten yet.
        SchemaError: A new value does not fit its column, or breaks a rule of the table.
        TableError: A file is outside the table, or can't be read.
        StorageError: The file system failed.
    """
    target = writer.target
    watch = Stopwatch(target.table.clock)
    touched = target.matching_files(condition)
    scan_ms = watch.lap_ms()
    is_marked = has_vectors(target.snapshot) and target.table.options.update_by_vectors
    chosen = touched.choose_rows(target.table) if is_marked else None
    files = MarkedFiles(emptied=touched.adds)
    if chosen is None:
        change = _Update(assignments, touched.rows)
        written = writer.rewrite(touched.table, "UPDATE", change)
    else:
        change = _Update(assignments, None)
        written = writer.rewrite(only_chosen(chosen), "UPDATE", change)
        files = MarkedFiles.write(target.table, chosen, writer.pending)
    return Rewrite(
        files.emptied, written, touched.num_matching, scan_ms, watch.lap_ms(), files.marked
    )


@dataclass(frozen=True, slots=True)
class _Update:
    """The new rows for those of a file.

    Attributes:
        assignments: What is set.
        rows: The positions of the matching rows in each file; None where every row matches.
    """

    assignments: LocalAssignments
    rows: tuple[BitMap64, ...] | None

    def __call__(self, place: int, batch: pa.RecordBatch, positions: Positions) -> pa.Table:
        whole = pa.Table.from_batches([batch])
        if self.rows is None:
            return self.assignments.updated(whole, whole)
        mask = is_among(positions(), self.rows[place])
        hit = whole.filter(mask)
        # The matching rows come last, as the order of rows means nothing.
        return pa.concat_tables([whole.filter(pc.invert(mask)), self.assignments.updated(hit, hit)])
