"""The months between two times, by the calendar of the session's zone, as Spark counts them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.predicates.functions.dates import days_of, ensure_years
from optimist.core.predicates.functions.value import (
    BOOLEAN,
    DOUBLE,
    Arguments,
    Array,
    Value,
    one_array,
    strict,
)
from optimist.core.predicates.functions.wall_clocks import (
    instant_value,
    starts_of_days,
    wall_times,
)

__all__ = ["months_between"]

_SECONDS_OF_DAY, _DAYS_OF_MONTH = 86_400, 31
_KEPT = 1e8
"""A difference is rounded to eight digits behind its point."""
_MICROS = 1_000_000


def months_between(given: Arguments) -> Value | None:
    """Return the months from the second time to the first one; a rest counts by 31 days a month.

    Days that are the same in their months, or both the last ones, are whole months apart, whatever
    the clocks show.
    """
    is_rounded = _is_rounded(given)
    end, start = instant_value(given, 0), instant_value(given, 1)
    if is_rounded is None or end is None or start is None:
        return None

    def kernel(later: Array, earlier: Array) -> Array:
        one, other = (_parts_of(times, given) for times in (later, earlier))
        is_known = pc.and_(pc.is_valid(one_array(later)), pc.is_valid(one_array(earlier)))
        found = _difference(one, other, is_rounded=is_rounded)
        return pc.if_else(is_known, pa.array(found), pa.scalar(None, pa.float64()))

    return strict(DOUBLE, [end, start], kernel)


def _is_rounded(given: Arguments) -> bool | None:
    """Return the third argument, which is a constant and true by default."""
    if len(given.values) == 2:
        return True
    literal = given.values[2].literal
    is_constant = given.types[2] == BOOLEAN and literal is not None
    return bool(literal.value) if is_constant and literal is not None else None


def _parts_of(times: Array, given: Arguments) -> tuple[Any, Any, Any, Any]:
    """Return the months, the days of the months, whether they are the last, and the seconds."""
    array = one_array(times)
    dates = one_array(days_of(wall_times(array, given.zone)))
    ensure_years(dates, given.text)
    since = pc.subtract(
        array.cast(pa.int64()), one_array(starts_of_days(dates, given.zone)).cast(pa.int64())
    )
    days = _numbers(dates.cast(pa.int32())).astype("M8[D]")
    months = days.astype("M8[M]")
    is_last = (days + 1).astype("M8[M]") != months
    within = (days - months.astype("M8[D]")).astype(np.int64)
    return months.astype(np.int64), within, is_last, _numbers(since) // _MICROS


def _numbers(values: Array) -> npt.NDArray[np.int64]:
    found: npt.NDArray[np.int64] = (
        pc.fill_null(one_array(values), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    )
    return found


def _difference(one: tuple[Any, ...], other: tuple[Any, ...], *, is_rounded: bool) -> Any:
    months = (one[0] - other[0]).astype(np.float64)
    is_whole = (one[1] == other[1]) | (one[2] & other[2])
    seconds = (one[1] - other[1]) * _SECONDS_OF_DAY + one[3] - other[3]
    exact = months + seconds / float(_SECONDS_OF_DAY * _DAYS_OF_MONTH)
    if is_rounded:
        exact = np.floor(exact * _KEPT + 0.5) / _KEPT  # as Java rounds
    return np.where(is_whole, months, exact)
