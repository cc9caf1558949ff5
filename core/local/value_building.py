"""Values that a command assigns, built from columns, constants and a few functions.

A reader of an expression, from SQL text or from Spark's tree, passes the parts. This module alone
computes them, exactly as Spark does. Everything else is refused: only Spark can compute it exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa

from optimist.core.data.column_shape import value_at
from optimist.core.errors import UsageError
from optimist.core.errors.foreign_text import quoted
from optimist.core.expressions.tree import Expression
from optimist.core.local.conditions import RUN_WITH_SPARK
from optimist.core.local.stored_values import stored_as
from optimist.core.predicates import Predicate
from optimist.core.predicates.evaluation import condition_value, resolve_value
from optimist.core.predicates.functions import choices
from optimist.core.predicates.functions.failures import UnknownMeaningError
from optimist.core.predicates.functions.table import call
from optimist.core.predicates.functions.value import Arguments, Value
from optimist.core.predicates.resolution import resolve_column
from optimist.core.schema.arrow_types import to_arrow_schema
from optimist.core.schema.types import DataType, StructType

__all__ = ["Sign", "ValueBuilder", "needs_spark"]

Sign: TypeAlias = str


def needs_spark(sql: str, reason: str = "can be computed row by row only by Spark") -> UsageError:
    """Return the error for an expression that is left to Spark."""
    return UsageError(
        f"The value {quoted(sql)} {reason}. {RUN_WITH_SPARK}",
        kind="OPTIMIST_NEEDS_SPARK",
        value=sql,
    )


@dataclass(frozen=True, slots=True)
class ValueBuilder:
    """Builds the values of one expression.

    Each method raises if it can't.

    Attributes:
        text: The expression, for errors.
        schema: The columns that it may name.
        zone: The time zone for timestamps without one.
    """

    text: str
    schema: StructType
    zone: str = "UTC"

    def refusal(self, reason: str = "can be computed row by row only by Spark") -> UsageError:
        """Return the error that leaves the expression to Spark (kind `OPTIMIST_NEEDS_SPARK`)."""
        return needs_spark(self.text, reason)

    def sql(self, expression: Expression) -> Value:
        """Build the value of a parsed text."""
        empty = self._empty_rows()
        try:
            value = resolve_value(self.text, expression, self._find_column, empty, zone=self.zone)
        except UnknownMeaningError as error:
            raise self.refusal(str(error)) from None
        value.compute(empty)  # fails here and now if it is nested too deeply
        return value

    def column(self, path: tuple[str, ...]) -> Value:
        """Build a column, or a field of a struct."""
        found = self._find_column(path)
        if found is None:
            raise self.refusal("names a column that there is not")
        return found

    def arithmetic(self, sign: Sign, left: Value, right: Value) -> Value:
        """Build a sum, a difference or a product of numbers."""
        return self._call(sign, [left, right])

    def case(self, conditions: Sequence[Predicate], given: Sequence[Value]) -> Value:
        """Build the result of the first condition that is true, or the last result if none is.

        Args:
            conditions: The conditions.
            given: A result for each condition, and one for all other rows.
        """
        found = [self._condition(item) for item in conditions]
        return self._known(choices.chosen(found, Arguments(given, self.text, self.zone)))

    def coalesce(self, given: Sequence[Value]) -> Value:
        """Build the first value that is not null."""
        return self._call("coalesce", given)

    def concat(self, values: Sequence[Value]) -> Value:
        """Build the concatenation of strings."""
        return self._call("concat", values)

    def cast(self, value: Value, data_type: DataType) -> Value:
        """Build the value in another type, by an ANSI cast."""
        return stored_as(value, data_type, self.text, self.zone)

    def _call(self, name: str, values: Sequence[Value]) -> Value:
        return self._known(call(name, Arguments(values, self.text, self.zone)))

    def _known(self, value: Value | None) -> Value:
        if value is None:
            raise self.refusal()
        return value

    def _find_column(self, path: tuple[str, ...]) -> Value | None:
        found = resolve_column(path, self.schema)
        if found is None:
            return None

        def compute(rows: pa.Table) -> Any:
            return value_at(rows, found.path)

        names = frozenset({found.path})
        return Value(
            found.data_type, compute, names, is_plain=found.has_plain_order, may_fail=False
        )

    def _condition(self, predicate: Predicate) -> Value:
        rows = self._empty_rows()
        return self._known(condition_value(predicate, self._find_column, rows, self.zone))

    def _empty_rows(self) -> pa.Table:
        return to_arrow_schema(self.schema).empty_table()
