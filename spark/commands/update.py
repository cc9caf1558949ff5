"""UPDATE, by vectors or by copy on write (spec 10.15, profile U of 2.13).

1. If the condition names data columns, one pass finds the files with matching rows; otherwise the
   log alone tells the files.
2. Where the table has deletion vectors, and rows were looked for, the matching rows are written
   with their new values, and marked in vectors where they were. Elsewhere all rows of those files
   are written again, the matching ones with their new values.

Generated columns that are not assigned are computed again, and every constraint is checked.
With the change data feed, the pass that writes a row also writes it, and the row it was before, to
change files: so each new value is computed once.

Where the work is small, the driver does it without a Spark job, see `LocalPlane`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from optimist.core.commands.append import ensure_rows_can_be_checked
from optimist.core.commands.command import Changes, run_command
from optimist.core.commands.marked_files import MarkedFiles, only_chosen
from optimist.core.commands.reruns import run_until_it_lands
from optimist.core.commands.rewrite import Rewrite
from optimist.core.commands.row_changes import changes_of_update, num_affected_rows
from optimist.core.commands.touched_files import TouchedFiles, has_vectors
from optimist.core.commands.uncommitted_files import UncommittedFiles
from optimist.core.commands.written_files import WrittenFiles
from optimist.core.data.table_ref import TableRef
from optimist.core.local.rewriting import RowWriter
from optimist.core.local.update import write_updated
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
from optimist.spark.rows.row_ids import moved_row_ids
from optimist.spark.rows.row_shape import column_of, free_name
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
            changes = _Update.of(target, condition, assignments).run(files)
            num_affected = num_affected_rows(changes)
            return changes

        run_command(txn, work)
        return num_affected

    return run_until_it_lands(lambda: log.start_transaction(log.update()), run)


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
        frame = target.rows()
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
        touched = self.target.matching_files(self.condition, with_rows=with_rows)
        scan_ms = watch.lap_ms()
        chosen = touched.choose_rows(self.table) if with_rows else None
        if chosen is None:
            files_now = MarkedFiles(emptied=touched.adds)
            written = self._written_here(touched, files) or self.write(touched.table, files)
        else:
            files_now = MarkedFiles.write(self.table, chosen, files)
            all_match = TouchedFiles(only_chosen(chosen), None)
            written = self._written_here(all_match, files) or self.write(
                all_match.table, files, are_chosen=True
            )
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
        if are_chosen and self.condition is not None and self.condition.predicate.is_exact:
            # It changes nothing, and lets Spark leave out parts of files.
            rows = rows.where(self.condition.column)
        matches = sf.lit(True) if are_chosen else self._matches()
        writer, carried = self.target.writer, self.target.carried.names
        if writer.records_changes:
            return writer.write(self._with_changes(rows, matches, carried), files, has_changes=True)
        return writer.write(self._checked(self.updated(rows, matches, carried)), files)

    def updated(
        self,
        frame: DataFrame,
        matches: Column,
        carried: tuple[str, ...] = (),
        more: Sequence[Column] = (),
    ) -> DataFrame:
        """The rows with their new values where they match, in the table's columns and types.

        Args:
            frame: The rows as they are.
            matches: Which of them get new values.
            carried: The columns with their ids and versions, if the frame has them.
            more: Other columns that are needed afterwards; they see the rows as they were.
        """
        schema = self.target.snapshot.schema
        columns = [
            self._new_value(field, matches).alias(field.name)
            for field in schema
            if field.data_type != VOID
        ]
        rows = frame.select(*columns, *moved_row_ids(carried, matches), *more)
        regenerated = self._regenerated(schema)
        if regenerated:
            rows = rows.withColumns(regenerated)
        return rows

    def _checked(self, rows: DataFrame) -> DataFrame:
        return checked_rows(rows, self.sql, self.target.snapshot.metadata)

    def _with_changes(
        self, frame: DataFrame, matches: Column, carried: tuple[str, ...]
    ) -> DataFrame:
        """The rows as `updated` gives them, and each change with the row before and after it."""
        schema = self.target.snapshot.schema
        names = [field.name for field in schema if field.data_type != VOID]
        changing = {*self.assignments.columns, *self._regenerated(schema)}
        before = {
            name: free_name(f"__optimist_before_{at}", names)
            for at, name in enumerate(names)
            if name in changing
        }
        old = [column_of(name).alias(hidden) for name, hidden in before.items()]
        is_updated = free_name("__optimist_updated", names)
        updated = self.updated(frame, matches, carried, (*old, matches.alias(is_updated)))
        kinds = sf.when(column_of(is_updated), kinds_of(UPDATED)).otherwise(kinds_of(KEPT))
        return with_changes(self._checked(updated), (*names, *carried), kinds, before)

    def _matches(self) -> Column:
        if self.condition is None:
            return sf.lit(True)
        return sf.coalesce(self.condition.column, sf.lit(False))

    def _new_value(self, field: StructField, matches: Column) -> Column:
        if field.name not in self.assignments.columns:
            return column_of(field.name)
        value = self.assignments.new_value(field)
        return sf.when(matches, value).otherwise(column_of(field.name))

    def _regenerated(self, schema: StructType) -> dict[str, Column]:
        """The generated columns that are not assigned, computed again from the updated rows."""
        return {
            field.name: self.sql.generated(field.name, text).cast(to_spark_type(field.data_type))
            for field in schema
            if (text := generation_expression(field))
            and field.data_type != VOID
            and field.name not in self.assignments.columns
        }
