"""UPDATE without Spark, by vectors or by copy on write (spec 10.15, profile U of 2.13).

1. If the condition names data columns, the files that statistics leave are searched: only the
   columns of the condition. Otherwise the log alone tells the files.
2. Where the table has deletion vectors, and rows were looked for, the matching rows are written
   with their new values, and marked in vectors where they were. Elsewhere all rows of those files
   are written again, the matching ones with their new values. With the change data feed, the rows
   as they were and as they are now are written to change files.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from optimist.core.commands.command import Stopwatch
from optimist.core.commands.marked_files import MarkedFiles, only_chosen
from optimist.core.commands.rewrite import Rewrite
from optimist.core.commands.touched_files import has_vectors
from optimist.core.commands.written_files import WrittenFiles
from optimist.core.data.parquet_reader import Positions
from optimist.core.local.assignments import LocalAssignments
from optimist.core.local.conditions import LocalCondition
from optimist.core.local.rewriting import AFTER, BEFORE, KEPT, RowWriter, Written
from optimist.core.local.target import is_among

__all__ = ["update_rows", "write_updated"]


def update_rows(
    writer: RowWriter, condition: LocalCondition | None, assignments: LocalAssignments
) -> Rewrite:
    """Find the matching rows, and write them, or all rows of their files, again.

    Raises:
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
        written = write_updated(writer, touched.table, assignments, touched.rows)
    else:
        written = write_updated(writer, only_chosen(chosen), assignments)
        files = MarkedFiles.write(target.table, chosen, writer.pending)
    return Rewrite(
        files.emptied, written, touched.num_matching, scan_ms, watch.lap_ms(), files.marked
    )


def write_updated(
    writer: RowWriter,
    files: pa.Table,
    assignments: LocalAssignments,
    rows: tuple[BitMap64, ...] | None = None,
) -> WrittenFiles:
    """Write the rows of some files again.

    Args:
        writer: Writes them.
        files: Rows of `Snapshot.files`.
        assignments: What is set.
        rows: The positions of the rows for which it is set, in each of the files; None for all.
    """
    return writer.rewrite(files, "UPDATE", _Update(assignments, rows))


@dataclass(frozen=True, slots=True)
class _Update:
    """What becomes of the rows of a file.

    Attributes:
        assignments: What is set.
        rows: The positions of the matching rows in each file; None where every row matches.
    """

    assignments: LocalAssignments
    rows: tuple[BitMap64, ...] | None

    def __call__(
        self, place: int, batch: pa.RecordBatch, positions: Positions
    ) -> Iterator[Written]:
        hit = whole = pa.Table.from_batches([batch])
        if self.rows is not None:
            mask = is_among(positions(), self.rows[place])
            hit = whole.filter(mask)
            yield KEPT, whole.filter(pc.invert(mask))
        # The matching rows come last, as the order of rows means nothing.
        yield AFTER, self.assignments.updated(hit, hit)
        yield BEFORE, hit
