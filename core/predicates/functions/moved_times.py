"""Dates and times plus or minus whole days, or a constant interval, in UTC."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.expressions.tree import Interval
from optimist.core.predicates.functions.dates import (
    UTC,
    add_months,
    days_of,
    ensure_years,
    is_readable_time,
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
from optimist.core.predicates.tree import Literal
from optimist.core.schema.arrow_types import to_arrow_type
from optimist.core.schema.types import DataType, PrimitiveType

__all__ = ["moved_by_days", "moved_by_interval"]

Build: TypeAlias = Callable[[Arguments], "Value | None"]

_INTEGER, _TIMESTAMP = PrimitiveType("integer"), PrimitiveType("timestamp")
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
    kind = value.data_type

    def kernel(times: Array, days: Array) -> Array:
        midnight = pc.multiply(_numbers_of(days_of(times)), _DAY_US)
        time_of_day = pc.subtract(_micros_of(times), midnight)
        found = pc.add(pc.multiply(_numbers_of(days), _DAY_US), time_of_day)
        return _times_of(found, kind, given.text)

    return computed(kind, [value, there], kernel)


def _moved_by_micros(micros: int, value: Value, given: Arguments) -> Value | None:
    is_date = value.data_type == DATE
    if not (given.zone in UTC if is_date else is_readable_time(given, 0)):
        return None
    kind = _TIMESTAMP if is_date else value.data_type

    def kernel(times: Array) -> Array:
        days = times if is_date else days_of(times)
        ensure_years(days, given.text)
        before = pc.multiply(_numbers_of(days), _DAY_US) if is_date else _micros_of(times)
        return _times_of(pc.add(before, micros), kind, given.text)

    return computed(kind, [value], kernel)


def _micros_of(times: Array) -> Array:
    return times.cast(pa.int64())


def _numbers_of(dates: Array) -> Array:
    return dates.cast(pa.int32()).cast(pa.int64())


def _times_of(micros: Array, kind: DataType, text: str) -> Array:
    found = micros.cast(to_arrow_type(kind))
    ensure_years(days_of(found), text)
    return found
