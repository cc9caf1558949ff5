"""Functions of dates in the years 1 to 9999, by the proleptic Gregorian calendar, as in Spark."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.errors import UsageError
from optimist.core.errors.foreign_text import quoted
from optimist.core.predicates.functions.failures import wrong_date
from optimist.core.predicates.functions.value import (
    DATE,
    Arguments,
    Array,
    Value,
    computed,
    one_array,
    strict,
)
from optimist.core.predicates.functions.wall_clocks import (
    TIMESTAMP,
    keeping_offsets,
    starts_of_days,
    wall_times,
    wall_value,
)
from optimist.core.schema.types import PrimitiveType

__all__ = [
    "add_months",
    "date_of_number",
    "date_trunc",
    "datediff",
    "day_part",
    "days_of",
    "ensure_days",
    "ensure_years",
    "last_day",
    "make_date",
    "moved",
    "next_day",
    "time_part",
    "to_date",
    "trunc",
    "unix_date",
    "unix_time",
]

_INTEGER = PrimitiveType("integer")
_EPOCH = dt.date(1970, 1, 1)
_MONTHS = 12
_WEEK = (
    ("TH", "THU", "THURSDAY"),
    ("FR", "FRI", "FRIDAY"),
    ("SA", "SAT", "SATURDAY"),
    ("SU", "SUN", "SUNDAY"),
    ("MO", "MON", "MONDAY"),
    ("TU", "TUE", "TUESDAY"),
    ("WE", "WED", "WEDNESDAY"),
)
_FIRST_DAY, _LAST_DAY = (dt.date.min - _EPOCH).days, (dt.date.max - _EPOCH).days


def day_part(kernel: Callable[[Array], Array], given: Arguments) -> Value | None:
    """Return a part of dates, such as the year; times count by their days in the session's zone."""
    value = _date_of(given, 0)
    if value is None:
        return None

    def compute(dates: Array) -> Array:
        ensure_years(dates, given.text)
        return kernel(dates).cast(pa.int32())

    return computed(_INTEGER, [value], compute)


def time_part(kernel: Callable[[Array], Array], given: Arguments) -> Value | None:
    """Return the hour, the minute or the second that the clocks show."""
    walls = wall_value(given, 0)
    if walls is None:
        return None
    return computed(_INTEGER, [walls], lambda times: kernel(times).cast(pa.int32()))


def _date_of(given: Arguments, index: int) -> Value | None:
    """Return an argument as a date, if it is a date or a time."""
    value = given.values[index]
    if value.data_type == DATE:
        return value
    walls = wall_value(given, index)
    return None if walls is None else computed(DATE, [walls], days_of)


def ensure_years(dates: Array, text: str) -> None:
    """Refuse dates beyond the years 1 to 9999: Arrow counts years in 16 bits."""
    ensure_days(dates.cast(pa.int32()), text)


def ensure_days(numbers: Array, text: str) -> None:
    """Refuse days since 1970 that lie beyond the years 1 to 9999."""
    days = pc.min_max(numbers).as_py()
    if days["min"] is not None and not _FIRST_DAY <= days["min"] <= days["max"] <= _LAST_DAY:
        raise UsageError(
            f"The expression {quoted(text)} meets dates beyond the years 1 to 9999, which only "
            "Spark computes. Nothing was changed. Use optimist.spark, or leave out such rows.",
            kind="OPTIMIST_NEEDS_SPARK",
            value=text,
        )


def days_of(times: Array) -> Array:
    """Return the days of times in UTC, or of wall-clock times."""
    return pc.floor_temporal(times, unit="day").cast(pa.date32())


def to_date(given: Arguments) -> Value | None:
    """Return the date, or the day of a time."""
    return _date_of(given, 0)


def moved(sign: int, given: Arguments) -> Value | None:
    """Return the date some days later, or earlier."""
    value = _date_of(given, 0)
    if value is None or str(given.types[1]) not in ("byte", "short", "integer"):
        return None

    def kernel(dates: Array, days: Array) -> Array:
        step = pc.multiply(days.cast(pa.int64()), pa.scalar(sign, pa.int64()))
        return _dates_of(pc.add(_numbers_of(dates), step), given.text)

    return strict(DATE, [value, given.values[1]], kernel)


