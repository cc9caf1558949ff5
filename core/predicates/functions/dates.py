"""Functions of dates in the years 1 to 9999, by the proleptic Gregorian calendar, as in Spark."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.errors import UsageError
from optimist.core.errors.foreign_text import quoted
from optimist.core.predicates.functions.value import (
    DATE,
    Arguments,
    Array,
    Value,
    computed,
)
from optimist.core.schema.types import PrimitiveType

__all__ = ["day_part", "days_of", "ensure_years", "to_date"]

_INTEGER = PrimitiveType("integer")
_EPOCH = dt.date(1970, 1, 1)
_FIRST_DAY, _LAST_DAY = (dt.date.min - _EPOCH).days, (dt.date.max - _EPOCH).days


def day_part(kernel: Callable[[Array], Array], given: Arguments) -> Value | None:
    """Return a part of dates, such as the year."""
    if given.types[0] != DATE:
        return None

    def compute(dates: Array) -> Array:
        ensure_years(dates, given.text)
        return kernel(dates).cast(pa.int32())

    return computed(_INTEGER, given.values, compute)


def ensure_years(dates: Array, text: str) -> None:
    """Refuse dates beyond the years 1 to 9999: Arrow counts years in 16 bits."""
    days = pc.min_max(dates.cast(pa.int32())).as_py()
    if days["min"] is not None and not _FIRST_DAY <= days["min"] <= days["max"] <= _LAST_DAY:
        raise UsageError(
            f"The expression {quoted(text)} meets dates beyond the years 1 to 9999, which only "
            "Spark computes. Nothing was written. Run the command with DeltaTable of "
            "optimist.spark.",
            kind="OPTIMIST_NEEDS_SPARK",
            value=text,
        )


def days_of(times: Array) -> Array:
    """Return the days of times in UTC, or without a zone."""
    return pc.floor_temporal(times, unit="day").cast(pa.date32())


def to_date(given: Arguments) -> Value | None:
    """Return the date itself."""
    return given.values[0] if given.types == [DATE] else None
