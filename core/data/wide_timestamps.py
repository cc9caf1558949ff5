"""Dates and times of all years, as counts since 1970, because Python ends with the year 9999.

The calendar repeats every 400 years, so other years are computed with years that Python has.
"""

from __future__ import annotations

import datetime as dt

__all__ = ["CYCLE_DAYS", "date_text", "days_since_1970", "in_known_years", "time_text"]

CYCLE_DAYS = 146_097
_CYCLE_YEARS = 400
_MICROS_PER_DAY = 86_400_000_000
_EPOCH = dt.datetime(1970, 1, 1)


def in_known_years(year: int) -> tuple[int, int]:
    """Return a similar year that Python has, and the number of 400-year cycles between them."""
    cycles = 0 if dt.MINYEAR < year < dt.MAXYEAR else (year - 2000) // _CYCLE_YEARS
    return year - cycles * _CYCLE_YEARS, cycles


def days_since_1970(year: int, month: int, day: int) -> int:
    """Return the number of a day since 1970.

    Raises:
        ValueError: The calendar has no such day.
    """
    known, cycles = in_known_years(year)
    return (dt.date(known, month, day) - _EPOCH.date()).days + cycles * CYCLE_DAYS


def date_text(days: int) -> str:
    """Return the date of a day, as Java writes it: `2020-01-01`, `+10000-01-01`, `-0500-01-01`."""
    cycles = days // CYCLE_DAYS
    known = _EPOCH.date() + dt.timedelta(days=days - cycles * CYCLE_DAYS)
    year = known.year + cycles * _CYCLE_YEARS
    sign = "+" if year > dt.MAXYEAR else "-" if year < 0 else ""
    return f"{sign}{abs(year):04d}-{known.month:02d}-{known.day:02d}"


def time_text(micros: int) -> tuple[str, str]:
    """Return the date and the time of day of a time, with six digits of the second."""
    days, rest = divmod(micros, _MICROS_PER_DAY)
    time = (_EPOCH + dt.timedelta(microseconds=rest)).time()
    return date_text(days), time.isoformat(timespec="microseconds")
