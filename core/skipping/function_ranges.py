"""Ranges of a column that follow from a condition on a function of it (spec 9.4).

For `year(day) = 2024`, no row of an older or a newer day is true, and files have the least and the
greatest day. Only functions are taken that fail for no value of the column: where Spark must raise
an error, a file may not be left out.

A row for which the condition is true is always in the range. The reverse need not hold.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

from optimist.core.expressions import NotSqlError, parse_expression
from optimist.core.expressions.tree import Call, Expression, Operation
from optimist.core.predicates.constants import cast_literal
from optimist.core.predicates.normal_form import conjunction
from optimist.core.predicates.parsing import column_of, literal_of
from optimist.core.predicates.resolution import ResolvedColumn, resolve_column
from optimist.core.predicates.tree import (
    FLIPPED,
    Column,
    Comparison,
    ComparisonOp,
    Literal,
    LiteralKind,
    Opaque,
    Predicate,
    StartsWith,
)
from optimist.core.schema.types import StructType

__all__ = ["range_implied_by"]

_TIMES: dict[str, LiteralKind] = {
    "date": "date",
    "timestamp": "timestamp",
    "timestamp_ntz": "timestamp_ntz",
}
_ZONES = dt.timedelta(days=1)
"""A local time is less than a day away from UTC, in whichever zone the condition is evaluated."""
_LONGEST: dict[str, int] = {
    **dict.fromkeys(("year", "yyyy", "yy"), 366),
    "quarter": 92,
    **dict.fromkeys(("month", "mon", "mm"), 31),
    "week": 7,
    **dict.fromkeys(("day", "dd", "hour", "minute", "second"), 1),
}
"""The most days of each unit; a time is less than that behind the unit's start."""


@dataclass(frozen=True, slots=True)
class _Condition:
    """A comparison of a function of a column with a constant.

    Attributes:
        op: The comparison, with the function on its left.
        call: The function.
        constant: The constant.
    """

    op: ComparisonOp
    call: Call
    constant: Literal


_Rule: TypeAlias = Callable[[_Condition, Column, ResolvedColumn], Predicate]


def range_implied_by(leaf: Predicate, schema: StructType) -> Predicate:
    """Return a condition that is true for every row for which the leaf is, or TRUE.

    Args:
        leaf: A leaf of a predicate in positive form.
        schema: The table's schema.
    """
    if not isinstance(leaf, Opaque) or not leaf.is_own_text or len(leaf.paths) != 1:
        return Predicate.TRUE
    return conjunction(tuple(_range_of(item, schema) for item in _conditions(leaf.sql)))


def _range_of(condition: _Condition, schema: StructType) -> Predicate:
    name, arguments = condition.call.name, condition.call.arguments
    found = _RULES.get(name)
    if found is None or len(arguments) <= found[0]:
        return Predicate.TRUE
    rule, column = found[1], column_of(arguments[found[0]])
    others = (item for at, item in enumerate(arguments) if at != found[0])
    if any(literal_of(item) is None for item in others):
        return Predicate.TRUE  # an argument such as CAST(s AS INT) fails for some values
    resolved = None if column is None else resolve_column(column.path, schema)
    if column is None or resolved is None or not resolved.has_plain_order:
        return Predicate.TRUE
    return rule(condition, column, resolved)


@lru_cache(maxsize=256)
def _conditions(sql: str) -> tuple[_Condition, ...]:
    """Return the comparisons that a text says are all true."""
    try:
        node = parse_expression(sql)
    except (NotSqlError, RecursionError):
        return ()
    if not isinstance(node, Operation):
        return ()
    found: list[_Condition | None] = []
    if node.operator == "BETWEEN":
        value, low, high = node.operands
        found = [_compared(">=", value, low), _compared("<=", value, high)]
    elif len(node.operands) == 2:
        found = [_compared(node.operator, *node.operands)]
    return tuple(item for item in found if item is not None)


def _compared(operator: str, left: Expression, right: Expression) -> _Condition | None:
    op = next((item for item in FLIPPED if item == operator), None)
    if op is None or op == "<>":
        return None
    if not isinstance(left, Call):
        left, right, op = right, left, FLIPPED[op]
    constant = literal_of(right)
    if not isinstance(left, Call) or constant is None or not left.is_plain or left.qualifiers:
        return None
    return _Condition(op, left, constant)


