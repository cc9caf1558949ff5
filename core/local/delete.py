"""DELETE without Spark, by vectors or by copy on write (spec 10.15, profiles D0, DP, DX of 2.13).

1. Without a condition, or with one on partition columns alone, whole files are removed, and no row
   is read.
2. Otherwise the files that statistics leave are searched: only the columns of the condition.
3. Where the table has deletion vectors, the matching rows are marked in vectors, and no row is
   written. Elsewhere those files are removed, and their other rows are written again. With the
   change data feed, the deleted rows are then written to change files.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.commands.command import Stopwatch
from optimist.core.commands.marked_files import MarkedFiles
from optimist.core.commands.rewrite import Rewrite
from optimist.core.commands.touched_files import TouchedFiles, has_vectors
from optimist.core.commands.written_files import WrittenFiles
from optimist.core.data.parquet_reader import Positions
from optimist.core.local.conditions import LocalCondition
from optimist.core.local.rewriting import DELETED, KEPT, RowWriter, Written
from optimist.core.local.target import is_among

__all__ = ["delete_rows", "write_others"]


def delete_rows(writer: RowWriter, condition: LocalCondition | None) -> Rewrite:
    """Find the matching rows, and mark them in vectors or write the other rows of their files.

    Raises:
        TableError: A file is outside the table, or can't be read.
        StorageError: The file system failed.
    """
    target = writer.target
    watch = Stopwatch(target.table.clock)
    touched = target.matching_files(condition)
    scan_ms = watch.lap_ms()
    if has_vectors(target.snapshot) and target.table.options.delete_by_vectors:
        chosen = touched.choose_rows(target.table)
        if chosen is not None:
            files = MarkedFiles.write(target.table, chosen, writer.pending)
            return Rewrite(
                files.emptied,
                WrittenFiles(),
                touched.num_matching,
                scan_ms,
                watch.lap_ms(),
                files.marked,
            )
    kept = write_others(writer, touched)
    return Rewrite(touched.adds, kept, touched.num_matching, scan_ms, watch.lap_ms())


def write_others(writer: RowWriter, touched: TouchedFiles) -> WrittenFiles:
    """Write the rows again that do not match, of files of which some rows do."""
    deleted = touched.rows
    if not deleted:
        return WrittenFiles()

    has_changes = writer.records_changes

    def others(place: int, batch: pa.RecordBatch, positions: Positions) -> Iterator[Written]:
        rows, is_deleted = pa.Table.from_batches([batch]), is_among(positions(), deleted[place])
        yield KEPT, rows.filter(pc.invert(is_deleted))
        if has_changes:
            yield DELETED, rows.filter(is_deleted)

    return writer.rewrite(touched.table, "DELETE", others)
