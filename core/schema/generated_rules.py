"""Recognition of generation expressions that are a known function of one column (spec 9.4).

It recognises only functions that keep the order of their column, or of a part of it. Through them a
filter on the column can prune partitions by the generated column.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeAlias

from optimist.core.expressions import NotSqlError, parse_expression
from optimist.core.expressions.tree import Call, Cast, Expression, Name, Number, Text

__all__ = ["GenerationRule", "RuleKind", "generation_rule"]

RuleKind: TypeAlias = Literal[
    "identity", "date", "year", "month", "day", "hour", "format", "truncate", "prefix"
]

_PARTS: dict[str, RuleKind] = {
    "year": "year",
    "month": "month",
    "day": "day",
    "dayofmonth": "day",
    "hour": "hour",
}
# Each with the index of the unit among its arguments.
_TRUNCATIONS = {"date_trunc": 0, "trunc": 1}
# Only patterns that go from the year downwards without gaps sort like the times.
_ORDERED_FORMAT = re.compile(r"^yyyy(?:([-/_ ]?)MM(?:\1dd(?:[-/_ ]?HH)?)?)?$")
# The most days that each unit can have; units shorter than a day count as one.
_UNIT_DAYS = {
    **dict.fromkeys(("YEAR", "YYYY", "YY"), 366),
    "QUARTER": 92,
    **dict.fromkeys(("MONTH", "MON", "MM"), 31),
    "WEEK": 7,
    **dict.fromkeys(("DAY", "DD", "HOUR", "MINUTE", "SECOND"), 1),
}


@dataclass(frozen=True, slots=True)
class GenerationRule:
    """A function of one column.

    Attributes:
        kind: The function. `prefix` is the beginning of a text.
        path: The column, as the expression names it.
        pattern: For `format`: a Java pattern whose texts sort like their times.
        amount: For `prefix`: its length in characters. For `truncate`: the most days that the unit
            can have.
    """

    kind: RuleKind
    path: tuple[str, ...]
    pattern: str = ""
    amount: int = 0


@lru_cache(maxsize=256)
def generation_rule(sql: str) -> GenerationRule | None:
    """Return the rule of a generation expression, or None if it is not recognised."""
    try:
        node = parse_expression(sql)
    except NotSqlError:
        return None
    path = _column_path(node)
    if path is not None:
        return GenerationRule("identity", path)
    if _is_to_date(node):
        path = _column_path(_first_child(node))
        return None if path is None else GenerationRule("date", path)
    return _rule_of_call(node) if isinstance(node, Call) and node.is_plain else None


def _column_path(node: Expression) -> tuple[str, ...] | None:
    return node.path if isinstance(node, Name) and not node.is_call else None


def _is_to_date(node: Expression) -> bool:
    if isinstance(node, Cast):
        return node.target.name == "DATE" and not node.is_try
    if not isinstance(node, Call) or not node.is_plain or node.qualifiers:
        return False
    return node.name in ("to_date", "date") and len(node.arguments) == 1


def _first_child(node: Expression) -> Expression:
    return next(node.children())


def _rule_of_call(node: Call) -> GenerationRule | None:
    if node.qualifiers:
        return None
    if node.name in _PARTS and len(node.arguments) == 1:
        return _part_rule(_PARTS[node.name], node.arguments[0])
    if node.name in _TRUNCATIONS and len(node.arguments) == 2:  # unit and time
        return _truncation_rule(node)
    if node.name == "date_format" and len(node.arguments) == 2:  # time and pattern
        return _format_rule(*node.arguments)
    return _prefix_rule(node)


def _part_rule(kind: RuleKind, node: Expression) -> GenerationRule | None:
    # `hour(CAST(column AS DATE))` is always 0, not the hour of the column.
    while kind != "hour" and _is_to_date(node):
        node = _first_child(node)
    path = _column_path(node)
    return None if path is None else GenerationRule(kind, path)


def _format_rule(time: Expression, pattern: Expression) -> GenerationRule | None:
    path = _column_path(time)
    if path is None or not isinstance(pattern, Text) or not _ORDERED_FORMAT.match(pattern.value):
        return None
    return GenerationRule("format", path, pattern=pattern.value)


def _truncation_rule(node: Call) -> GenerationRule | None:
    """Return the rule of `date_trunc('MONTH', column)` or `trunc(column, 'MONTH')`."""
    at = _TRUNCATIONS[node.name]
    unit, path = node.arguments[at], _column_path(node.arguments[1 - at])
    days = _UNIT_DAYS.get(unit.value.upper()) if isinstance(unit, Text) else None
    if path is None or days is None:
        return None
    return GenerationRule("truncate", path, amount=days)


def _prefix_rule(node: Call) -> GenerationRule | None:
    """Return the rule of `left(column, 3)` or `substring(column, 1, 3)`."""
    path = _column_path(node.arguments[0]) if node.arguments else None
    numbers = [_integer_value(item) for item in node.arguments[1:]]
    if node.name in ("substring", "substr"):
        numbers = numbers[1:] if numbers[:1] in ([0], [1]) else []
    elif node.name != "left":
        return None
    length = numbers[0] if len(numbers) == 1 else None
    if path is None or length is None or length < 1:
        return None
    return GenerationRule("prefix", path, amount=length)


def _integer_value(node: Expression) -> int | None:
    return int(node.text) if isinstance(node, Number) and node.kind == "integer" else None