def _range_of_year(condition: _Condition, column: Column, resolved: ResolvedColumn) -> Predicate:
    year, name = condition.constant.value, str(resolved.data_type)
    if name not in _TIMES or not isinstance(year, int) or isinstance(year, bool):
        return Predicate.TRUE
    if not dt.MINYEAR < year < dt.MAXYEAR - 1:
        return Predicate.TRUE
    first = dt.datetime(year + (condition.op == ">"), 1, 1)
    behind = dt.datetime(year + (condition.op != "<"), 1, 1)
    return _between(condition.op, column, name, first, behind)


def _range_of_unit(
    condition: _Condition, column: Column, resolved: ResolvedColumn, unit_at: int = 0
) -> Predicate:
    """Return the range for the start of a unit, which is never behind the time itself."""
    name, unit = str(resolved.data_type), literal_of(condition.call.arguments[unit_at])
    word = None if unit is None else unit.value
    days = _LONGEST.get(word.lower()) if isinstance(word, str) else None
    constant = condition.constant
    if constant.kind == "string" and unit_at:
        constant = cast_literal(constant, "date") or constant
    start = constant.value
    if days is None or name not in _TIMES or not isinstance(start, dt.date):
        return Predicate.TRUE
    begin = start if isinstance(start, dt.datetime) else dt.datetime.combine(start, dt.time())
    begin = begin if begin.tzinfo is None else begin.astimezone(dt.timezone.utc)
    plain = begin.replace(tzinfo=None)
    if not 2 < plain.year < dt.MAXYEAR - 2:
        return Predicate.TRUE
    return _between(condition.op, column, name, plain, plain + dt.timedelta(days=days))


def _range_of_day(condition: _Condition, column: Column, resolved: ResolvedColumn) -> Predicate:
    return _range_of_unit(condition, column, resolved, unit_at=1)


def _between(
    op: ComparisonOp, column: Column, name: str, low: dt.datetime, high: dt.datetime
) -> Predicate:
    """Return the range from `low` to before `high`; the comparison may need only one end."""
    slack = dt.timedelta() if name == "date" and low.time() == dt.time() else _ZONES + _ZONES
    parts: list[Predicate] = []
    if not op.startswith("<"):
        parts.append(Comparison(">=", column, _literal(low - slack, name)))
    if not op.startswith(">"):
        parts.append(Comparison("<", column, _literal(high + slack, name)))
    return conjunction(tuple(parts))


def _literal(moment: dt.datetime, name: str) -> Literal:
    value: Any = moment.date() if name == "date" else moment
    if name == "timestamp":
        value = moment.replace(tzinfo=dt.timezone.utc)
    return Literal(value, _TIMES[name])


def _range_of_prefix(condition: _Condition, column: Column, resolved: ResolvedColumn) -> Predicate:
    """Return the range for the first characters, which never sort behind the text itself."""
    text, arguments = condition.constant.value, condition.call.arguments
    is_substring = condition.call.name != "left"
    begin = literal_of(arguments[1]) if is_substring and len(arguments) > 1 else None
    begins = not is_substring or (begin is not None and begin.value in (0, 1))
    lengths = [literal_of(item) for item in arguments[1:]]
    if any(item is None or item.kind != "integer" for item in lengths):
        return Predicate.TRUE  # a text or a decimal is cast first, which may fail
    if str(resolved.data_type) != "string" or not isinstance(text, str) or not begins:
        return Predicate.TRUE
    if condition.op == "=" and text:
        return StartsWith(column, text)
    if condition.op in (">", ">="):
        return Comparison(condition.op, column, condition.constant)
    return Predicate.TRUE


_RULES: dict[str, tuple[int, _Rule]] = {
    "year": (0, _range_of_year),
    "date_trunc": (1, _range_of_unit),
    "trunc": (0, _range_of_day),
    **dict.fromkeys(("substring", "substr", "left"), (0, _range_of_prefix)),
}
"""For each function, which of its arguments is the column, and the rule."""
