"""DELETE, by vectors or by copy on write (spec 10.15, profiles D0, DP and DX of 2.13).

1. Without a condition, or with one on only partition columns, whole files are removed, and no row
   is read.
2. Otherwise one pass finds the files with matching rows, among the files that statistics can't rule
   out.
3. If the table has deletion vectors, those rows are marked in vectors, and no row is written.
   Otherwise those files are removed, and their other rows are written again. With the change data
   feed, the same pass also writes the deleted rows to change files.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from optimist.core.commands.command import Changes
from optimist.core.commands.marked_files import ChosenRows, only_chosen
from optimist.core.commands.rewrite import Rewrite
from optimist.core.commands.row_changes import changes_of_delete
from optimist.core.commands.row_rewrite import RowCommand
from optimist.core.commands.stopwatch import Stopwatch
from optimist.core.commands.touched_files import TouchedFiles
from optimist.core.commands.uncommitted_files import UncommittedFiles
from optimist.core.commands.written_files import WrittenFiles
from optimist.core.data.change_files import CHANGE_TYPE, DELETE
from optimist.core.local.delete import LocalDelete
from optimist.core.table.table_handle import TableHandle
from optimist.core.transaction.optimistic import OptimisticTransaction
from optimist.spark.commands.dml.pinned_condition import PinnedCondition
from optimist.spark.commands.dml.row_rewrite import rewrite, run
from optimist.spark.commands.dml.target import Target
from optimist.spark.conditions.bound_condition import BoundCondition
from optimist.spark.conditions.condition import Condition
from optimist.spark.rows.row_shape import with_new_columns, without_void
from optimist.spark.session.job_scope import described

__all__ = ["delete", "delete_rows"]


def delete(
    spark: SparkSession,
    log: TableHandle,
    condition: Column | str | BoundCondition | None = None,
    *,
    alias: str | None = None,
) -> int:
    """Delete the rows for which the condition is true, or all rows without a condition.

    Returns:
        The number of deleted rows; -1 if whole files were removed whose statistics do not count
        rows.

    Raises:
        DeltaConcurrentModificationException: Another commit changed what this one read; nothing is
            deleted.
        ProtocolError: The table has a feature under which files can't be rewritten yet.
        UsageError: The condition is not deterministic, or is a column with a subquery on
            Spark Connect.
    """
    pinned = PinnedCondition(spark, log, condition, alias)

    def work(txn: OptimisticTransaction, pending: UncommittedFiles) -> Changes:
        target = Target.of(spark, log, txn, alias)
        watch = target.stopwatch()
        resolved = pinned.resolved(target, target.columns())
        done = delete_rows(target, resolved, pending, watch)
        return changes_of_delete(
            done, None if resolved is None else resolved.text, txn.table, watch
        )

    with described(spark, "DELETE", log.table.table_path):
        return run(spark, log, work, pinned.begin).num_affected


def delete_rows(
    target: Target, condition: Condition | None, pending: UncommittedFiles, watch: Stopwatch
) -> Rewrite:
    """Find the matching rows, and mark them in vectors or write the other rows of their files."""
    on_spark = _Delete(target, condition, pending)
    return rewrite(target, condition, pending, watch, in_driver=LocalDelete, on_spark=on_spark)


@dataclass(frozen=True, slots=True)
class _Delete:
    """The deletion of rows by Spark, as a `RowTarget`."""

    command: ClassVar[RowCommand] = "DELETE"
    target: Target
    condition: Condition | None
    pending: UncommittedFiles

    @property
    def txn(self) -> OptimisticTransaction:
        return self.target.txn

    def search(self, candidates: pa.Table, *, with_rows: bool) -> TouchedFiles:
        is_asked_once = self.condition is not None and self.condition.is_asked_once
        return self.target.search(candidates, self.condition, with_rows=with_rows or is_asked_once)

    def write(self, touched: TouchedFiles, chosen: Sequence[ChosenRows] | None) -> WrittenFiles:
        """Write the rows of whole files for which the condition is false or null."""
        condition, target = self.condition, self.target
        if chosen is not None or condition is None or not touched.num_matching:
            return WrittenFiles()
        has_changes = target.writer.records_changes
        rows = self._rows_to_write(condition, touched, has_changes=has_changes)
        # A write that replaces rows may have added columns that these rows do not have yet.
        sql = target.writer.table_sql(target.spark)
        rows = with_new_columns(rows, target.snapshot.schema, sql)
        more = (*target.carried.names, *((CHANGE_TYPE,) if has_changes else ()))
        rows = without_void(rows, sql.schema, *more)
        return target.writer.write(rows, self.pending, has_changes=has_changes)

    def _rows_to_write(
        self, condition: Condition, touched: TouchedFiles, *, has_changes: bool
    ) -> DataFrame:
        """Return the touched files' rows that stay, and with changes also the deleted rows."""
        name = "DELETE of single rows"
        if condition.is_asked_once:
            kept = self.target.rows_of(touched.others(self.txn.table), name)
            if not has_changes:
                return kept
            found = touched.choose_rows(self.txn.table) or ()
            gone = self.target.rows_of(only_chosen(found), name)
        else:
            rows = self.target.rows_of(touched.files, name)
            if has_changes and condition.source is None:
                kind = sf.when(condition.column, sf.lit(DELETE)).alias(CHANGE_TYPE)
                return rows.select("*", kind)
            kept, gone = condition.others(rows), condition.matching(rows)
        if not has_changes:
            return kept
        kept = kept.withColumn(CHANGE_TYPE, sf.lit(None).cast("string"))
        return kept.unionAll(gone.withColumn(CHANGE_TYPE, sf.lit(DELETE)))
