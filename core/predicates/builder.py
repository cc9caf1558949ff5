"""Builds predicates from Python expressions: `(col("month") == 1) & col("delay").is_null()`."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from decimal import Decimal

from optimist.core.errors import UsageError
from optimist.core.predicates.parsing import parse_column_path
from optimist.core.predicates.text import like_parts
from optimist.core.predicates.tree import (
    Column,
    Comparison,
    ComparisonOp,
    In,
    IsNull,
    Like,
    Literal,
    NullSafeEqual,
    Operand,
    Predicate,
    StartsWith,
)
from optimist.core.values.field_types import LARGEST_LONG, SMALLEST_LONG
from optimist.core.values.time_zones import instant

__all__ = ["ColumnBuilder", "col", "literal"]


def col(name: str) -> ColumnBuilder:
    """A column to compare, by its name; dots lead to the fields of structs.

    Raises:
        UsageError: The text is not a column's name (kind `OPTIMIST_INVALID_PREDICATE`).
    """
    return ColumnBuilder(Column(parse_column_path(name)))


def literal(value: object) -> Literal:
    """A Python value as a constant: None, bool, int, float, Decimal, str, bytes, date, datetime.

    A datetime with a zone is an instant; one without is read in the session's zone.

    Raises:
        UsageError: A predicate can't hold such a value (kind `OPTIMIST_INVALID_LITERAL`).
    """
    if isinstance(value, int) and not isinstance(value, bool):
        if SMALLEST_LONG <= value <= LARGEST_LONG:
            return Literal(value, "integer")
        return Literal(Decimal(value), "decimal")
    if isinstance(value, dt.datetime):
        return Literal(
            value if value.tzinfo is None else instant(value, dt.timezone.utc), "timestamp"
        )
    if value is None:
        return Literal(None, "null")
    if isinstance(value, bool):
        return Literal(value, "boolean")
    if isinstance(value, float):
        return Literal(value, "double")
    if isinstance(value, Decimal) and value.is_finite():
        return Literal(Decimal(f"{value:f}"), "decimal")
    if isinstance(value, str):
        return Literal(value, "string")
    if isinstance(value, bytes):
        return Literal(value, "binary")
    if isinstance(value, dt.date):
        return Literal(value, "date")
    raise UsageError(
        f"A predicate can't hold {value!r} of type {type(value).__name__}. Pass a plain Python "
        "value, such as a number, a string, a date or None.",
        kind="OPTIMIST_INVALID_LITERAL",
        type=type(value).__name__,
    )


class ColumnBuilder:
    """A column from `col`; comparing it gives a predicate."""

    __slots__ = ("_column",)
    __hash__ = None  # type: ignore[assignment]  # == builds a predicate, so there is nothing to hash by

    def __init__(self, column: Column) -> None:
        self._column = column

    def __eq__(self, other: object) -> Predicate:  # type: ignore[override]  # builds a predicate
        return self._compare("=", other)

    def __ne__(self, other: object) -> Predicate:  # type: ignore[override]  # builds a predicate
        return self._compare("<>", other)

    def __lt__(self, other: object) -> Predicate:
        return self._compare("<", other)

    def __le__(self, other: object) -> Predicate:
        return self._compare("<=", other)

    def __gt__(self, other: object) -> Predicate:
        return self._compare(">", other)

    def __ge__(self, other: object) -> Predicate:
        return self._compare(">=", other)

    def eq_null_safe(self, other: object) -> Predicate:
        """`column <=> other`: null equals null, and the answer is never null."""
        return NullSafeEqual(self._column, _operand(other))

    def isin(self, values: Iterable[object]) -> Predicate:
        """`column IN (values)`; FALSE if there are no values."""
        listed = tuple(literal(value) for value in values)
        return In(self._column, listed) if listed else Predicate.FALSE

    def between(self, low: object, high: object) -> Predicate:
        """`low <= column AND column <= high`."""
        return self._compare(">=", low) & self._compare("<=", high)

    def is_null(self) -> Predicate:
        """`column IS NULL`; negate it with `~`."""
        return IsNull(self._column)

    def startswith(self, prefix: str) -> Predicate:
        """Whether the column's text begins with exactly `prefix`."""
        return StartsWith(self._column, prefix)

    def like(self, pattern: str) -> Predicate:
        r"""`column LIKE pattern`: `%` matches any run of characters, `_` any one, `\` escapes.

        Raises:
            UsageError: A backslash is followed by something else, or by nothing (kind
                `OPTIMIST_INVALID_LITERAL`).
        """
        parts = like_parts(pattern)
        if parts is None:
            raise UsageError(
                f"The pattern {pattern!r} has a backslash before an ordinary character. Escape "
                "only %, _ and the backslash itself.",
                kind="OPTIMIST_INVALID_LITERAL",
                pattern=pattern,
            )
        return Like(self._column, parts)

    def _compare(self, op: ComparisonOp, other: object) -> Predicate:
        return Comparison(op, self._column, _operand(other))


def _operand(value: object) -> Operand:
    return value._column if isinstance(value, ColumnBuilder) else literal(value)
