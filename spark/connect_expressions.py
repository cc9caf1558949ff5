"""Columns of Spark Connect as predicates of ours, read from the messages that clients send.

Only what is on the lists below is understood; all else is opaque, which matches every file.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from contextlib import suppress
from decimal import Decimal
from typing import Any

from optimist.core.errors import UsageError
from optimist.core.predicates import Predicate
from optimist.core.predicates.parsing import parse_column_path
from optimist.core.predicates.tree import (
    FLIPPED,
    Column,
    Comparison,
    ComparisonOp,
    In,
    IsNull,
    Literal,
    NullSafeEqual,
    Opaque,
    StartsWith,
)

__all__ = ["message_predicate", "messages"]

_COMPARISONS: dict[str, ComparisonOp] = {
    "=": "=",
    "==": "=",
    "!=": "<>",
    "<": "<",
    "<=": "<=",
    ">": ">",
    ">=": ">=",
}
_INTEGERS = ("byte", "short", "integer", "long")
_EPOCH = dt.datetime(1970, 1, 1)


def messages(message: Any) -> Iterator[Any]:
    """A protobuf message and all messages in it."""
    yield message
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        repeated = not hasattr(value, "ListFields")
        for item in _items(value) if repeated else (value,):
            yield from messages(item)


def message_predicate(message: Any, text: str) -> Predicate:
    """A boolean expression as a predicate; its parts that are not understood are opaque.

    Args:
        message: A Spark Connect `Expression`.
        text: What opaque parts show.
    """
    found = _predicate(message, text)
    return Opaque(text, _paths(message), deterministic=True) if found is None else found


def _items(value: Any) -> list[Any]:
    listed = list(value.values()) if hasattr(value, "values") else list(value)
    return [item for item in listed if hasattr(item, "ListFields")]


def _paths(message: Any) -> frozenset[tuple[str, ...]]:
    found = set()
    for item in messages(message):
        if item.DESCRIPTOR.name == "UnresolvedAttribute":
            with suppress(UsageError):
                found.add(parse_column_path(item.unparsed_identifier))
    return frozenset(found)


def _predicate(message: Any, text: str) -> Predicate | None:
    kind = message.WhichOneof("expr_type")
    if kind == "expression_string":
        with suppress(UsageError):
            return Predicate.parse(message.expression_string.expression)
        return None
    if kind != "unresolved_function":
        return None
    call = message.unresolved_function
    name, arguments = call.function_name.lower(), list(call.arguments)
    if name in ("and", "or") and len(arguments) == 2:
        left, right = (message_predicate(item, text) for item in arguments)
        return left & right if name == "and" else left | right
    if name in ("not", "!") and len(arguments) == 1:
        return ~message_predicate(arguments[0], text)
    if name in _COMPARISONS and len(arguments) == 2:
        return _comparison(_COMPARISONS[name], arguments)
    rule = _RULES.get(name)
    return None if rule is None else rule(arguments)


def _comparison(op: ComparisonOp, arguments: list[Any]) -> Predicate | None:
    left, right = arguments
    column, literal = _column(left), _literal(right)
    if column is None:
        column, literal, op = _column(right), _literal(left), FLIPPED[op]
    return None if column is None or literal is None else Comparison(op, column, literal)


def _null_safe(arguments: list[Any]) -> Predicate | None:
    column, literal = _column(arguments[0]), _literal(arguments[1])
    return None if column is None or literal is None else NullSafeEqual(column, literal)


def _in(arguments: list[Any]) -> Predicate | None:
    column, values = _column(arguments[0]), [_literal(item) for item in arguments[1:]]
    known = tuple(value for value in values if value is not None)
    if column is None or not known or len(known) < len(values):
        return None
    return In(column, known)


def _is_null(arguments: list[Any]) -> Predicate | None:
    column = _column(arguments[0])
    return None if column is None else IsNull(column)


def _is_not_null(arguments: list[Any]) -> Predicate | None:
    column = _column(arguments[0])
    return None if column is None else ~IsNull(column)


def _starts_with(arguments: list[Any]) -> Predicate | None:
    column, literal = _column(arguments[0]), _literal(arguments[1])
    if column is None or literal is None or not isinstance(literal.value, str):
        return None
    return StartsWith(column, literal.value)


_RULES: dict[str, Callable[[list[Any]], Predicate | None]] = {
    "<=>": _null_safe,
    "in": _in,
    "isnull": _is_null,
    "isnotnull": _is_not_null,
    "startswith": _starts_with,
}


def _column(message: Any) -> Column | None:
    if message.WhichOneof("expr_type") != "unresolved_attribute":
        return None
    with suppress(UsageError):
        return Column(parse_column_path(message.unresolved_attribute.unparsed_identifier))
    return None


def _literal(message: Any) -> Literal | None:
    """A constant by its type; None for what is not on the list."""
    if message.WhichOneof("expr_type") != "literal":
        return None
    literal = message.literal
    kind = literal.WhichOneof("literal_type")
    if kind in _INTEGERS:
        return Literal(getattr(literal, kind), "integer")
    if kind in ("boolean", "string"):
        return Literal(getattr(literal, kind), kind)
    if kind == "decimal":
        return Literal(Decimal(literal.decimal.value), "decimal")
    try:
        if kind == "date":
            return Literal((_EPOCH + dt.timedelta(days=literal.date)).date(), "date")
        if kind == "timestamp":
            moment = _EPOCH + dt.timedelta(microseconds=literal.timestamp)
            return Literal(moment.replace(tzinfo=dt.timezone.utc), "timestamp")
        if kind == "timestamp_ntz":
            return Literal(_EPOCH + dt.timedelta(microseconds=literal.timestamp_ntz), kind)
    except OverflowError:
        return None  # years outside 1..9999 exist in Spark, not in Python
    return None