def _numbers_of(dates: Array) -> Array:
    return dates.cast(pa.int32()).cast(pa.int64())


def _dates_of(days: Array, text: str) -> Array:
    """Return the dates of days since 1970, which must lie in the years that are known here."""
    ensure_days(days, text)
    return days.cast(pa.int32()).cast(pa.date32())


def datediff(given: Arguments) -> Value | None:
    """Return how many days lie between the second date and the first one."""
    end, start = _date_of(given, 0), _date_of(given, 1)
    if end is None or start is None:
        return None

    def kernel(one: Array, other: Array) -> Array:
        return pc.subtract(_numbers_of(one), _numbers_of(other)).cast(pa.int32())

    return strict(_INTEGER, [end, start], kernel)


def last_day(given: Arguments) -> Value | None:
    """Return the last day of the date's month."""
    return _by_months(given, lambda months, _: (months + 1).astype("M8[D]") - 1)


def next_day(given: Arguments) -> Value | None:
    """Return the first date after a date that is on a day of the week, which is a constant."""
    value, word = _date_of(given, 0), given.values[1].literal
    name = word.value.upper() if word is not None and isinstance(word.value, str) else ""
    found = [at for at, names in enumerate(_WEEK) if name in names]
    if value is None or not found:
        return None
    weekday = found[0]

    def kernel(dates: Array) -> Array:
        ensure_years(dates, given.text)
        days = _numbers_of(dates)
        # 1970 began on a Thursday, the first day of `_WEEK`.
        whole = pc.floor(pc.divide(pc.subtract(days, weekday).cast(pa.float64()), 7.0))
        weeks = pc.add(whole.cast(pa.int64()), 1)
        return _dates_of(pc.add(pc.multiply(weeks, 7), weekday), given.text)

    return computed(DATE, [value], kernel)


def add_months(given: Arguments) -> Value | None:
    """Return the date some months later, or the last day of a shorter month."""
    if str(given.types[1]) not in ("byte", "short", "integer"):
        return None

    def kernel(months: Any, days: Any, count: Any) -> Any:
        there = months + count
        last = (there + 1).astype("M8[D]") - 1
        return np.minimum(there.astype("M8[D]") + days, last)

    return _by_months(given, kernel)


def _by_months(given: Arguments, kernel: Callable[..., Any]) -> Value | None:
    """Compute dates from months, days of the month counted from 0, and further numbers."""
    value = _date_of(given, 0)
    if value is None:
        return None

    def compute(*columns: Array) -> Array:
        ensure_years(columns[0], given.text)
        arrays = [one_array(column) for column in columns]
        is_known = arrays[0].is_valid()
        for array in arrays[1:]:
            is_known = pc.and_(is_known, array.is_valid())
        numbers = [
            pc.fill_null(array.cast(pa.int32()), 0).to_numpy(zero_copy_only=False).astype(np.int64)
            for array in arrays
        ]
        days = numbers[0].astype("M8[D]")
        months = days.astype("M8[M]")
        found = kernel(months, days - months.astype("M8[D]"), *numbers[1:]).astype(np.int64)
        known = pc.if_else(is_known, pa.array(found), pa.scalar(None, pa.int64()))
        return _dates_of(known, given.text)

    return strict(DATE, [value, *given.values[1:]], compute)


def make_date(given: Arguments) -> Value | None:
    """Return the date of a year, a month and a day."""
    if any(str(data_type) not in ("byte", "short", "integer") for data_type in given.types):
        return None

    def kernel(*parts: Array) -> Array:
        year, month, day = (one_array(part).cast(pa.int64()) for part in parts)
        is_there = reduce(pc.and_, (part.is_valid() for part in (year, month, day)))
        if not _are_between(pc.if_else(is_there, month, 1), 1, _MONTHS):
            raise wrong_date(given.text)
        months = _numpy(pc.add(pc.multiply(pc.subtract(year, 1970), _MONTHS), month), is_there) - 1
        ensure_days(
            pc.if_else(is_there, pc.multiply(pc.subtract(year, 1970), 365), None), given.text
        )
        first = months.astype("M8[M]")
        days = _numpy(day, is_there, 1)
        found = first.astype("M8[D]") + (days - 1)
        if ((days < 1) | (found.astype("M8[M]") != first)).any():
            raise wrong_date(given.text)
        known = pc.if_else(is_there, pa.array(found.astype(np.int64)), pa.scalar(None, pa.int64()))
        return _dates_of(known, given.text)

    return strict(DATE, given.values, kernel)


