"""UPDATE, by vectors or by copy on write (spec 10.15, profile U of 2.13).

1. If the condition names data columns, one pass finds the files with matching rows; otherwise the
   log alone tells the files.
2. Where the table has deletion vectors, and rows were looked for, the matching rows are written
   with their new values, and marked in vectors where they were. Unless the files are large, the
   pass that found the rows has computed these values, too, and stored them on the executors.
3. Elsewhere all rows of those files are written again, the matching ones with their new values.

Generated columns that are not assigned are computed again in the rows that match, and every
constraint is checked. With the change data feed, the pass that writes a row also writes it, and the
row it was before, to change files: so each new value is computed once.

Where the work is small, the driver does it without a Spark job, see `LocalPlane`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from optimist.core.commands.command import Changes, run_command
from optimist.core.commands.marked_files import ChosenRows, MarkedFiles, only_chosen
from optimist.core.commands.reruns import run_until_it_lands
from optimist.core.commands.rewrite import Rewrite
from optimist.core.commands.row_changes import changes_of_update, num_affected_rows
from optimist.core.commands.touched_files import TouchedFiles, has_vectors
from optimist.core.commands.uncommitted_files import UncommittedFiles
from optimist.core.commands.written_files import WrittenFiles
from optimist.core.data.table_ref import TableRef
from optimist.core.local.append import ensure_rows_can_be_checked
from optimist.core.local.rewriting import RowWriter
from optimist.core.local.update import write_updated
from optimist.core.log.file_table import files_table
from optimist.core.schema.generated_columns import generation_expression
from optimist.core.schema.identity_columns import ensure_none_updated
from optimist.core.schema.types import StructField, StructType
from optimist.core.table.delta_log import DeltaLog
from optimist.core.transaction.optimistic import OptimisticTransaction
from optimist.spark.commands.checks import checked_rows
from optimist.spark.commands.local_values import LocalValues
from optimist.spark.commands.target import Target
from optimist.spark.conditions.condition import Condition
from optimist.spark.rows.assignments import Assignments
from optimist.spark.rows.changed_rows import KEPT, UPDATED, kinds_of, with_changes
from optimist.spark.rows.places import Places
from optimist.spark.rows.row_ids import moved_row_ids
from optimist.spark.rows.row_shape import column_of, free_name, quoted
from optimist.spark.rows.stored_rows import stored_rows
from optimist.spark.rows.touched_files import aliased, matches_of
from optimist.spark.session.callback_errors import told_as_write
from optimist.spark.session.pyspark_versions import is_connect
from optimist.spark.session.unchanged_conf import unchanged_conf
from optimist.spark.spark_schema import VOID, to_spark_type
from optimist.spark.sql.table_sql import TableSql

__all__ = ["update"]


def update(
    spark: SparkSession,
    log: DeltaLog,
    condition: Column | str | None,
    assignments: Mapping[str, Column | str],
    *,
    alias: str | None = None,
) -> int:
    """Set columns to new values in rows for which the condition is true; in all without one.

    Args:
        spark: The session.
        log: The table.
        condition: SQL text or a column.
        assignments: Names of columns or of struct fields (`pos.lat`) to new values, SQL text or
            columns; they see the row as it was. See `Assignments`.
        alias: The name that the condition and the values may use for the table.

    Returns:
        How many rows that are.

    Raises:
        DeltaConcurrentModificationException: Another commit changed what this one read; nothing is
            updated.
        ProtocolError: The table has a feature under which files can't be rewritten yet.
        SchemaError: A target does not exist, or a new value violates a constraint or has other
            fields than its column.
        UsageError: Nothing is assigned, or something twice; or the condition is not deterministic
            or holds a subquery.
    """

    def run(txn: OptimisticTransaction) -> int:
        num_affected = 0

        def work(files: UncommittedFiles) -> Changes:
            nonlocal num_affected
            target = Target.of(spark, log, txn, alias)
            with unchanged_conf(spark):
                changes = _Update.of(target, condition, assignments).run(files)
            num_affected = num_affected_rows(changes)
            return changes

        with told_as_write():
            run_command(txn, work)
        return num_affected

    return run_until_it_lands(lambda: log.start_transaction(log.snapshot()), run)


@dataclass(frozen=True, slots=True)
class _Update:
    """One update, its expressions resolved."""

    target: Target
    sql: TableSql
    condition: Condition | None
    assignments: Assignments

    @classmethod
    def of(
        cls,
        target: Target,
        condition: Column | str | None,
        assignments: Mapping[str, Column | str],
    ) -> _Update:
        frame = target.columns()
        resolved = None if condition is None else target.resolve(condition, frame)
        sql = target.writer.table_sql(target.spark)
        new_values = Assignments.resolve(frame, assignments, sql, target.alias)
        new_values = new_values.mapped(target.one_time(frame).fixed)
        ensure_none_updated(sql.schema, new_values.columns)
        job = cls(target, sql, resolved, new_values)
        _ = job.updated(
            frame, job._matches()
        ).schema  # Spark resolves the values now, before anything is read
        return job

    def run(self, files: UncommittedFiles) -> Changes:
        """Find the files, and write their matching rows, or all of them, again."""
        watch = self.target.stopwatch()
        with_rows = has_vectors(self.target.snapshot) and self.table.options.update_by_vectors
        with ExitStack() as until_written:
            search = _FindAndCompute(self, until_written)
            touched = self.target.matching_files(self.condition, with_rows=with_rows, search=search)
            scan_ms = watch.lap_ms()
            chosen = touched.choose_rows(self.table) if with_rows else None
            if chosen is None:
                files_now = MarkedFiles(emptied=touched.adds)
                written = self._written_here(touched, files) or self.write(touched.table, files)
            else:
                files_now = MarkedFiles.write(self.table, chosen, files)
                written = self._write_chosen(chosen, search.found, files)
        rewrite = Rewrite(
            files_now.emptied,
            written,
            touched.num_matching,
            scan_ms,
            watch.lap_ms(),
            files_now.marked,
        )
        text = None if self.condition is None else self.condition.text
        return changes_of_update(rewrite, text, self.table, watch)

    @property
    def table(self) -> TableRef:
        """The table."""
        return self.target.writer.txn.table

    def _written_here(self, touched: TouchedFiles, files: UncommittedFiles) -> WrittenFiles | None:
        """As `write`, in this process; None where Spark has to do it."""
        plane, snapshot = self.target.local_plane, self.target.snapshot
        is_known = touched.rows is not None or touched.num_matching is None
        if not (touched.table.num_rows and is_known and plane.takes(touched.table)):
            return None

        def write(writer: RowWriter) -> WrittenFiles:
            ensure_rows_can_be_checked(snapshot.metadata, snapshot.schema, snapshot.schema)
            values = LocalValues.of_table(self.target.spark, snapshot.schema)
            assignments = values.assignments(self.assignments, snapshot.schema)
            return write_updated(writer, touched.table, assignments, touched.rows)

        return plane.written(files, write)

    def write(
        self, read: pa.Table, files: UncommittedFiles, *, are_chosen: bool = False
    ) -> WrittenFiles:
        """Write the rows of some files again.

        Args:
            read: The files, as rows of `Snapshot.files`.
            files: Looks after the new files.
            are_chosen: Every row is one that matches.
        """
        if not read.num_rows:
            return WrittenFiles()
        rows = self.target.rows_of(read, "UPDATE")
        condition = self.condition
        if are_chosen and condition is not None and condition.predicate.is_exact:
            # It changes nothing, and lets Spark leave out parts of files. Not in Spark Connect,
            # which analyses it anew: it might leave out rows that are marked as deleted.
            rows = rows if is_connect(self.target.spark) else rows.where(condition.column)
        matches = sf.lit(True) if are_chosen else self._matches()
        return self._write_computed(self.computed(rows, matches), files)

    def _write_chosen(
        self, chosen: Sequence[ChosenRows], found: DataFrame | None, files: UncommittedFiles
    ) -> WrittenFiles:
        """Write the matching rows, which the search has computed, or which are read again."""
        if found is None:
            all_match = TouchedFiles(only_chosen(chosen), None)
            return self._written_here(all_match, files) or self.write(
                all_match.table, files, are_chosen=True
            )
        if not chosen:
            return WrittenFiles()
        self.target.ensure_rewritable(files_table(item.file for item in chosen), "UPDATE")
        return self._write_computed(found, files)

    def _write_computed(self, rows: DataFrame, files: UncommittedFiles) -> WrittenFiles:
        """Write what `computed` gave, and with the change data feed the changes."""
        writer = self.target.writer
        checked = checked_rows(rows, self.sql, self.target.snapshot.metadata)
        if not writer.records_changes:
            return writer.write(checked, files)
        is_updated = column_of(self._updated_name)
        kinds = sf.when(is_updated, kinds_of(UPDATED)).otherwise(kinds_of(KEPT))
        names = (*self._names, *self.target.carried.names)
        changes = with_changes(checked, names, kinds, self._before_names)
        return writer.write(changes, files, has_changes=True)

    def computed(self, frame: DataFrame, matches: Column, more: Sequence[Column] = ()) -> DataFrame:
        """The rows as `updated` gives them, with what is needed to tell changes."""
        carried = self.target.carried.names
        if not self.target.writer.records_changes:
            return self.updated(frame, matches, carried, more).drop(self._updated_name)
        old = [column_of(name).alias(hidden) for name, hidden in self._before_names.items()]
        return self.updated(frame, matches, carried, (*old, *more))

    def updated(
        self,
        frame: DataFrame,
        matches: Column,
        carried: tuple[str, ...] = (),
        more: Sequence[Column] = (),
    ) -> DataFrame:
        """The rows with their new values where they match, in the table's columns and types.

        A row that does not match keeps every value, also one that would be computed otherwise now.
        A further column tells which rows match.

        Args:
            frame: The rows as they are.
            matches: Which of them get new values.
            carried: The columns with their ids and versions, if the frame has them.
            more: Other columns that are needed afterwards; they see the rows as they were.
        """
        schema, changing = self.target.snapshot.schema, self.assignments.columns
        columns = [
            self._new_value(field, matches) if field.name in changing else quoted(field.name)
            for field in schema
            if field.data_type != VOID
        ]
        told = matches.alias(self._updated_name)
        rows = frame.select(*columns, *moved_row_ids(carried, matches), told, *more)
        is_updated = column_of(self._updated_name)
        regenerated = {
            name: sf.when(is_updated, value).otherwise(column_of(name))
            for name, value in self._regenerated(schema).items()
        }
        return rows.withColumns(regenerated) if regenerated else rows

    @property
    def _names(self) -> list[str]:
        return [item.name for item in self.target.snapshot.schema if item.data_type != VOID]

    @property
    def _before_names(self) -> dict[str, str]:
        """For the columns that may change, those with the values before."""
        changing = {*self.assignments.columns, *self._regenerated(self.target.snapshot.schema)}
        return {
            name: free_name(f"__optimist_before_{at}", self._names)
            for at, name in enumerate(self._names)
            if name in changing
        }

    @property
    def _updated_name(self) -> str:
        return free_name("__optimist_updated", self._names)

    def _matches(self) -> Column:
        if self.condition is None:
            return sf.lit(True)
        return sf.coalesce(self.condition.column, sf.lit(False))

    def _new_value(self, field: StructField, matches: Column) -> Column:
        value = self.assignments.new_value(field)
        return sf.when(matches, value).otherwise(column_of(field.name)).alias(field.name)

    def _regenerated(self, schema: StructType) -> dict[str, Column]:
        """The generated columns that are not assigned, computed again from the updated rows."""
        return {
            field.name: self.sql.generated(field.name, text).cast(to_spark_type(field.data_type))
            for field in schema
            if (text := generation_expression(field))
            and field.data_type != VOID
            and field.name not in self.assignments.columns
        }


class _FindAndCompute:
    """Finds the matching rows by Spark, and computes their new values in the same pass.

    Args:
        job: The update.
        until_written: Gives the rows back that are stored on the executors, when it ends.

    Attributes:
        found: The rows, as `_Update.computed` gives them; None before the search.
    """

    def __init__(self, job: _Update, until_written: ExitStack) -> None:
        self.found: DataFrame | None = None
        self._job = job
        self._until_written = until_written

    def __call__(self, candidates: pa.Table) -> TouchedFiles:
        """See `Search`."""
        job, target, condition = self._job, self._job.target, self._job.condition
        snapshot, plane = target.snapshot, target.writer.plane
        names = [*snapshot.schema.names, *target.carried.names]
        places = Places.beside(names, with_position=True)
        rows = aliased(
            plane.placed_rows(snapshot, candidates, places, names, with_row_ids=True), target.alias
        )
        if condition is not None:
            rows = rows.where(condition.column)
        fields = [item.name for item in places.fields]
        computed = job.computed(rows, sf.lit(True), [*map(column_of, fields)])
        stored = self._until_written.enter_context(stored_rows(computed, at_once=False))
        matches = matches_of(stored, places)
        self.found = stored.drop(*fields)
        return matches.files(candidates, plane.find_paths(snapshot, candidates, matches.paths))
