"""The columns that a MERGE computes: the values before and after its clauses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from optimist.core.schema.generated_columns import generation_expression
from optimist.core.schema.schema_edits import path_text
from optimist.core.schema.types import StructField, StructType
from optimist.spark.commands.merge.names import Names
from optimist.spark.commands.merge.resolution import SparkResolvedClause, SparkResolvedMerge
from optimist.spark.rows.row_shape import Reshaping, column_of, quoted, with_declared_length
from optimist.spark.rows.store_assignment import StoreAssignment
from optimist.spark.spark_schema import VOID, to_spark_type
from optimist.spark.sql.table_sql import TableSql

__all__ = ["COPIED", "LEFT_OUT", "MergeColumns"]

COPIED, LEFT_OUT = -1, -2
"""Instead of a clause number: the row stays as it is, or there is no row."""


@dataclass(frozen=True, slots=True)
class MergeColumns:
    """Computes the columns of one MERGE.

    Attributes:
        merge: The expressions.
        before: The schema of the table's rows as they are read.
        names: The names of the columns.
        carried: The columns with the ids and versions of rows that move; see `carried_columns`.
        records_changes: Whether rows keep their values before the MERGE beside those after it.
    """

    merge: SparkResolvedMerge
    before: StructType
    names: Names
    carried: StructType
    records_changes: bool

    @property
    def sql(self) -> TableSql:
        """The SQL of the table, with its schema after the MERGE."""
        return self.merge.sql

    @property
    def stored_fields(self) -> list[tuple[int, StructField]]:
        """The columns that files hold, with their indexes in the schema."""
        columns = enumerate((*self.sql.schema, *self.carried))
        return [(at, item) for at, item in columns if item.data_type != VOID]

    @property
    def recorded_fields(self) -> list[tuple[int, StructField]]:
        """The columns whose values before the MERGE are kept, because it can change them."""
        if not self.records_changes:
            return []
        assigned = {
            name
            for item in self.merge.clauses
            if item.action == "update" and item.assignments is not None
            for name in item.assignments.columns
        }
        return [
            (at, item)
            for at, item in self.stored_fields
            if item.name in assigned or generation_expression(item) is not None
        ]

    @property
    def value_names(self) -> list[str]:
        """The names of the columns with the values after the MERGE."""
        return [self.names.value(at) for at, _ in self.stored_fields]

    @property
    def before_names(self) -> Mapping[str, str]:
        """For each column that can change, the name of the column with the values before."""
        return {item.name: self.names.before(at) for at, item in self.recorded_fields}

    @property
    def nothing(self) -> list[Column]:
        """The values before and after for a row that is not in the table: all are null."""
        found = [_null(item).alias(self.names.value(at)) for at, item in self.stored_fields]
        return found + [
            _null(item).alias(self.names.before(at)) for at, item in self.recorded_fields
        ]

    def clause_of(self, clauses: Sequence[SparkResolvedClause], otherwise: int = COPIED) -> Column:
        """Return the number of the first clause whose condition is true, and not null."""
        number = sf.lit(otherwise)
        for item in reversed(clauses):
            taken = sf.lit(item.number)
            number = (
                taken
                if item.condition is None
                else sf.when(item.condition.column, taken).otherwise(number)
            )
        return number

    def copies(self, target: DataFrame) -> Mapping[str, Column]:
        """Return the values of the table's rows, in the types of the schema after the MERGE."""
        copies = {}
        for _, item in self.stored_fields:
            before = self.before.find(item.name) or self.carried.find(item.name)
            if before is None or before.data_type == VOID:
                copies[item.name] = _null(item)
            else:
                value = target[quoted(before.name)]
                types = (before.data_type, item.data_type)
                copies[item.name] = self._reshaping.reshaped(value, *types, (item.name,))
        return copies

    def values(
        self,
        clauses: Sequence[SparkResolvedClause],
        number: str,
        current: Mapping[str, Column],
        *,
        all_have_one: bool = False,
    ) -> list[Column]:
        """Return the values after the clauses.

        Args:
            clauses: Clauses of one kind.
            number: The column with the number of each row's clause.
            current: The values before. Rows that get none of the clauses keep them.
            all_have_one: Whether every row gets one of the clauses. Then a column that each of them
                sets is not read. In deleted rows its value does not matter.
        """
        return [
            self._value(item, clauses, number, current[item.name], all_have_one).alias(
                self.names.value(at)
            )
            for at, item in self.stored_fields
        ]

    def _value(
        self,
        item: StructField,
        clauses: Sequence[SparkResolvedClause],
        number: str,
        current: Column,
        all_have_one: bool,
    ) -> Column:
        changes = {clause.number: self._changed(clause, item, current) for clause in clauses}
        kept = [clause for clause in clauses if changes[clause.number] is None]
        value = current
        if all_have_one and all(clause.action == "delete" for clause in kept):
            value = _null(item)
        for clause_number, changed in changes.items():
            if changed is None:
                continue
            is_clause = column_of(number) == clause_number
            is_only = all_have_one and len(clauses) == 1
            value = changed if is_only else sf.when(is_clause, changed).otherwise(value)
        return value

    def _changed(
        self, clause: SparkResolvedClause, item: StructField, current: Column
    ) -> Column | None:
        """Return the value that a clause gives a column, or None if it keeps the column's value."""
        if item in self.carried.fields[1:]:
            return _null(item)  # the version of a changed row is that of its new file
        new = clause.assignments
        if new is not None and item.name in new.columns:
            return new.new_value(item, current)
        return self._unnamed(item) if clause.action == "insert" else None

    def _unnamed(self, item: StructField) -> Column:
        """Return the value of a column that an INSERT does not name.

        Generated columns are computed later.
        """
        if generation_expression(item) is not None:
            return _null(item)
        store = self._reshaping.store
        given = self.merge.time.fixed(self.sql.default(item))
        default = store.cast(given, None, item.data_type, path_text((item.name,)))
        return with_declared_length(default, item)

    @property
    def _reshaping(self) -> Reshaping:
        return Reshaping(StoreAssignment.of(self.sql.spark), self.sql)


def _null(item: StructField) -> Column:
    return sf.lit(None).cast(to_spark_type(item.data_type))
