"""Data filters of Spark as predicates of ours, for skipping files by statistics (spec 9.5).

Only what Spark itself can translate to `sources.Filter` is looked at: its texts leave out casts,
its trees do not. Whatever is not on the list below is no predicate, and skips nothing; Spark
filters the rows again anyway.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
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
from optimist.spark.jvm import Jvm, iterate

__all__ = ["data_predicate"]

_STRATEGY = "org.apache.spark.sql.execution.datasources.DataSourceStrategy$"
_COMPARISONS: dict[str, ComparisonOp] = {
    "EqualTo": "=",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
}
_FIRST_MODERN_YEAR = 1901
_MAX_IN_VALUES = 1000  # a round trip each; longer lists skip nothing


def data_predicate(jvm: Jvm, filters: Any) -> Predicate:
    """Those filters (a Scala `Seq[Expression]`) that are understood, conjoined; TRUE of none."""
    strategy = jvm.module(_STRATEGY)
    predicate = Predicate.TRUE
    for expression in iterate(filters):
        translated = strategy.translateFilter(expression, True)
        understood = _predicate(translated.get()) if translated.isDefined() else None
        if understood is not None:
            predicate = predicate & understood if predicate != Predicate.TRUE else understood
    return predicate


def _predicate(source: Any) -> Predicate | None:
    """One `sources.Filter`, or None where it is not understood."""
    name = source.getClass().getSimpleName()
    if name in _COMPARISONS:
        return _comparison(_COMPARISONS[name], source)
    translate = _TRANSLATIONS.get(name)
    return translate(source) if translate else None


def _comparison(op: ComparisonOp, source: Any) -> Predicate | None:
    column, value = _column(source), _literal(source.value())
    return Comparison(op, column, value) if column and value else None


def _null_safe(source: Any) -> Predicate | None:
    column, value = _column(source), _literal(source.value())
    return NullSafeEqual(column, value) if column and value else None


def _is_null(source: Any) -> Predicate | None:
    column = _column(source)
    return IsNull(column) if column else None


def _is_not_null(source: Any) -> Predicate | None:
    column = _column(source)
    return ~IsNull(column) if column else None


def _in(source: Any) -> Predicate | None:
    column = _column(source)
    values = source.values()
    if column is None or not 0 < len(values) <= _MAX_IN_VALUES:
        return None
    literals = [_literal(value) for value in values]
    known = tuple(literal for literal in literals if literal is not None)
    return In(column, known) if len(known) == len(literals) else None


def _starts_with(source: Any) -> Predicate | None:
    column = _column(source)
    return StartsWith(column, str(source.value())) if column else None


def _and(source: Any) -> Predicate | None:
    left, right = _predicate(source.left()), _predicate(source.right())
    return left & right if left and right else left or right


def _or(source: Any) -> Predicate | None:
    left, right = _predicate(source.left()), _predicate(source.right())
    return left | right if left and right else None


def _not(source: Any) -> Predicate | None:
    # Half of an And is enough to keep a file, but not of a negated one: all or nothing below a Not.
    child = _whole(source.child())
    return ~child if child else None


def _whole(source: Any) -> Predicate | None:
    if source.getClass().getSimpleName() == "And":
        left, right = _whole(source.left()), _whole(source.right())
        return left & right if left and right else None
    if source.getClass().getSimpleName() == "Or":
        left, right = _whole(source.left()), _whole(source.right())
        return left | right if left and right else None
    return _predicate(source)


_TRANSLATIONS: dict[str, Callable[[Any], Predicate | None]] = {
    "EqualNullSafe": _null_safe,
    "IsNull": _is_null,
    "IsNotNull": _is_not_null,
    "In": _in,
    "StringStartsWith": _starts_with,
    "And": _and,
    "Or": _or,
    "Not": _not,
    "AlwaysTrue": lambda _source: BooleanLiteral(True),
    "AlwaysFalse": lambda _source: BooleanLiteral(False),
}


def _column(source: Any) -> Column | None:
    """The column of a filter; nested ones are dotted, odd names in back-ticks."""
    try:
        return Column(parse_column_path(source.attribute()))
    except ValueError:
        return None


def _literal(value: Any) -> Literal | None:
    """A Java value as a constant, by its type; None for what is not on the list."""
    if isinstance(value, bool):
        return Literal(value, "boolean")
    if isinstance(value, int):
        return Literal(value, "integer")
    if isinstance(value, float):
        return Literal(value, "double") if math.isfinite(value) else None
    if isinstance(value, Decimal):
        return Literal(value, "decimal") if value.is_finite() else None
    if isinstance(value, str):
        return Literal(value, "string")
    if value is None or isinstance(value, (bytes, bytearray)):
        return None
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
