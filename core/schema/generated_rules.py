"""Recognises which function of which column a generation expression is (spec 9.4).

Only functions that keep the order of their column, or a part of it, are recognised. Through them a
filter on the column can prune partitions by the generated column.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeAlias

from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError

__all__ = ["GenerationRule", "RuleKind", "generation_rule"]

RuleKind: TypeAlias = Literal[
    "identity", "date", "year", "month", "day", "hour", "format", "truncate", "prefix"
]

_PARTS: dict[type[exp.Expr], RuleKind] = {
    exp.Year: "year",
    exp.Month: "month",
    exp.Day: "day",
    exp.DayOfMonth: "day",
    exp.Hour: "hour",
}
_WRAPPERS = (exp.TsOrDsToDate, exp.TimeStrToTime, exp.TsOrDsToTimestamp, exp.Paren)
_TO_DATE = (exp.TsOrDsToDate, exp.Date)
_TRUNCATIONS = (exp.TimestampTrunc, exp.DateTrunc)
# Only patterns from the year downwards, with no part left out, sort like the times.
_ORDERED_FORMAT = re.compile(r"^yyyy(?:([-/_ ]?)MM(?:\1dd(?:[-/_ ]?HH)?)?)?$")
_AMOUNT = re.compile(r"[0-9]{1,10}")
_QUOTED = re.compile(r"'([^']*)'")
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
        kind: Which function; `prefix` is the beginning of a text.
        path: The column, as the expression names it.
        pattern: For `format`: a Java pattern whose texts sort like the times they stand for.
        amount: For `prefix`: its length in characters. For `truncate`: the most days that the unit
            can have.
    """

    kind: RuleKind
    path: tuple[str, ...]
    pattern: str = ""
    amount: int = 0


@lru_cache(maxsize=256)
def generation_rule(sql: str) -> GenerationRule | None:
    """The rule of a generation expression, or None for an expression that is not recognised."""
    try:
        node = parse_one(sql, dialect="databricks").unnest()
    except (SqlglotError, RecursionError):
        return None
    path = _path(node)
    if path is not None:
        return GenerationRule("identity", path)
    for read in (_date, _part, _format, _truncation, _prefix):
        rule = read(node)
        if rule is not None:
            return rule
    return None


def _path(node: exp.Expr) -> tuple[str, ...] | None:
    names: list[str] = []
    while isinstance(node, exp.Dot) and isinstance(node.expression, exp.Identifier):
        names.insert(0, node.expression.name)
        node = node.this
    if not isinstance(node, exp.Column) or isinstance(node.this, exp.Star):
        return None
    return (*(part.name for part in node.parts), *names)


def _bare_path(node: object) -> tuple[str, ...] | None:
    """The column inside the wrappers that the parser puts around arguments that must be times."""
    while isinstance(node, _WRAPPERS):
        node = node.this
    return _path(node) if isinstance(node, exp.Expr) else None


def _is_date_cast(node: exp.Expr) -> bool:
    if isinstance(node, exp.Cast):
        return bool(node.to.is_type("date")) and not node.args.get("format")
    return isinstance(node, _TO_DATE) and not (node.args.get("format") or node.expressions)


def _time_path(node: exp.Expr) -> tuple[str, ...] | None:
    """The column of `year(column)` and of `year(CAST(column AS DATE))`."""
    while isinstance(node, _WRAPPERS) or _is_date_cast(node):
        node = node.this
    return _path(node)


def _date(node: exp.Expr) -> GenerationRule | None:
    path = _bare_path(node.this) if _is_date_cast(node) else None
    return None if path is None else GenerationRule("date", path)


def _part(node: exp.Expr) -> GenerationRule | None:
    kind = _PARTS.get(type(node))
    if kind is None:
        return None
    # `hour(CAST(column AS DATE))` is always 0, not the hour of the column.
    path = _bare_path(node.this) if kind == "hour" else _time_path(node.this)
    return None if path is None else GenerationRule(kind, path)


def _format(node: exp.Expr) -> GenerationRule | None:
    if not isinstance(node, exp.TimeToStr):
        return None
    path = _bare_path(node.this)
    # The parser keeps patterns in its own form; turning the node back into SQL gives Java's.
    patterns = _QUOTED.findall(node.sql(dialect="databricks"))
    if path is None or len(patterns) != 1 or not _ORDERED_FORMAT.match(patterns[0]):
        return None
    return GenerationRule("format", path, pattern=patterns[0])


def _truncation(node: exp.Expr) -> GenerationRule | None:
    if not isinstance(node, _TRUNCATIONS):
        return None
    path, unit = _bare_path(node.this), node.args.get("unit")
    days = _UNIT_DAYS.get(str(getattr(unit, "name", "")).upper())
    if path is None or days is None:
        return None
    return GenerationRule("truncate", path, amount=days)


def _prefix(node: exp.Expr) -> GenerationRule | None:
    start: int | None = 1
    if isinstance(node, exp.Left):
        length = _integer(node.expression)
    elif isinstance(node, exp.Substring):
        start, length = _integer(node.args.get("start")), _integer(node.args.get("length"))
    else:
        return None
    path = _path(node.this)
    if path is None or start not in (0, 1) or length is None or length < 1:
        return None
    return GenerationRule("prefix", path, amount=length)


def _integer(node: object) -> int | None:
    if not isinstance(node, exp.Literal) or node.is_string or not _AMOUNT.fullmatch(node.this):
        return None
    return int(node.this)
