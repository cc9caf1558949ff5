"""Predicates from Python expressions: `(col("month") == 1) & col("delay").is_null()`."""

from __future__ import annotations

import datetime as dt
import operator
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import NoReturn

import numpy as np

from optimist.core.errors import UsageError
from optimist.core.errors.argument_types import ensure_text, wrong_type
from optimist.core.errors.foreign_text import shown
from optimist.core.predicates.constants import MAX_PRECISION
from optimist.core.predicates.misuse import never_true, no_predicate, no_truth_value
from optimist.core.predicates.parsing import parse_column_path
from optimist.core.predicates.text import like_parts, quote_path
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
    """Return a column to compare, by its name. Dots lead to the fields of structs.

    Raises:
        ArgumentTypeError: The name is not text.
        UsageError: The text is not a column's name (kind `OPTIMIST_INVALID_PREDICATE`).
    """
    ensure_text(name, "name")
    return ColumnBuilder(Column(parse_column_path(name)))


def literal(value: object) -> Literal:
    """Return a Python value as a constant, or refuse it.

    Values may be None, bool, int, float, Decimal, str, bytes, date or datetime. A datetime with a
    zone is an instant. A datetime without a zone is read in the session's zone, or in UTC without a
    session. Values of subclasses count as their base values, and so do NumPy's integers.

    Raises:
        UsageError: A predicate can't hold such a value (kind `OPTIMIST_INVALID_LITERAL`).
    """
    if value is None:
        return Literal(None, "null")
    if isinstance(value, bool):
        return Literal(value, "boolean")
    if isinstance(value, float):
        return Literal(float(value), "double")
    if isinstance(value, Decimal):
        return _decimal_literal(value)
    if isinstance(value, str):
        return Literal(str.__str__(value), "string")
    if isinstance(value, bytes):
        return Literal(bytes(value), "binary")
    if isinstance(value, dt.datetime):
        return Literal(_plain_datetime(value), "timestamp")
    if isinstance(value, dt.date):
        return Literal(dt.date(value.year, value.month, value.day), "date")
    return _integer_literal(value)


class ColumnBuilder:
    """A column from `col`. Comparing it gives a predicate."""

    __slots__ = ("_column",)
    __array_ufunc__ = None  # so that NumPy calls `__eq__` below for `np.float32(1) == col("a")`
    __hash__ = None  # type: ignore[assignment]  # == builds a predicate, so no hash fits it

    def __init__(self, column: Column) -> None:
        self._column = column

    @property
    def path(self) -> tuple[str, ...]:
        """The column's name, or the names on the way to a field."""
        return self._column.path

    def __repr__(self) -> str:
        return f"col({quote_path(self.path)!r})"

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

    def __bool__(self) -> NoReturn:
        raise no_truth_value(str(self._column))

    def __contains__(self, item: object) -> NoReturn:
        raise no_truth_value(str(self._column))

    def __invert__(self) -> NoReturn:
        raise no_predicate(self, "The operand of ~", "self")

    def __and__(self, other: object) -> NoReturn:
        raise no_predicate(self, "An operand of &", "self")

    def __or__(self, other: object) -> NoReturn:
        raise no_predicate(self, "An operand of |", "self")

    # `col("a") == 1 & col("b") == 2` means `1 & col("b")` for Python.
    __rand__ = __and__
    __ror__ = __or__

    def eq_null_safe(self, other: object) -> Predicate:
        """Build `column <=> other`: null equals null, and the answer is never null."""
        return NullSafeEqual(self._column, _operand(other))

    def isin(self, values: Iterable[object]) -> Predicate:
        """Build `column IN (values)`, which is FALSE without values.

        Raises:
            ArgumentTypeError: `values` is one value, such as a text, and not a list.
            UsageError: A value is None, or a value that no predicate can hold (kind
                `OPTIMIST_INVALID_LITERAL`).
        """
        if not _is_list(values):
            raise wrong_type("values", values, "a list of values")
        listed = tuple(self._not_null(literal(value)) for value in values)
        return In(self._column, listed) if listed else Predicate.FALSE

    def between(self, low: object, high: object) -> Predicate:
        """Build `low <= column AND column <= high`."""
        return self._compare(">=", low) & self._compare("<=", high)

    def is_null(self) -> Predicate:
        """Build `column IS NULL`. Negate it with `~`."""
        return IsNull(self._column)

    def startswith(self, prefix: str) -> Predicate:
        """Build a predicate that the column's text begins with exactly `prefix`.

        Raises:
            ArgumentTypeError: The prefix is not text. A tuple of texts is not allowed.
        """
        ensure_text(prefix, "prefix")
        return StartsWith(self._column, prefix)

    def like(self, pattern: str) -> Predicate:
        r"""Build `column LIKE pattern`: `%` matches any characters, `_` one, and `\` escapes.

        Raises:
            ArgumentTypeError: The pattern is not text.
            UsageError: A backslash stands before an ordinary character, or at the end (kind
                `OPTIMIST_INVALID_LITERAL`).
        """
        ensure_text(pattern, "pattern")
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
        operand = _operand(other)
        return Comparison(
            op, self._column, operand if isinstance(operand, Column) else self._not_null(operand)
        )

    def _not_null(self, constant: Literal) -> Literal:
        if constant.value is None:
            raise never_true(str(self._column))
        return constant


def _operand(value: object) -> Operand:
    return value._column if isinstance(value, ColumnBuilder) else literal(value)


def _is_list(values: object) -> bool:
    """Return whether this is a list of values, and not a text, a mapping or a frame."""
    is_other = isinstance(values, str | bytes | bytearray | Mapping) or hasattr(values, "columns")
    return isinstance(values, Iterable) and not is_other


def _integer_literal(value: object) -> Literal:
    if isinstance(value, np.bool_):  # older NumPy treats it as a number
        raise _unsupported_literal(value)
    try:
        number = operator.index(value)  # type: ignore[arg-type]  # a value that is not an integer is refused
    except TypeError:
        raise _unsupported_literal(value) from None
    if SMALLEST_LONG <= number <= LARGEST_LONG:
        return Literal(number, "integer")
    return _decimal_literal(Decimal(number))


def _decimal_literal(number: Decimal) -> Literal:
    """Return a constant of at most 38 digits before and after the point, as Spark's SQL has."""
    _, digits, exponent = number.as_tuple()
    if not isinstance(exponent, int):  # NaN or infinite
        raise _unsupported_literal(number)
    if max(len(digits) + max(0, exponent), -exponent) > MAX_PRECISION:
        raise _unsupported_literal(number)
    return Literal(Decimal(f"{number:f}"), "decimal")


def _plain_datetime(value: dt.datetime) -> dt.datetime:
    """Return the same time as Python's own type. pandas has finer times, and NaT."""
    nanoseconds: object = getattr(value, "nanosecond", None)
    if value != value or nanoseconds:
        raise _unsupported_literal(value)
    plain = dt.datetime.combine(
        dt.date(value.year, value.month, value.day),
        dt.time(value.hour, value.minute, value.second, value.microsecond, fold=value.fold),
        value.tzinfo,
    )
    return plain if plain.tzinfo is None else instant(plain, dt.timezone.utc)


def _unsupported_literal(value: object) -> UsageError:
    return UsageError(
        f"A predicate can't hold {shown(repr(value))} of type {shown(type(value).__name__)}. "
        "Nothing was done. Pass a plain Python value, such as a number, a string, a date or None.",
        kind="OPTIMIST_INVALID_LITERAL",
        type=type(value).__name__,
    )
