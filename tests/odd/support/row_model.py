"""What a condition says of each row, judged in plain Python, one row after the other.

It shares nothing with the engine: no Arrow, no tree of predicates, no statistics. It knows SQL's
three-valued logic and Spark's order of values: NaN equals itself and is the greatest of all
numbers, the two zeros are one, texts compare by code points, binaries by unsigned bytes.
"""

from __future__ import annotations

import itertools
import math
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

from odd_values import OddColumn

__all__ = ["Condition", "both", "conditions", "either", "matching", "negated"]

Row: TypeAlias = Mapping[str, Any]
Truth: TypeAlias = "bool | None"

_OPERATORS: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@dataclass(frozen=True)
class Condition:
    """A condition as SQL, and as a judge of one row."""

    sql: str
    judge: Callable[[Row], Truth]

    def __repr__(self) -> str:
        return self.sql


def matching(condition: Condition, rows: Iterable[Row]) -> list[Any]:
    """The ids of the rows for which the condition is true, in order."""
    return sorted(row["id"] for row in rows if condition.judge(row) is True)


def negated(part: Condition) -> Condition:
    def judge(row: Row) -> Truth:
        truth = part.judge(row)
        return None if truth is None else not truth

    return Condition(f"NOT ({part.sql})", judge)


def both(left: Condition, right: Condition) -> Condition:
    def judge(row: Row) -> Truth:
        truths = {left.judge(row), right.judge(row)}
        return False if False in truths else None if None in truths else True

    return Condition(f"(({left.sql}) AND ({right.sql}))", judge)


def either(left: Condition, right: Condition) -> Condition:
    def judge(row: Row) -> Truth:
        truths = {left.judge(row), right.judge(row)}
        return True if True in truths else None if None in truths else False

    return Condition(f"(({left.sql}) OR ({right.sql}))", judge)


def conditions(name: str, column: OddColumn) -> Iterator[Condition]:
    """Each operator with each value of a column, and with null."""
    for value in (*column.values, None):
        spelled = "NULL" if value is None else column.sql(value)
        for op in _OPERATORS:
            yield Condition(f"`{name}` {op} {spelled}", _compared(name, op, value))
        yield Condition(f"`{name}` <=> {spelled}", _same(name, value))
        yield negated(Condition(f"`{name}` <=> {spelled}", _same(name, value)))
    yield Condition(f"`{name}` IS NULL", lambda row: row[name] is None)
    yield Condition(f"`{name}` IS NOT NULL", lambda row: row[name] is not None)
    yield from _lists(name, column)
    yield from _ranges(name, column)
    if column.kind == "string":
        yield from _patterns(name, column)


def _lists(name: str, column: OddColumn) -> Iterator[Condition]:
    values = column.values
    for listed in (values[:2], values[-3:], (*values[1:2], None), values):
        texts = ", ".join("NULL" if item is None else column.sql(item) for item in listed)
        inside = Condition(f"`{name}` IN ({texts})", _listed(name, listed))
        yield inside
        yield negated(inside)


def _ranges(name: str, column: OddColumn) -> Iterator[Condition]:
    ordered = sorted(column.values, key=_key)
    for low, high in itertools.pairwise(ordered):
        judges = _compared(name, ">=", low), _compared(name, "<=", high)
        low_sql, high_sql = column.sql(low), column.sql(high)
        parts = (Condition("", judge) for judge in judges)
        between = both(*parts)
        inside = Condition(f"`{name}` BETWEEN {low_sql} AND {high_sql}", between.judge)
        yield inside
        yield negated(inside)


def _patterns(name: str, column: OddColumn) -> Iterator[Condition]:
    for value in column.values:
        literal = column.sql(value)
        yield Condition(f"startswith(`{name}`, {literal})", _text_test(name, value, str.startswith))
        yield Condition(f"endswith(`{name}`, {literal})", _text_test(name, value, str.endswith))
        yield Condition(f"contains(`{name}`, {literal})", _text_test(name, value, _contains))
        if not set(value) & set("%_\\"):
            pattern = column.sql(f"{value}%_")
            regex = re.compile(re.escape(value) + ".+", re.DOTALL)
            like = Condition(f"`{name}` LIKE {pattern}", _text_test(name, regex, _full_match))
            yield like
            yield negated(like)


def _contains(text: str, part: str) -> bool:
    return part in text


def _full_match(text: str, regex: re.Pattern[str]) -> bool:
    return regex.fullmatch(text) is not None


def _text_test(name: str, wanted: Any, test: Callable[[str, Any], bool]) -> Callable[[Row], Truth]:
    def judge(row: Row) -> Truth:
        return None if row[name] is None else test(row[name], wanted)

    return judge


def _compared(name: str, op: str, value: Any) -> Callable[[Row], Truth]:
    def judge(row: Row) -> Truth:
        found = row[name]
        if found is None or value is None:
            return None
        return _OPERATORS[op](_key(found), _key(value))

    return judge


def _same(name: str, value: Any) -> Callable[[Row], Truth]:
    def judge(row: Row) -> Truth:
        found = row[name]
        if found is None or value is None:
            return found is None and value is None
        return bool(_key(found) == _key(value))

    return judge


def _listed(name: str, listed: Iterable[Any]) -> Callable[[Row], Truth]:
    def judge(row: Row) -> Truth:
        if row[name] is None:
            return None
        truths = {_compared(name, "=", item)(row) for item in listed}
        return True if True in truths else None if None in truths else False

    return judge


def _key(value: Any) -> Any:
    """What orders values of one type as Spark does."""
    if isinstance(value, float):
        if math.isnan(value):
            return (1, 0)
        return (0, Fraction(value)) if math.isfinite(value) else (0, value)
    if isinstance(value, str):
        return value.encode("utf-8")
    if isinstance(value, (bool, int, bytes)) or hasattr(value, "year"):
        return value
    return Fraction(value)  # a decimal, whatever its digits
