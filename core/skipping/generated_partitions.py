"""Conditions on generated partition columns that follow from their source columns (spec 9.4).

For example, a table is partitioned by `date GENERATED ALWAYS AS (CAST(ts AS DATE))`, and a query
asks for `ts > ...`. Files of older dates hold no such row, and this is known without their
statistics.

The log does not record the zone in which a writer computed dates. So an instant's date is known
only up to the widest possible offset, on either side. A partition is kept if any writer may have
put a matching row there.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import or_
from typing import Any

from optimist.core.predicates.coercion import Bound, BoundValue, bind, bind_values
from optimist.core.predicates.normal_form import conjunction
from optimist.core.predicates.resolution import ResolvedColumn, resolve_column
from optimist.core.predicates.tree import (
    Column,
    Comparison,
    ComparisonOp,
    In,
    IsNull,
    Like,
    Literal,
    LiteralKind,
    Not,
    Predicate,
    StartsWith,
)
from optimist.core.schema.generated_columns import generation_expression
from optimist.core.schema.generated_rules import GenerationRule, generation_rule
from optimist.core.schema.types import DataType, StructField, StructType

__all__ = ["GeneratedPartitions"]

_MAX_LISTED = 64
_WIDEST_OFFSET = dt.timedelta(hours=18)
_PARTS = ("year", "month", "day", "hour")
_TIMES = frozenset({"date", "timestamp", "timestamp_ntz"})
_INTEGERS = frozenset({"byte", "short", "integer", "long"})
_RESULT_TYPES: dict[str, frozenset[str]] = {
    "date": frozenset({"date"}),
    "format": frozenset({"string"}),
    "truncate": _TIMES,
    "prefix": frozenset({"string"}),
    **dict.fromkeys(_PARTS, _INTEGERS),
}
_FORMATTED = (("yyyy", "year", 4), ("MM", "month", 2), ("dd", "day", 2), ("HH", "hour", 2))


@dataclass(frozen=True, slots=True)
class _Generated:
    """A generated partition column, and its source."""

    name: str
    data_type: DataType
    source: ResolvedColumn
    rule: GenerationRule

    @property
    def column(self) -> Column:
        return Column((self.name,))


@dataclass(frozen=True, slots=True)
class _Range:
    """Values of a source from `low` to `high`, both included. None means an open end."""

    low: Any = None
    high: Any = None


class GeneratedPartitions:
    """The generated partition columns of one table."""

    def __init__(self, schema: StructType, partition_columns: Sequence[str]) -> None:
        fields = [field for name in partition_columns if (field := schema.find(name)) is not None]
        found = [_generated_column(field, schema) for field in fields]
        self._columns = tuple(item for item in found if item is not None)

    def implied_by(self, leaf: Predicate, schema: StructType, zone: dt.tzinfo) -> Predicate:
        """Return a condition on partitions that follows from the leaf, or TRUE.

        Args:
            leaf: A leaf of a predicate in positive form, or the negation of a leaf. The result is
                true of the partition of every row for which the leaf is true.
            schema: The table's schema.
            zone: The zone of the leaf's times without one.
        """
        paths = leaf.columns()
        if not self._columns or len(paths) != 1:
            return Predicate.TRUE
        source = resolve_column(next(iter(paths)), schema)
        if source is None or not source.has_plain_order:
            return Predicate.TRUE
        mine = tuple(item for item in self._columns if item.source.path == source.path)
        return _implied_condition(mine, leaf, source.data_type, zone) if mine else Predicate.TRUE


def _generated_column(field: StructField, schema: StructType) -> _Generated | None:
    sql = generation_expression(field)
    rule = None if sql is None else generation_rule(sql)
    source = None if rule is None else resolve_column(rule.path, schema)
    own = resolve_column((field.name,), schema)
    if rule is None or source is None or own is None or not own.has_plain_order:
        return None
    source_name, result = str(source.data_type), str(field.data_type)
    if rule.kind == "identity":
        # The log may hold a timestamp without its zone, which is another instant elsewhere.
        fits = source.data_type == field.data_type and source_name != "timestamp"
    else:
        sources = frozenset({"string"}) if rule.kind == "prefix" else _TIMES
        fits = source_name in sources and result in _RESULT_TYPES[rule.kind]
    return _Generated(field.name, field.data_type, source, rule) if fits else None


def _implied_condition(
    columns: tuple[_Generated, ...], leaf: Predicate, data_type: DataType, zone: dt.tzinfo
) -> Predicate:
    if isinstance(leaf, IsNull):
        return conjunction(tuple(IsNull(item.column) for item in columns))
    conditions = [_rename_column(leaf, item) for item in columns if item.rule.kind == "identity"]
    conditions += [
        _condition_on_prefix(leaf, item) for item in columns if item.rule.kind == "prefix"
    ]
    ranges = _ranges_of_leaf(leaf, data_type, zone)
    if ranges is not None:
        alternatives = [_condition_on_range(columns, item) for item in ranges]
        if Predicate.TRUE not in alternatives:
            conditions.append(reduce(or_, alternatives))
    return conjunction(tuple(item for item in conditions if item != Predicate.TRUE))


def _rename_column(leaf: Predicate, item: _Generated) -> Predicate:
    """Return the same condition on the generated column, which has the same values."""
    inner = leaf.child if isinstance(leaf, Not) else leaf
    if isinstance(inner, Comparison) and isinstance(inner.right, Literal):
        inner = replace(inner, left=item.column)
    elif isinstance(inner, (In, StartsWith, Like)):
        inner = replace(inner, column=item.column)
    else:
        return Predicate.TRUE
    return _or_null(Not(inner) if isinstance(leaf, Not) else inner, item)


def _condition_on_prefix(leaf: Predicate, item: _Generated) -> Predicate:
    """Return what `LIKE 'abc%'` implies for the first characters."""
    prefix = ""
    if isinstance(leaf, StartsWith):
        prefix = leaf.prefix
    elif isinstance(leaf, Like) and leaf.parts and not leaf.parts[0][0]:
        prefix = leaf.parts[0][1]
    if not prefix:
        return Predicate.TRUE
    length = item.rule.amount
    if len(prefix) < length:
        return _or_null(StartsWith(item.column, prefix), item)
    return _or_null(Comparison("=", item.column, Literal(prefix[:length], "string")), item)


def _ranges_of_leaf(leaf: Predicate, data_type: DataType, zone: dt.tzinfo) -> list[_Range] | None:
    """Return ranges, one of which holds the row's value, or None if unknown."""
    if isinstance(leaf, In):
        listed = tuple(value for value in leaf.values if value.value is not None)
        values = bind_values(listed, data_type, zone)
        if not values:
            return None
        if len(values) > _MAX_LISTED:
            return [_Range(min(values), max(values))]
        return [_Range(value, value) for value in values]
    if not isinstance(leaf, Comparison) or not isinstance(leaf.right, Literal):
        return None
    answer = bind(leaf.op, leaf.right, data_type, zone)
    if not isinstance(answer, Bound) or answer.op == "<>":
        return None
    return [_open_range(answer.op, answer.value)]


