"""Rewriting of `CAST(column AS type) op constant` as a comparison of the bare column.

If the cast can change which values are equal, or their order, no such comparison exists. The caller
must then treat the condition as unknown, which is always safe (spec 9.5).
"""

from __future__ import annotations

import datetime as dt

from optimist.core.predicates.coercion import INTEGER_DIGITS, Bound, bind, start_of_day
from optimist.core.predicates.tree import (
    CastComparison,
    Column,
    Comparison,
    ComparisonOp,
    Literal,
    LiteralKind,
    Predicate,
)
from optimist.core.schema.types import DataType, DecimalType, PrimitiveType, data_type_from_json
from optimist.core.values.time_zones import instant

__all__ = ["is_rewritten", "without_cast"]

_DATE = PrimitiveType("date")
_TIMES = ("timestamp", "timestamp_ntz")
_EXACT_IN = {"float": 16, "double": 64}
"""Casts of integers with fewer bits than this keep the answer: either every value fits exactly, or
`bind` refuses the constants for which rounding would matter."""


def without_cast(leaf: CastComparison, data_type: DataType, zone: dt.tzinfo) -> Predicate | None:
    """Return the same condition on the bare column, null for the same rows, or None.

    Args:
        leaf: The comparison.
        data_type: The column's own type.
        zone: The session's time zone, which casts times to dates.
    """
    target = data_type_from_json(leaf.target)
    if not _keeps_order(data_type, target):
        return None
    if leaf.right.value is None:
        return Comparison(leaf.op, leaf.column, leaf.right)
    answer = bind(leaf.op, leaf.right, target, zone)
    if answer is None:
        return None
    if isinstance(answer, bool):
        return _same_for_every_value(answer, leaf.column)
    if target == _DATE and str(data_type) in _TIMES:
        return _compare_day(answer, leaf.column, str(data_type), zone)
    found = Literal(answer.value, _literal_kind(target))
    if found.kind == "timestamp" and data_type != target:
        return _compare_in_own_type(answer.op, found, leaf.column, data_type, zone)
    return Comparison(answer.op, leaf.column, found)


def is_rewritten(leaf: CastComparison, data_type: DataType, zone: dt.tzinfo) -> bool:
    """Tell whether Spark's answer is that of the cast only where its optimizer is turned off.

    The optimizer compares the bare column with a cast of the constant. That is another answer for
    times that the clocks of a zone skip or show twice.
    """
    is_of_times = str(data_type) in _TIMES and leaf.target in ("date", *_TIMES)
    is_same = isinstance(zone, dt.timezone) or str(data_type) == leaf.target
    if not is_of_times or is_same or leaf.right.value is None:
        return False
    return leaf.target == "timestamp" or without_cast(leaf, data_type, zone) is None


def _keeps_order(source: DataType, target: DataType) -> bool:
    """Return whether the cast never fails, and the values compare as their casts do."""
    if source == target:
        return True
    name, wanted = str(source), str(target)
    if name in INTEGER_DIGITS:
        return _integer_fits(name, target)
    if isinstance(source, DecimalType):
        if isinstance(target, DecimalType):
            whole, wanted_whole = source.precision - source.scale, target.precision - target.scale
            return whole <= wanted_whole and source.scale <= target.scale
        return wanted == "double"
    return (name, wanted) in (
        ("float", "double"),
        ("date", "timestamp"),
        ("date", "timestamp_ntz"),
        ("timestamp", "date"),
        ("timestamp_ntz", "date"),
        ("timestamp_ntz", "timestamp"),
    )


def _integer_fits(name: str, target: DataType) -> bool:
    bits, digits = INTEGER_DIGITS[name]
    if isinstance(target, DecimalType):
        return digits <= target.precision - target.scale
    wanted = str(target)
    if wanted in INTEGER_DIGITS:
        return bits <= INTEGER_DIGITS[wanted][0]
    return bits < _EXACT_IN.get(wanted, 0)


def _literal_kind(target: DataType) -> LiteralKind:
    if isinstance(target, DecimalType):
        return "decimal"
    name = str(target)
    kinds: dict[str, LiteralKind] = {
        "float": "double",  # bound values of floats are doubles
        "double": "double",
        "date": "date",
        "timestamp": "timestamp",
        "timestamp_ntz": "timestamp_ntz",
        "string": "string",
        "boolean": "boolean",
    }
    return "integer" if name in INTEGER_DIGITS else kinds[name]


def _same_for_every_value(answer: bool, column: Column) -> Predicate:
    """Return a condition that has the answer for every value, but is null for null."""
    return Comparison("=" if answer else "<>", column, column)


def _compare_in_own_type(
    op: ComparisonOp, moment: Literal, column: Column, data_type: DataType, zone: dt.tzinfo
) -> Predicate | None:
    """Compare a day or a wall-clock time with an instant, by a constant that needs no zone.

    The zone of the cast is known here alone: whoever evaluates the comparison may have another.
    """
    answer = bind(op, moment, data_type, zone)
    if answer is None:
        return None
    if isinstance(answer, bool):
        return _same_for_every_value(answer, column)
    return Comparison(answer.op, column, Literal(answer.value, _literal_kind(data_type)))


def _compare_day(bound: Bound, column: Column, name: str, zone: dt.tzinfo) -> Predicate | None:
    """Compare a time's date with a day, by the times at which the day begins and ends."""
    day = bound.value
    if not isinstance(day, dt.date):
        return None
    try:
        begin, end = (
            _start_of_day(day, name, zone),
            _start_of_day(day + dt.timedelta(days=1), name, zone),
        )
    except OverflowError:
        return None
    if begin is None or end is None:
        return None

    def build(op: ComparisonOp, literal: Literal) -> Predicate:
        return Comparison(op, column, literal)

    conditions: dict[ComparisonOp, Predicate] = {
        "=": build(">=", begin) & build("<", end),
        "<>": build("<", begin) | build(">=", end),
        "<": build("<", begin),
        "<=": build("<", end),
        ">": build(">=", end),
        ">=": build(">=", begin),
    }
    return conditions[bound.op]


def _start_of_day(day: dt.date, name: str, zone: dt.tzinfo) -> Literal | None:
    midnight = dt.datetime.combine(day, dt.time())
    if name == "timestamp_ntz":
        return Literal(midnight, "timestamp_ntz")
    first = start_of_day(day, zone)
    # If midnight comes twice, the times sort differently from their days.
    is_once = instant(midnight.replace(tzinfo=zone, fold=1), zone) <= first
    return Literal(first, "timestamp") if is_once else None
