"""UPDATE, by vectors or by copy on write (spec 10.15, profile U of 2.13).

1. If the condition names data columns, one pass finds the files with matching rows. Otherwise the
   log alone is enough to find the files.
2. If the table has deletion vectors, and rows were searched, the matching rows are written with
   their new values, and their old positions are marked in vectors. Unless the files are large, the
   pass that found the rows has also computed these values, and stored them on the executors.
3. Otherwise all rows of those files are written again, the matching ones with their new values.

Generated columns that are not assigned are computed again in the matching rows, and every
constraint is checked. With the change data feed, the pass that writes a row also writes its new and
old values to change files, so each new value is computed once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import reduce
from typing import ClassVar

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from optimist.core.commands.command import Changes
from optimist.core.commands.marked_files import ChosenRows, only_chosen
from optimist.core.commands.row_changes import changes_of_update
from optimist.core.commands.row_rewrite import RowCommand
from optimist.core.commands.row_rules import ensure_rows_can_be_checked
from optimist.core.commands.touched_files import TouchedFiles
from optimist.core.commands.uncommitted_files import UncommittedFiles
from optimist.core.commands.written_files import WrittenFiles
from optimist.core.local.conditions import LocalCondition
from optimist.core.local.row_writer import RowWriter
from optimist.core.local.update import LocalUpdate
from optimist.core.log.file_table import files_table
from optimist.core.schema.identity_columns import ensure_none_updated
from optimist.core.table.table_handle import TableHandle
from optimist.core.transaction.optimistic import OptimisticTransaction
from optimist.spark.commands.dml.local_values import LocalValues
from optimist.spark.commands.dml.pinned_condition import PinnedCondition
from optimist.spark.commands.dml.row_rewrite import rewrite, run
from optimist.spark.commands.dml.target import Target
from optimist.spark.commands.dml.updated_rows import UpdatedRows
from optimist.spark.conditions.bound_condition import BoundCondition
from optimist.spark.conditions.condition import Condition
from optimist.spark.rows.assignments import Assignments
from optimist.spark.rows.places import Places
from optimist.spark.rows.row_shape import column_of
from optimist.spark.rows.stored_rows import stored_rows
from optimist.spark.rows.touched_files import aliased, matches_of
from optimist.spark.session.job_scope import described
from optimist.spark.session.pyspark_versions import is_connect

__all__ = ["update"]


def update(
    spark: SparkSession,
    log: TableHandle,
    condition: Column | str | BoundCondition | None,
    assignments: Mapping[str, Column | str],
    *,
    alias: str | None = None,
) -> int:
    """Set columns to new values in matching rows, or in all rows without a condition.

    Args:
        spark: The session.
        log: The table.
        condition: SQL text or a column.
        assignments: Maps names of columns or struct fields (`pos.lat`) to new values, SQL text or
            columns; they see the row before the update. See `Assignments`.
        alias: The name that the condition and the values may use for the table.

    Returns:
        The number of updated rows.

    Raises:
        DeltaConcurrentModificationException: Another commit changed what this one read; nothing is
            updated.
        ProtocolError: The table has a feature under which files can't be rewritten yet.
        SchemaError: A target does not exist, or a new value violates a constraint or has other
            fields than its column.
        UsageError: Nothing is assigned, or a target is assigned twice; or the condition is not
            deterministic, or is a column with a subquery on Spark Connect.
    """
    pinned = PinnedCondition(spark, log, condition, alias, assignments.values())

    def work(txn: OptimisticTransaction, pending: UncommittedFiles) -> Changes:
        target = Target.of(spark, log, txn, alias)
        watch, frame = target.stopwatch(), target.columns()
        resolved = pinned.resolved(target, frame)
        rows = _resolve_values(target, frame, assignments)
        with ExitStack() as until_written:
            done = rewrite(
                target,
                resolved,
                pending,
                watch,
                in_driver=lambda writer, known: _in_driver(writer, known, rows),
                on_spark=_Update(rows, resolved, pending, until_written),
            )
        text = None if resolved is None else resolved.text
        return changes_of_update(done, text, txn.table, watch)

    with described(spark, "UPDATE", log.table.table_path):
        return run(spark, log, work, pinned.begin).num_affected


def _resolve_values(
    target: Target, frame: DataFrame, assignments: Mapping[str, Column | str]
) -> UpdatedRows:
    """Let Spark resolve the new values, before any row is read."""
    sql = target.writer.table_sql(target.spark)
    new_values = Assignments.resolve(frame, assignments, sql, target.alias)
    new_values = new_values.mapped(target.fixed_now(frame).fixed)
    ensure_none_updated(sql.schema, new_values.columns)
    rows = UpdatedRows(target, sql, new_values)
    _ = rows.updated(frame, sf.lit(True)).schema
    return rows


def _in_driver(
    writer: RowWriter, condition: LocalCondition | None, rows: UpdatedRows
) -> LocalUpdate:
    snapshot, spark = rows.target.snapshot, rows.target.spark
    ensure_rows_can_be_checked(snapshot.metadata, snapshot.schema, snapshot.schema, in_session=True)
    values = LocalValues.of_table(spark, snapshot.schema)
    return LocalUpdate(writer, condition, values.assignments(rows.assignments, snapshot.schema))


@dataclass(frozen=True, slots=True, kw_only=True)
class _ComputedFiles(TouchedFiles):
    """Files whose matching rows were computed in the pass that found them.

    Attributes:
        computed: The result of `UpdatedRows.computed` for these rows, stored on the executors.
    """

    computed: DataFrame


@dataclass(frozen=True, slots=True)
class _Update:
    """The update of rows by Spark, as a `RowTarget`.

    Attributes:
        rows: Computes and writes them.
        condition: The condition; None for all rows.
        pending: Takes care of the written files.
        until_written: Frees the rows that are stored on the executors, when it ends.
    """

    command: ClassVar[RowCommand] = "UPDATE"
    rows: UpdatedRows
    condition: Condition | None
    pending: UncommittedFiles
    until_written: ExitStack

    @property
    def target(self) -> Target:
        return self.rows.target

    @property
    def txn(self) -> OptimisticTransaction:
        return self.target.txn

    def search(self, candidates: pa.Table, *, with_rows: bool) -> TouchedFiles:
        if self.condition is not None and self.condition.is_asked_once and not with_rows:
            return self.target.search(candidates, self.condition, with_rows=True)
        return self.target.search(
            candidates, self.condition, with_rows=with_rows, one_pass=self._find_and_compute
        )

    def write(self, touched: TouchedFiles, chosen: Sequence[ChosenRows] | None) -> WrittenFiles:
        """Write the chosen rows, or all rows of whole files, with new values in matching rows."""
        if chosen is None and self.condition is not None and self.condition.is_asked_once:
            return self._write_found(touched)
        if chosen is None:
            matches = sf.lit(True)
            if self.condition is not None:
                matches = sf.coalesce(self.condition.column, sf.lit(False))
            return self._write_files(touched.files, matches, only_matching=False)
        if not isinstance(touched, _ComputedFiles):
            return self._write_files(only_chosen(chosen), sf.lit(True), only_matching=True)
        if not chosen:
            return WrittenFiles()
        self.target.ensure_rewritable(files_table(item.file for item in chosen), "UPDATE")
        return self.rows.write(touched.computed, self.pending)

    def _write_files(
        self, files: pa.Table, matches: Column, *, only_matching: bool
    ) -> WrittenFiles:
        """Write the rows of some files again.

        Args:
            files: Rows of `Snapshot.files`.
            matches: A condition for the rows that get new values.
            only_matching: True if every row matches.
        """
        if not files.num_rows:
            return WrittenFiles()
        frame, condition = self.target.rows_of(files, "UPDATE"), self.condition
        if only_matching and condition is not None and condition.never_fails:
            # The filter changes nothing, but lets Spark skip parts of files. Not on Spark Connect,
            # which analyses the condition again: it might drop rows that are marked as deleted.
            frame = frame if is_connect(self.target.spark) else frame.where(condition.column)
        return self.rows.write(self.rows.computed(frame, matches), self.pending)

    def _write_found(self, touched: TouchedFiles) -> WrittenFiles:
        """Write all rows of the files again, with new values in the rows that were found."""
        found = touched.choose_rows(self.txn.table)
        if not found:
            return WrittenFiles()
        parts = ((touched.others(self.txn.table), False), (only_chosen(found), True))
        computed = [
            self.rows.computed(self.target.rows_of(files, "UPDATE"), sf.lit(matches))
            for files, matches in parts
        ]
        return self.rows.write(reduce(DataFrame.unionAll, computed), self.pending)

    def _find_and_compute(self, candidates: pa.Table) -> TouchedFiles:
        """Find the matching rows, and compute their new values in the same pass."""
        target, condition = self.target, self.condition
        snapshot, plane = target.snapshot, target.plane
        names = [*snapshot.schema.names, *target.carried.names]
        places = Places.beside(names, with_position=True)
        frame = aliased(
            plane.placed_rows(snapshot, candidates, places, names, with_row_ids=True), target.alias
        )
        if condition is not None:
            frame = aliased(condition.matching(frame), target.alias)
        fields = [item.name for item in places.fields]
        computed = self.rows.computed(frame, sf.lit(True), [*map(column_of, fields)])
        stored = self.until_written.enter_context(stored_rows(computed, at_once=False))
        matches = matches_of(stored, places)
        found = matches.files(candidates, plane.find_paths(snapshot, candidates, matches.paths))
        return _ComputedFiles(
            found.files, found.num_matching, found.rows, computed=stored.drop(*fields)
        )
