"""The rows that a MERGE writes, from rows with their clauses and values."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from optimist.core.schema.generated_columns import generation_expression
from optimist.core.schema.identity_columns import is_identity_column
from optimist.core.schema.types import StructField
from optimist.spark.commands.merge.columns import LEFT_OUT, MergeColumns
from optimist.spark.rows.changed_rows import DELETED, INSERTED, KEPT, UPDATED, kinds_of
from optimist.spark.rows.row_shape import column_of, without_void
from optimist.spark.spark_schema import to_spark_type

__all__ = ["WrittenRows"]

_KINDS = {"update": UPDATED, "delete": DELETED, "insert": INSERTED}
"""The kinds of change, by the action of a clause."""


@dataclass(frozen=True, slots=True)
class WrittenRows:
    """Makes the rows that one MERGE writes.

    Attributes:
        columns: Computes the columns that the rows have so far.
    """

    columns: MergeColumns

    def finished(self, *parts: DataFrame, carries: bool, has_changes: bool) -> DataFrame:
        """Return the rows in the table's columns, with generated columns computed.

        Args:
            parts: Rows with their clauses and values.
            carries: Add the columns `carried`.
            has_changes: Keep deleted rows, too. Add the clause and the values before; see `kinds`
                and `before_names`.
        """
        names, merge = self.columns.names, self.columns.merge
        told = [names.clause, *(self.columns.before_names.values() if has_changes else ())]
        columns = (*told, *self.columns.value_names)
        frame = reduce(DataFrame.union, (part.select(*map(column_of, columns)) for part in parts))
        values = (
            column_of(names.value(at)).alias(item.name) for at, item in self.columns.stored_fields
        )
        gone = [LEFT_OUT] if has_changes else [LEFT_OUT, *merge.numbers_of("delete")]
        kept = frame.where(~column_of(names.clause).isin(gone))
        rows = kept.select(*map(column_of, told), *values)
        generated = {
            item.name: self._generated(item, text)
            for _, item in self.columns.stored_fields
            if (text := generation_expression(item))
        }
        if generated:
            rows = rows.withColumns(generated)
        marks = dict(self._identities.values())
        if marks:
            rows = rows.withColumns(marks)
        carried = self.columns.carried.names if carries else ()
        more = (*carried, *marks, *(told if has_changes else ()))
        return without_void(rows, self.columns.sql.schema, *more)

    @property
    def missing(self) -> dict[str, Column]:
        """By identity column: whether a row of `finished` needs a number."""
        return {name: column_of(mark) for name, (mark, _) in self._identities.items()}

    @property
    def is_deleted(self) -> Column:
        """Whether a row of `finished` is gone after the MERGE."""
        return column_of(self.columns.names.clause).isin(self.columns.merge.numbers_of("delete"))

    @property
    def kinds(self) -> Column:
        """The kinds of change for each row of `finished`; see `changed_rows`."""
        kinds = kinds_of(KEPT)
        for item in self.columns.merge.clauses:
            is_clause = column_of(self.columns.names.clause) == item.number
            kinds = sf.when(is_clause, kinds_of(_KINDS[item.action])).otherwise(kinds)
        return kinds

    @property
    def _identities(self) -> dict[str, tuple[str, Column]]:
        """By identity column: name and value of the column that marks rows without a number."""
        found = {}
        for at, item in self.columns.stored_fields:
            needing = [
                clause.number
                for clause in self.columns.merge.of_kind("NOT MATCHED")
                if clause.assignments is None or item.name not in clause.assignments.columns
            ]
            if needing and is_identity_column(item):
                needs = column_of(self.columns.names.clause).isin(needing)
                found[item.name] = (self.columns.names.missing(at), needs)
        return found

    def _generated(self, item: StructField, text: str) -> Column:
        """Compute a generated column in rows of clauses that do not assign it.

        Rows that stay as they are, and deleted rows, keep their value.
        """
        computing = [
            clause.number
            for clause in self.columns.merge.clauses
            if clause.action != "delete"
            and (clause.assignments is None or item.name not in clause.assignments.columns)
        ]
        made = self.columns.sql.generated(item.name, text).cast(to_spark_type(item.data_type))
        is_computed = column_of(self.columns.names.clause).isin(computing)
        return sf.when(is_computed, made).otherwise(column_of(item.name))
