"""Times as texts by a pattern, and as seconds since 1970."""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.predicates.functions.dates import (
    days_of,
    ensure_days,
    ensure_years,
)
from optimist.core.predicates.functions.failures import does_not_fit
from optimist.core.predicates.functions.value import (
    INTEGERS,
    STRING,
    Arguments,
    Array,
    Value,
    computed,
)
from optimist.core.predicates.functions.wall_clocks import NTZ, instant_value, wall_times
from optimist.core.schema.types import PrimitiveType

__all__ = ["formatted", "from_unixtime", "timestamp_of_number", "unix_timestamp"]

_LONG, _TIMESTAMP = PrimitiveType("long"), PrimitiveType("timestamp")
_SECOND_US, _DAY_S = 1_000_000, 86_400
_DEFAULT = "yyyy-MM-dd HH:mm:ss"
_LETTERS = {"yyyy": "%Y", "MM": "%m", "dd": "%d", "HH": "%H", "mm": "%M", "ss": "%S"}
_PIECE = re.compile(r"([A-Za-z])\1*|.", re.DOTALL)
_MARKS = frozenset("-/:. ,_;")


def _arrow_format(pattern: str) -> str | None:
    """Return Arrow's format for a pattern of plain parts, or None for any other."""
    pieces = [match[0] for match in _PIECE.finditer(pattern)]
    found = [_LETTERS.get(piece, piece if piece in _MARKS else "") for piece in pieces]
    return "".join(found) if pieces and all(found) else None


def _pattern_of(given: Arguments, index: int) -> str | None:
    if len(given.values) <= index:
        return _arrow_format(_DEFAULT)
    literal = given.values[index].literal
    pattern = None if literal is None else literal.value
    return _arrow_format(pattern) if isinstance(pattern, str) else None


def formatted(given: Arguments) -> Value | None:
    """Return dates or times as texts by a constant pattern."""
    # By way of an instant, because a zone may skip the hour of a time without one.
    times, pattern = instant_value(given, 0), _pattern_of(given, 1)
    if times is None or pattern is None:
        return None
    form = pattern
    return computed(STRING, [times], lambda values: _as_texts(values, form, given))


def _as_texts(times: Array, form: str, given: Arguments) -> Array:
    walls = wall_times(times, given.zone)
    ensure_years(days_of(walls), given.text)
    seconds = pc.floor_temporal(walls, unit="second")
    return pc.strftime(seconds.cast(pa.timestamp("s")), format=form)


def from_unixtime(given: Arguments) -> Value | None:
    """Return the time some seconds after 1970 began as a text by a constant pattern."""
    pattern = _pattern_of(given, 1)
    if pattern is None or str(given.types[0]) not in INTEGERS:
        return None
    form = pattern

    def kernel(values: Array) -> Array:
        numbers = values.cast(pa.int64())
        ensure_days(pc.divide(numbers, _DAY_S), given.text)
        times = pc.multiply(numbers, _SECOND_US).cast(pa.timestamp("us", "UTC"))
        return _as_texts(times, form, given)

    return computed(STRING, given.values[:1], kernel)


def timestamp_of_number(micros: int, given: Arguments) -> Value | None:
    """Return the time some units after 1970 began."""
    if str(given.types[0]) not in INTEGERS:
        return None

    def kernel(values: Array) -> Array:
        try:
            numbers = pc.multiply_checked(values.cast(pa.int64()), micros)
        except pa.ArrowInvalid:
            raise does_not_fit(given.text, _TIMESTAMP) from None
        times = numbers.cast(pa.timestamp("us", "UTC"))
        ensure_years(days_of(times), given.text)
        return times

    return computed(_TIMESTAMP, given.values, kernel)


def unix_timestamp(given: Arguments) -> Value | None:
    """Return the whole seconds between 1970 and a date or a time."""
    is_wall = given.types[0] == NTZ  # which Spark takes for a time in UTC here
    times = given.values[0] if is_wall else instant_value(given, 0)
    if times is None:
        return None

    def kernel(values: Array) -> Array:
        return pc.divide(values.cast(pa.int64()), _SECOND_US)

    return computed(_LONG, [times], kernel)
