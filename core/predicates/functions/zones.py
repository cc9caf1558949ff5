"""Expressions whose value may depend on the time zone of a session."""

from __future__ import annotations

from functools import lru_cache

from optimist.core.expressions import NotSqlError, parse_expression
from optimist.core.expressions.tree import (
    Call,
    Cast,
    Expression,
    Interval,
    Name,
    Typed,
    walk,
)
from optimist.core.schema.types import DataType, PrimitiveType, holds_type

__all__ = ["holds_times", "is_bare_name", "names_times"]

_TIMES = (
    "timestamp",
    "date_trunc",
    "current",
    "now",
    "unix",
    "date_format",
    "extract",
    "date_part",
    "datepart",
    "curdate",
    "hour",
    "minute",
    "second",
    "months_between",
)

_TIME_TYPES = (PrimitiveType("timestamp"), PrimitiveType("timestamp_ntz"))


def holds_times(data_type: DataType) -> bool:
    """Tell whether values of a type are times, or have times in them."""
    return any(holds_type(data_type, kind) for kind in _TIME_TYPES)


@lru_cache(maxsize=256)
def names_times(sql: str) -> bool:
    """Tell whether an expression makes times from other values, or can't be parsed.

    It does not look at the types of columns.
    """
    try:
        return any(map(_makes_time, walk(parse_expression(sql))))
    except (NotSqlError, RecursionError):
        return True


def _makes_time(node: Expression) -> bool:
    if isinstance(node, Cast):
        return node.target.name.startswith("TIMESTAMP")
    if isinstance(node, Interval):
        return not (node.is_of_days or node.months is not None)  # a date plus hours is a time
    if isinstance(node, Typed):
        return node.type_name.startswith("TIMESTAMP")
    return isinstance(node, Call) and any(word in node.name for word in _TIMES)


def is_bare_name(sql: str) -> bool:
    """Tell whether an expression is only the name of a column."""
    try:
        return isinstance(parse_expression(sql), Name)
    except (NotSqlError, RecursionError):
        return False