def _open_range(op: ComparisonOp, value: BoundValue) -> _Range:
    return _Range(None if op.startswith("<") else value, None if op.startswith(">") else value)


def _condition_on_range(columns: tuple[_Generated, ...], values: _Range) -> Predicate:
    """Return a condition on the partition of every row whose source is in the range."""
    conditions = [
        _condition_between(item, values.low, values.high)
        for item in columns
        if item.rule.kind == "prefix"
    ]
    timed = [item for item in columns if item.rule.kind not in ("identity", "prefix")]
    if timed:
        low, high = (
            _extreme_wall_clock(values.low, -_WIDEST_OFFSET),
            _extreme_wall_clock(values.high, _WIDEST_OFFSET),
        )
        conditions += [_condition_between(item, low, high) for item in timed]
        conditions.append(_condition_on_parts(timed, low, high))
    return conjunction(tuple(item for item in conditions if item != Predicate.TRUE))


def _extreme_wall_clock(value: Any, offset: dt.timedelta) -> dt.datetime | None:
    """Return the latest wall-clock time at an instant, or the earliest for a negative offset."""
    if not isinstance(value, dt.datetime):
        return None if value is None else dt.datetime.combine(value, dt.time())
    if value.tzinfo is None:
        return value
    return _move_time(value.replace(tzinfo=None), offset)


