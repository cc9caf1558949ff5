"""The rows of an UPDATE with their new values, computed and written by Spark (spec 10.15)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from optimist.core.commands.uncommitted_files import UncommittedFiles
from optimist.core.commands.written_files import WrittenFiles
from optimist.core.schema.generated_columns import generation_expression
from optimist.core.schema.types import StructField, StructType
from optimist.spark.commands.checks import checked_rows
from optimist.spark.commands.dml.target import Target
from optimist.spark.rows.assignments import Assignments
from optimist.spark.rows.changed_rows import KEPT, UPDATED, kinds_of, with_changes
from optimist.spark.rows.row_ids import moved_row_ids
from optimist.spark.rows.row_shape import column_of, free_name, own_column
from optimist.spark.spark_schema import VOID, to_spark_type
from optimist.spark.sql.table_sql import TableSql

__all__ = ["UpdatedRows"]


@dataclass(frozen=True, slots=True)
class UpdatedRows:
    """The rows of one UPDATE, which it computes and writes.

    Attributes:
        target: The table.
        sql: The SQL in the table's log.
        assignments: The new values.
    """

    target: Target
    sql: TableSql
    assignments: Assignments

    def write(self, computed: DataFrame, pending: UncommittedFiles) -> WrittenFiles:
        """Write the result of `computed`, and with the change data feed the changes."""
        writer = self.target.writer
        checked = checked_rows(computed, self.sql, self.target.snapshot.metadata)
        if not writer.records_changes:
            return writer.write(checked, pending)
        is_updated = column_of(self._updated_name)
        kinds = sf.when(is_updated, kinds_of(UPDATED)).otherwise(kinds_of(KEPT))
        names = (*self._names, *self.target.carried.names)
        changes = with_changes(checked, names, kinds, self._before_names)
        return writer.write(changes, pending, has_changes=True)

    def computed(self, frame: DataFrame, matches: Column, more: Sequence[Column] = ()) -> DataFrame:
        """Return the rows of `updated`, with the columns needed to record changes."""
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
        """Return the rows in the table's form, with new values where they match.

        A row that does not match keeps every value, even if a value would be computed differently
        now. An extra column marks the rows that match. The table's alias is gone: for the SQL in
        the log, `a.b` is a field of the column `a`, whatever the caller has called the table.

        Args:
            frame: The rows before the update.
            matches: A condition for the rows that get new values.
            carried: The columns with their ids and versions, if the frame has them.
            more: Other columns that are needed later, computed from the rows before the update.
        """
        schema, changing = self.target.snapshot.schema, self.assignments.columns
        columns = [
            self._new_value(field, matches) if field.name in changing else own_column(field.name)
            for field in schema
            if field.data_type != VOID
        ]
        is_match = matches.alias(self._updated_name)
        rows = frame.select(*columns, *moved_row_ids(carried, matches), is_match, *more)
        is_updated = column_of(self._updated_name)
        regenerated = {
            name: sf.when(is_updated, value).otherwise(column_of(name))
            for name, value in self._recompute_generated(schema).items()
        }
        return rows.withColumns(regenerated) if regenerated else rows

    @property
    def _names(self) -> list[str]:
        return [item.name for item in self.target.snapshot.schema if item.data_type != VOID]

    @property
    def _before_names(self) -> dict[str, str]:
        """For columns that may change, the columns with the values before."""
        changing = {
            *self.assignments.columns,
            *self._recompute_generated(self.target.snapshot.schema),
        }
        return {
            name: free_name(f"__optimist_before_{at}", self._names)
            for at, name in enumerate(self._names)
            if name in changing
        }

    @property
    def _updated_name(self) -> str:
        return free_name("__optimist_updated", self._names)

    def _new_value(self, field: StructField, matches: Column) -> Column:
        value = self.assignments.new_value(field)
        return sf.when(matches, value).otherwise(column_of(field.name)).alias(field.name)

    def _recompute_generated(self, schema: StructType) -> dict[str, Column]:
        """Return the generated columns that are not assigned, recomputed from the updated rows."""
        return {
            field.name: self.sql.generated(field.name, text).cast(to_spark_type(field.data_type))
            for field in schema
            if (text := generation_expression(field))
            and field.data_type != VOID
            and field.name not in self.assignments.columns
        }
