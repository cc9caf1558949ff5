"""Dates and times plus or minus whole days, or a constant interval.

Months and days move what the clocks of the session's zone show; hours and less move the instant.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.expressions.tree import Interval
from optimist.core.predicates.functions.dates import (
    add_months,
    days_of,
    ensure_years,
    moved,
    to_date,
)
from optimist.core.predicates.functions.value import (
    DATE,
    INTEGERS,
    Arguments,
    Array,
    Value,
    computed,
    typed_constant,
)
from optimist.core.predicates.functions.wall_clocks import (
    NTZ,
    TIMESTAMP,
    instant_value,
    keeping_offsets,
    wall_times,
    wall_value,
)
from optimist.core.predicates.tree import Literal
from optimist.core.schema.types import PrimitiveType

__all__ = ["moved_by_days", "moved_by_interval"]

Build: TypeAlias = Callable[[Arguments], "Value | None"]

_INTEGER = PrimitiveType("integer")
_DAY_US = 86_400_000_000
_MOST_DAYS = 4_000_000
_MOST_MONTHS = 120_000
"""Longer moves leave the years that are known here."""


def moved_by_days(sign: int, otherwise: Build, given: Arguments) -> Value | None:
    """Return a date plus or minus whole days, or what another function gives for other types."""
    values = list(given.values)
    if sign > 0 and given.types[1] == DATE:
        values.reverse()
    if values[0].data_type != DATE or str(values[1].data_type) not in INTEGERS[:3]:
        return otherwise(given)
    return moved(sign, replace(given, values=values))


def moved_by_interval(sign: int, interval: Interval, given: Arguments) -> Value | None:
    """Return a date or a time plus or minus an interval.

    Args:
        sign: 1 to add it, or -1.
        interval: The interval.
        given: The date or the time.
    """
    (value,) = given.values
    if interval.months is not None and abs(interval.months) <= _MOST_MONTHS:
        return _moved_by_months(sign * interval.months, value, given)
    micros = interval.micros
    if micros is None or abs(micros) > _MOST_DAYS * _DAY_US:
        return None
    if value.data_type == DATE and interval.is_of_days:
        days = _constant(micros // _DAY_US)
        return moved(sign, replace(given, values=[value, days]))
    return _moved_by_micros(sign * micros, value, given)


def _constant(number: int) -> Value:
    return typed_constant(Literal(number, "integer"), _INTEGER)


def _moved_by_months(months: int, value: Value, given: Arguments) -> Value | None:
    day = to_date(given)
    there = None if day is None else add_months(replace(given, values=[day, _constant(months)]))
    if there is None or value.data_type == DATE:
        return there
    walls = wall_value(given, 0)
    if walls is None:
        return None

    def kernel(times: Array, shown: Array, days: Array) -> Array:
        midnight = pc.multiply(_numbers_of(days_of(shown)), _DAY_US)
        time_of_day = pc.subtract(_micros_of(shown), midnight)
        found = pc.add(pc.multiply(_numbers_of(days), _DAY_US), time_of_day)
        return _from_walls(found, times, given)

    return computed(value.data_type, [value, walls, there], kernel)


def _moved_by_micros(micros: int, value: Value, given: Arguments) -> Value | None:
    is_plain = value.data_type == NTZ
    times = value if is_plain else instant_value(given, 0)
    if times is None:
        return None
    days = abs(micros) // _DAY_US * (1 if micros > 0 else -1)

    def kernel(before: Array) -> Array:
        shown = before if is_plain else wall_times(before, given.zone)
        ensure_years(days_of(shown), given.text)
        moved_days = before
        if days:
            moved_days = _from_walls(pc.add(_micros_of(shown), days * _DAY_US), before, given)
        found = pc.add(_micros_of(moved_days), micros - days * _DAY_US).cast(before.type)
        ensure_years(days_of(found if is_plain else wall_times(found, given.zone)), given.text)
        return found

    return computed(NTZ if is_plain else TIMESTAMP, [times], kernel)


def _from_walls(micros: Array, times: Array, given: Arguments) -> Array:
    """Return wall-clock times as what they were made from: such times, or instants."""
    walls = micros.cast(pa.timestamp("us"))
    ensure_years(days_of(walls), given.text)
    return walls if times.type == walls.type else keeping_offsets(walls, times, given.zone)


def _micros_of(times: Array) -> Array:
    return times.cast(pa.int64())


def _numbers_of(dates: Array) -> Array:
    return dates.cast(pa.int32()).cast(pa.int64())
