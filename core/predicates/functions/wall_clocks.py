"""Instants as what the clocks of a zone show, and back, for Arrow columns; as in Spark."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.predicates.functions.value import (
    DATE,
    Arguments,
    Array,
    Value,
    computed,
    one_array,
)
from optimist.core.schema.types import PrimitiveType
from optimist.core.values.zone_offsets import Micros, zone_offsets

__all__ = [
    "NTZ",
    "TIMESTAMP",
    "UTC",
    "instant_value",
    "instants",
    "keeping_offsets",
    "starts_of_days",
    "wall_times",
    "wall_value",
]

UTC = ("UTC", "Etc/UTC", "Z")
NTZ, TIMESTAMP = PrimitiveType("timestamp_ntz"), PrimitiveType("timestamp")
_WALL, _INSTANT = pa.timestamp("us"), pa.timestamp("us", "UTC")


def wall_value(given: Arguments, index: int) -> Value | None:
    """Return an argument as a wall-clock time, if it is an instant or such a time."""
    value = given.values[index]
    if value.data_type == NTZ:
        return value
    if value.data_type != TIMESTAMP:
        return None
    return computed(NTZ, [value], lambda times: wall_times(times, given.zone))


def instant_value(given: Arguments, index: int) -> Value | None:
    """Return an argument as an instant, if it is one, a wall-clock time or a date."""
    value = given.values[index]
    if value.data_type == TIMESTAMP:
        return value
    if value.data_type == NTZ:
        return computed(TIMESTAMP, [value], lambda walls: instants(walls, given.zone))
    if value.data_type == DATE:
        return computed(TIMESTAMP, [value], lambda days: starts_of_days(days, given.zone))
    return None


def wall_times(times: Array, zone: str) -> Array:
    """Return what the clocks of a zone show at instants."""
    if zone in UTC:
        return times.cast(_WALL)
    return _like(times, zone_offsets(zone).wall_times(_micros(times)), _WALL)


def instants(walls: Array, zone: str) -> Array:
    """Return the instants of wall-clock times."""
    if zone in UTC:
        return walls.cast(_INSTANT)
    return _like(walls, zone_offsets(zone).instants(_micros(walls)), _INSTANT)


def starts_of_days(dates: Array, zone: str) -> Array:
    """Return the instants at which days begin."""
    midnights = dates.cast(_WALL)
    if zone in UTC:
        return midnights.cast(_INSTANT)
    return _like(midnights, zone_offsets(zone).starts_of_days(_micros(midnights)), _INSTANT)


def keeping_offsets(walls: Array, times: Array, zone: str) -> Array:
    """Return the instants of wall-clock times that were made from those of other instants.

    A time that comes twice keeps the offset that the other instant has.

    Args:
        walls: The wall-clock times.
        times: The other instants.
        zone: The zone.
    """
    if zone in UTC:
        return walls.cast(_INSTANT)
    offsets = zone_offsets(zone)
    before = offsets.offsets_at(_micros(times))
    return _like(walls, offsets.keeping_offsets(_micros(walls), before), _INSTANT)


def _micros(times: Array) -> Micros:
    numbers = pc.fill_null(one_array(times).cast(pa.int64()), 0)
    micros: Micros = numbers.to_numpy(zero_copy_only=False).astype(np.int64)
    return micros


def _like(times: Array, micros: Micros, kind: pa.DataType) -> Array:
    found = pa.array(micros).cast(kind)
    return pc.if_else(one_array(times).is_valid(), found, pa.scalar(None, kind))