def _are_between(values: Array, low: int, high: int) -> bool:
    ends = pc.min_max(values).as_py()
    return ends["min"] is None or low <= ends["min"] <= ends["max"] <= high


def _numpy(values: Array, is_there: Array, other: int = 0) -> Any:
    return pc.if_else(is_there, values, other).to_numpy(zero_copy_only=False)


def unix_date(given: Arguments) -> Value | None:
    """Return how many days lie between 1970 and a date."""
    if given.types[0] != DATE:
        return None
    return computed(_INTEGER, given.values, lambda dates: dates.cast(pa.int32()))


def date_of_number(given: Arguments) -> Value | None:
    """Return the date that lies some days after 1970 began."""
    if given.types[0] != _INTEGER:
        return None
    return computed(DATE, given.values, lambda days: _dates_of(days, given.text))


def unix_time(micros: int, given: Arguments) -> Value | None:
    """Return how many units of time lie between 1970 and a time, rounded down."""
    if str(given.types[0]) != "timestamp":
        return None

    def kernel(times: Array) -> Array:
        numbers = times.cast(pa.int64())
        whole = pc.divide(numbers, micros)
        is_cut = pc.and_(pc.less(numbers, 0), pc.not_equal(pc.multiply(whole, micros), numbers))
        return pc.if_else(is_cut, pc.subtract(whole, 1), whole)

    return computed(PrimitiveType("long"), given.values, kernel)


_DATE_UNITS = {
    **dict.fromkeys(("year", "yyyy", "yy"), "year"),
    "quarter": "quarter",
    **dict.fromkeys(("month", "mon", "mm"), "month"),
    "week": "week",
}
_TIME_UNITS = {
    **_DATE_UNITS,
    **dict.fromkeys(("day", "dd"), "day"),
    **{unit: unit for unit in ("hour", "minute", "second", "millisecond", "microsecond")},
}

_UNITS_OF_DAYS = frozenset(_DATE_UNITS.values())
_PARTS_OF_MINUTES = ("second", "millisecond", "microsecond")


def trunc(given: Arguments) -> Value | None:
    """Return the first day of the year, quarter, month or week of a date."""
    value, unit = _date_of(given, 0), _unit_of(given, 1, _DATE_UNITS)
    if value is None or unit is None:
        return None

    def kernel(dates: Array) -> Array:
        ensure_years(dates, given.text)
        found = pc.floor_temporal(dates, unit=unit, week_starts_monday=True)
        return _dates_of(_numbers_of(found.cast(pa.date32())), given.text)

    return computed(DATE, [value], kernel)


def date_trunc(given: Arguments) -> Value | None:
    """Return the start of the unit that a time is in, by the clocks of the session's zone."""
    unit = _unit_of(given, 0, _TIME_UNITS)
    if unit is None or given.types[1] != TIMESTAMP:
        return None
    zone = given.zone

    def kernel(times: Array) -> Array:
        walls = wall_times(times, zone)
        ensure_years(days_of(walls), given.text)
        found = pc.floor_temporal(walls, unit=unit, week_starts_monday=True)
        ensure_years(days_of(found), given.text)
        if unit in _UNITS_OF_DAYS:
            return starts_of_days(days_of(found), zone)
        if unit in _PARTS_OF_MINUTES:  # which no change of the clocks cuts
            return pc.floor_temporal(times, unit=unit)
        return keeping_offsets(found, times, zone)

    return computed(given.types[1], given.values[1:], kernel)


def _unit_of(given: Arguments, index: int, units: dict[str, str]) -> str | None:
    literal = given.values[index].literal
    word = None if literal is None else literal.value
    return units.get(word.lower()) if isinstance(word, str) else None