def _move_time(value: dt.datetime, by: dt.timedelta) -> dt.datetime | None:
    try:
        return value + by
    except OverflowError:
        return None


def _condition_between(item: _Generated, low: Any, high: Any) -> Predicate:
    compute = _FUNCTIONS.get(item.rule.kind)
    if compute is None:
        return Predicate.TRUE
    conditions = []
    for op, value, is_low in ((">=", low, True), ("<=", high, False)):
        literal = None if value is None else compute(item, value, is_low)
        if literal is not None:
            conditions.append(Comparison(op, item.column, literal))  # type: ignore[arg-type]
    if not conditions:
        return Predicate.TRUE
    found = conjunction(tuple(conditions))
    is_open = item.rule.kind == "format" and high is None
    return _or_null(_or_long_year(found, item) if is_open else found, item)


def _date_literal(_item: _Generated, value: dt.datetime, _is_low: bool) -> Literal | None:
    return Literal(value.date(), "date")


def _format_literal(item: _Generated, value: dt.datetime, _is_low: bool) -> Literal | None:
    text = item.rule.pattern
    for letters, part, digits in _FORMATTED:
        text = text.replace(letters, f"{getattr(value, part):0{digits}d}")
    return Literal(text, "string")


def _or_long_year(condition: Predicate, item: _Generated) -> Predicate:
    """Keep years of five digits, whose texts alone are longer than the pattern.

    They sort before all others: Java writes `+10000-01`, and once wrote `10000-01`.
    """
    any_character = (True, "_")
    return condition | Not(Like(item.column, (any_character,) * len(item.rule.pattern)))


def _truncated_literal(item: _Generated, value: dt.datetime, is_low: bool) -> Literal | None:
    # A unit begins at most its own length earlier, and a text without a zone may mean any zone.
    slack = dt.timedelta(days=item.rule.amount) + _WIDEST_OFFSET
    moved = _move_time(value, -slack if is_low else _WIDEST_OFFSET)
    if moved is None:
        return None
    kind: LiteralKind = str(item.data_type)  # type: ignore[assignment]  # one of `_TIMES`
    if kind == "date":
        return Literal(moved.date(), kind)
    zone = dt.timezone.utc if kind == "timestamp" else None
    return Literal(moved.replace(tzinfo=zone), kind)


def _prefix_literal(item: _Generated, value: str, _is_low: bool) -> Literal | None:
    return Literal(value[: item.rule.amount], "string")


_FUNCTIONS: dict[str, Callable[[_Generated, Any, bool], Literal | None]] = {
    "date": _date_literal,
    "format": _format_literal,
    "truncate": _truncated_literal,
    "prefix": _prefix_literal,
}


def _condition_on_parts(
    columns: Sequence[_Generated], low: dt.datetime | None, high: dt.datetime | None
) -> Predicate:
    """Return a condition on year, or year and month, and so on, like the digits of a number."""
    by_kind = {item.rule.kind: item for item in columns}
    parts: list[_Generated] = []
    for kind in _PARTS:
        if kind not in by_kind:
            break
        parts.append(by_kind[kind])
    if not parts:
        return Predicate.TRUE
    from_low = Predicate.TRUE if low is None else _compare_parts(parts, ">", low)
    to_high = Predicate.TRUE if high is None else _compare_parts(parts, "<", high)
    return conjunction(tuple(item for item in (from_low, to_high) if item != Predicate.TRUE))


def _compare_parts(parts: list[_Generated], op: ComparisonOp, moment: dt.datetime) -> Predicate:
    """Return `(year, month, ...) >= (...)` as ORs and ANDs, from the last part to the first."""
    found = Predicate.TRUE
    for item in reversed(parts):
        value = Literal(getattr(moment, item.rule.kind), "integer")
        strict = Comparison(op, item.column, value)
        same = Comparison("=", item.column, value)
        mine = strict | (same if found == Predicate.TRUE else same & found)
        found = _or_null(mine, item)
    return found


def _or_null(condition: Predicate, item: _Generated) -> Predicate:
    # The log has null for an empty text, and for a value that could not be computed.
    return condition | IsNull(item.column)
