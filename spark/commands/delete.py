"""DELETE, by vectors or by copy on write (spec 10.15, profiles D0, DP and DX of 2.13).

1. Without a condition, or with one on partition columns alone, whole files are removed, and no row
   is read.
2. Otherwise one pass finds the files with matching rows, among those that statistics leave.
3. Where the table has deletion vectors, those rows are marked in vectors, and no row is written.
   Elsewhere those files are removed, and their other rows are written again. With the change data
   feed, the same pass then writes the deleted rows to change files.

Where the work is small, the driver does it without a Spark job, see `LocalPlane`.
"""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as sf

from optimist.core.commands.command import Changes, run_command
from optimist.core.commands.marked_files import MarkedFiles
from optimist.core.commands.reruns import run_until_it_lands
from optimist.core.commands.rewrite import Rewrite
from optimist.core.commands.row_changes import changes_of_delete, num_affected_rows
from optimist.core.commands.touched_files import TouchedFiles, has_vectors
from optimist.core.commands.uncommitted_files import UncommittedFiles
from optimist.core.commands.written_files import WrittenFiles
from optimist.core.data.change_files import CHANGE_TYPE, DELETE
from optimist.core.local.delete import write_others
from optimist.core.table.delta_log import DeltaLog
from optimist.core.transaction.optimistic import OptimisticTransaction
from optimist.spark.commands.target import Target
from optimist.spark.conditions.condition import Condition
from optimist.spark.rows.row_shape import with_new_columns, without_void
from optimist.spark.session.unchanged_conf import unchanged_conf

__all__ = ["delete", "delete_rows"]


def delete(
    spark: SparkSession,
    log: DeltaLog,
    condition: Column | str | None = None,
    *,
    alias: str | None = None,
) -> int:
    """Delete the rows for which the condition is true; all rows without one.

    Returns:
        How many rows that are; -1 if whole files went, and their statistics do not tell.

    Raises:
        DeltaConcurrentModificationException: Another commit changed what this one read; nothing is
            deleted.
        ProtocolError: The table has a feature under which files can't be rewritten yet.
        UsageError: The condition is not deterministic or holds a subquery.
    """

    def run(txn: OptimisticTransaction) -> int:
        num_affected = 0

        def work(files: UncommittedFiles) -> Changes:
            nonlocal num_affected
            with unchanged_conf(spark):
                changes = _delete(Target.of(spark, log, txn, alias), condition, files)
            num_affected = num_affected_rows(changes)
            return changes

        run_command(txn, work)
        return num_affected

    return run_until_it_lands(lambda: log.start_transaction(log.snapshot()), run)


def _delete(target: Target, condition: Column | str | None, files: UncommittedFiles) -> Changes:
    watch = target.stopwatch()
    resolved = None if condition is None else target.resolve(condition, target.columns())
    rewrite = delete_rows(target, resolved, files)
    text = None if resolved is None else resolved.text
    return changes_of_delete(rewrite, text, target.writer.txn.table, watch)


def delete_rows(target: Target, condition: Condition | None, files: UncommittedFiles) -> Rewrite:
    """Find the matching rows, and mark them in vectors or write the other rows of their files."""
    watch = target.stopwatch()
    table = target.writer.txn.table
    with_rows = has_vectors(target.snapshot) and table.options.delete_by_vectors
    touched = target.matching_files(condition, with_rows=with_rows)
    scan_ms = watch.lap_ms()
    chosen = touched.choose_rows(table) if with_rows else None
    if chosen is not None:
        files_now = MarkedFiles.write(table, chosen, files)
        return Rewrite(
            files_now.emptied,
            WrittenFiles(),
            touched.num_matching,
            scan_ms,
            watch.lap_ms(),
            files_now.marked,
        )
    kept = WrittenFiles()
    if condition is not None and touched.num_matching:
        kept = _written_here(target, touched, files) or _write_others(
            target, touched.table, condition, files
        )
    return Rewrite(touched.adds, kept, touched.num_matching, scan_ms, watch.lap_ms())


def _written_here(
    target: Target, touched: TouchedFiles, files: UncommittedFiles
) -> WrittenFiles | None:
    """As `_write_others`, in this process; None where Spark has to do it."""
    plane = target.local_plane
    if touched.rows is None or not plane.takes(touched.table):
        return None
    return plane.written(files, lambda writer: write_others(writer, touched), is_checked=False)


def _write_others(
    target: Target, touched: pa.Table, condition: Condition, files: UncommittedFiles
) -> WrittenFiles:
    """Write the rows again for which the condition is not true; null keeps a row."""
    rows = target.rows_of(touched, "DELETE of single rows")
    has_changes = target.writer.records_changes
    if not has_changes:
        rows = condition.others(rows)
    elif condition.source is None:
        kind = sf.when(condition.column, sf.lit(DELETE)).alias(CHANGE_TYPE)
        rows = rows.select("*", kind)
    else:
        kept = condition.others(rows).withColumn(CHANGE_TYPE, sf.lit(None).cast("string"))
        gone = condition.matching(rows).withColumn(CHANGE_TYPE, sf.lit(DELETE))
        rows = kept.unionAll(gone)
    # A write that replaces rows may have given the table columns that these do not have yet.
    sql = target.writer.table_sql(target.spark)
    rows = with_new_columns(rows, target.snapshot.schema, sql)
    more = (*target.carried.names, *((CHANGE_TYPE,) if has_changes else ()))
    rows = without_void(rows, sql.schema, *more)
    return target.writer.write(rows, files, has_changes=has_changes)
