"""Spark's `sources.Filter`s as predicates of ours (spec 9.5)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from optimist.core.predicates.parsing import parse_column_path
from optimist.core.predicates.tree import (
    BooleanLiteral,
    Column,
    Comparison,
    ComparisonOp,
    In,
    IsNull,
    Literal,
    NullSafeEqual,
    Predicate,
    StartsWith,
)
from optimist.core.schema.types import StructType
from optimist.spark.pushed_filters import COMPARISONS, plain_literal
from optimist.spark.rows.stored_columns import logical_path

__all__ = ["MAX_IN_VALUES", "SourceFilters"]

_FIRST_MODERN_YEAR = 1901
MAX_IN_VALUES = 1000  # a round trip each; longer lists skip nothing


@dataclass(frozen=True, slots=True)
class SourceFilters:
    """`sources.Filter`s over the columns of one table; None stands for what is not understood.

    Connectives are not among them: `skipping.py` goes through those as Catalyst has them.
    """

    schema: StructType

    def predicate(self, source: Any) -> Predicate | None:
        """What a filter says."""
        name = source.getClass().getSimpleName()
        if name in COMPARISONS:
            return self._comparison(COMPARISONS[name], source)
        translate = _TRANSLATIONS.get(name)
        return translate(self, source) if translate else None

    def _null_safe(self, source: Any) -> Predicate | None:
        column, value = self.column(source), _literal(source.value())
        return NullSafeEqual(column, value) if column and value else None

    def _is_null(self, source: Any) -> Predicate | None:
        column = self.column(source)
        return IsNull(column) if column else None

    def _is_not_null(self, source: Any) -> Predicate | None:
        column = self.column(source)
        return ~IsNull(column) if column else None

    def _is_in(self, source: Any) -> Predicate | None:
        column = self.column(source)
        values = source.values()
        if column is None or not 0 < len(values) <= MAX_IN_VALUES:
            return None
        literals = [_literal(value) for value in values]
        known = tuple(literal for literal in literals if literal is not None)
        return In(column, known) if len(known) == len(literals) else None

    def _starts_with(self, source: Any) -> Predicate | None:
        column = self.column(source)
        return StartsWith(column, str(source.value())) if column else None

    def _comparison(self, op: ComparisonOp, source: Any) -> Predicate | None:
        column, value = self.column(source), _literal(source.value())
        return Comparison(op, column, value) if column and value else None

    def column(self, source: Any) -> Column | None:
        """The column of a filter; nested ones are dotted, odd names in back-ticks."""
        try:
            path = logical_path(parse_column_path(source.attribute()), self.schema)
        except ValueError:
            return None
        return None if path is None else Column(path)


_TRANSLATIONS: dict[str, Callable[[SourceFilters, Any], Predicate | None]] = {
    "EqualNullSafe": SourceFilters._null_safe,
    "IsNull": SourceFilters._is_null,
    "IsNotNull": SourceFilters._is_not_null,
    "In": SourceFilters._is_in,
    "StringStartsWith": SourceFilters._starts_with,
    "AlwaysTrue": lambda _, _source: BooleanLiteral(True),
    "AlwaysFalse": lambda _, _source: BooleanLiteral(False),
}


def _literal(value: Any) -> Literal | None:
    """A Java value as a constant, by its type; None for what is not on the list."""
    if value is None or isinstance(value, (bool, int, float, Decimal, str, bytes, bytearray)):
        return plain_literal(value)
    return _java_time(value)


def _java_time(value: Any) -> Literal | None:
    name = value.getClass().getName()
    if name == "java.sql.Date":
        # Not its toString: that keeps four digits of the year.
        return _modern(_parsed(dt.date.fromisoformat, value.toLocalDate().toString(), "date"))
    if name == "java.sql.Timestamp":
        return _modern(_instant(value.toInstant()))
    if name == "java.time.LocalDate":
        return _parsed(dt.date.fromisoformat, value.toString(), "date")
    if name == "java.time.Instant":
        return _instant(value)
    if name == "java.time.LocalDateTime":
        return _parsed(dt.datetime.fromisoformat, value.toString(), "timestamp_ntz")
    return None


def _modern(literal: Literal | None) -> Literal | None:
    """Java's old classes know old times by other calendars and zone tables than Spark's values."""
    if literal is None or not isinstance(literal.value, dt.date):
        return None
    return literal if literal.value.year >= _FIRST_MODERN_YEAR else None


def _instant(value: Any) -> Literal | None:
    epoch = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)
    delta = dt.timedelta(seconds=value.getEpochSecond(), microseconds=value.getNano() // 1000)
    try:
        return Literal(epoch + delta, "timestamp")
    except OverflowError:
        return None


def _parsed(parse: Callable[[str], Any], text: str, kind: Any) -> Literal | None:
    # Years outside 1..9999 exist in Spark, not in Python.
    try:
        return Literal(parse(text), kind)
    except ValueError:
        return None
