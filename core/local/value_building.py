"""Values that a command assigns, built from columns, constants and a few functions.

A reader of an expression, from SQL text or from Spark's tree, passes the parts. This module alone
computes them, exactly as Spark does. Everything else is refused: only Spark can compute it exactly.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.data.column_shape import value_at
from optimist.core.errors import UsageError
from optimist.core.errors.foreign_text import quoted
from optimist.core.local.conditions import RUN_WITH_SPARK
from optimist.core.local.stored_values import INTEGERS, NULL, Value, does_not_fit, stored_as
from optimist.core.predicates import Predicate, evaluate
from optimist.core.predicates.resolution import ResolvedColumn, resolve_column
from optimist.core.schema.arrow_types import to_arrow_type
from optimist.core.schema.types import DataType, PrimitiveType, StructType
from optimist.core.snapshot.row_filter import is_exact

__all__ = ["DatePart", "Sign", "ValueBuilder", "needs_spark"]

Rows: TypeAlias = pa.Table
Sign: TypeAlias = str
DatePart: TypeAlias = Literal["year", "month", "day"]
_STRING = PrimitiveType("string")
_ARITHMETIC: dict[Sign, Callable[[Any, Any], Any]] = {
    "+": pc.add_checked,
    "-": pc.subtract_checked,
    "*": pc.multiply_checked,
}
_DATE_PARTS: dict[DatePart, Callable[[Any], Any]] = {
    "year": pc.year,
    "month": pc.month,
    "day": pc.day,
}
_DATE = PrimitiveType("date")
_EPOCH = dt.date(1970, 1, 1)
_FIRST_DAY, _LAST_DAY = (dt.date.min - _EPOCH).days, (dt.date.max - _EPOCH).days


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

    def column(self, path: tuple[str, ...]) -> Value:
        """Build a column, or a field of a struct."""
        found = self._resolve(path)
        if found is None:
            raise self.refusal("names a column that there is not")

        def compute(rows: Rows) -> pa.ChunkedArray:
            return value_at(rows, found.path)

        return Value(found.data_type, compute, frozenset({found.path}))

    def arithmetic(self, sign: Sign, left: Value, right: Value) -> Value:
        """Build a sum, a difference or a product of integers, in the wider type."""
        names = [str(side.data_type) for side in (left, right)]
        if any(name not in INTEGERS for name in names):
            raise self.refusal()
        kernel, data_type = _ARITHMETIC[sign], PrimitiveType(max(names, key=INTEGERS.index))
        arrow_type = to_arrow_type(data_type)

        def compute(rows: Rows) -> Any:
            sides = (side.compute(rows).cast(arrow_type) for side in (left, right))
            try:
                return kernel(*sides)
            except pa.ArrowInvalid:
                raise does_not_fit(f"{self.text} ({sign})", data_type) from None

        return Value(data_type, compute, left.columns | right.columns)

    def date_part(self, part: DatePart, dates: Value) -> Value:
        """Build the year, month or day of dates in the years 1 to 9999."""
        if dates.data_type != _DATE:
            raise self.refusal()

        def compute(rows: Rows) -> Any:
            found = dates.compute(rows)
            days = pc.min_max(found.cast(pa.int32())).as_py()
            is_empty = days["min"] is None
            # Arrow counts years in 16 bits.
            if not is_empty and not _FIRST_DAY <= days["min"] <= days["max"] <= _LAST_DAY:
                raise self.refusal("has dates outside the years 1 to 9999")
            return _DATE_PARTS[part](found).cast(pa.int32())

        return Value(PrimitiveType("integer"), compute, dates.columns)

    def case(self, conditions: Sequence[Predicate], given: Sequence[Value]) -> Value:
        """Build the result of the first condition that is true, or the last result if none is.

        Args:
            conditions: The conditions.
            given: A result for each condition, and one for all other rows.
        """
        if not all(map(self._is_known, conditions)):
            raise self.refusal()
        data_type, results = self._cast_to_one_type(given)
        columns = _columns_of(results).union(*map(self._columns_of_predicate, conditions))

        def compute(rows: Rows) -> Any:
            masks = [_mask_of(item, rows, self.zone) for item in conditions]
            return _choose_first(rows, masks, results, to_arrow_type(data_type))

        return Value(data_type, compute, columns)

    def coalesce(self, given: Sequence[Value]) -> Value:
        """Build the first value that is not null."""
        data_type, values = self._cast_to_one_type(given)

        def compute(rows: Rows) -> Any:
            found = values[0].compute(rows)
            for value in values[1:]:
                missing = pc.is_null(found)
                found = _replace_with_mask(found, missing, value.compute(rows.filter(missing)))
            return found

        return Value(data_type, compute, _columns_of(values))

    def concat(self, values: Sequence[Value]) -> Value:
        """Build the concatenation of strings."""
        if any(value.data_type != _STRING for value in values) or not values:
            raise self.refusal()

        def compute(rows: Rows) -> Any:
            parts = [value.compute(rows) for value in values]
            return pc.binary_join_element_wise(*parts, "", null_handling="emit_null")

        return Value(_STRING, compute, _columns_of(values))

    def cast(self, value: Value, data_type: DataType) -> Value:
        """Build the value in another type, by an ANSI cast."""
        return stored_as(value, data_type, self.text)

    def _resolve(self, path: tuple[str, ...]) -> ResolvedColumn | None:
        return resolve_column(path, self.schema)

    def _is_known(self, predicate: Predicate) -> bool:
        has_columns = all(self._resolve(path) for path in predicate.columns())
        return has_columns and is_exact(predicate, self.schema, zone=self.zone)

    def _columns_of_predicate(self, predicate: Predicate) -> frozenset[tuple[str, ...]]:
        found = (self._resolve(path) for path in predicate.columns())
        return frozenset(column.path for column in found if column is not None)

    def _cast_to_one_type(self, values: Sequence[Value]) -> tuple[DataType, list[Value]]:
        """Cast values to one type: their common type, or the widest integer type."""
        types = {value.data_type for value in values if value is not NULL}
        if not types:
            return NULL.data_type, list(values)
        names = {str(item) for item in types}
        if len(types) > 1 and not names <= set(INTEGERS):
            raise self.refusal()
        wanted = next(iter(types))
        if len(types) > 1:
            wanted = PrimitiveType(max(names, key=INTEGERS.index))
        if pa.types.is_nested(to_arrow_type(wanted)):
            raise self.refusal()
        return wanted, [stored_as(value, wanted, self.text) for value in values]


def _columns_of(values: Sequence[Value]) -> frozenset[tuple[str, ...]]:
    return frozenset().union(*(value.columns for value in values))


def _mask_of(predicate: Predicate, rows: Rows, zone: str) -> Any:
    return pc.fill_null(evaluate(predicate, rows, zone=zone), False)


def _choose_first(
    rows: Rows, masks: Sequence[Any], results: Sequence[Value], arrow_type: pa.DataType
) -> Any:
    """Return for each row the result of the first true mask, or the last result."""
    found = pa.chunked_array([pa.nulls(rows.num_rows, arrow_type)])
    is_open = pa.repeat(pa.scalar(True), rows.num_rows)
    for mask, result in zip([*masks, is_open], results, strict=True):
        taken = pc.and_(is_open, mask)
        found = _replace_with_mask(found, taken, result.compute(rows.filter(taken)))
        is_open = pc.and_not(is_open, taken)
    return found


def _replace_with_mask(values: Any, mask: Any, replacements: Any) -> Any:
    whole, flags, others = map(_combine_chunks, (values, mask, replacements))
    return pa.chunked_array([pc.replace_with_mask(whole, flags, others)])


def _combine_chunks(values: Any) -> pa.Array:
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
