"""Times of a region's clocks and instants, for whole columns, by the rules of Java and so of Spark.

A wall-clock time that the clocks skip moves forward by the gap, and one that comes twice means the
first. Years before a zone's first rule have its local mean time, to the second.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain

import numpy as np
import numpy.typing as npt

from optimist.core.values.time_zones import session_zone

__all__ = ["ZoneOffsets", "zone_offsets"]

Micros = npt.NDArray[np.int64]

_SECOND_US = 1_000_000
_DAY_S = 86_400
_STEP_S = 3 * _DAY_S
"""No zone has two changes within such a time."""
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)
_OLDEST_S = (dt.date(1800, 1, 1) - dt.date(1970, 1, 1)).days * _DAY_S
"""Before this day all clocks showed local mean time."""
_CYCLE_START_S = (dt.date(2100, 1, 1) - dt.date(1970, 1, 1)).days * _DAY_S
"""From this day on, each zone has one rule for all years."""
_CYCLE_S = 146_097 * _DAY_S
"""The calendar repeats after 400 years, with its weekdays, and so do these rules."""


@dataclass(frozen=True, slots=True)
class ZoneOffsets:
    """The offsets of a zone from UTC, each from some instant on.

    Attributes:
        starts: The instants in microseconds since 1970; the first one is before all times.
        offsets: The offsets in microseconds.
        walls: The same instants as the latest wall-clock time at which an offset begins.
        cycle_start: The instant from which the offsets repeat every 400 years.
    """

    starts: Micros
    offsets: Micros
    walls: Micros
    cycle_start: int

    def offsets_at(self, instants: Micros) -> Micros:
        """Return the offset of each instant."""
        found = np.searchsorted(self.starts, self._within_cycle(instants), side="right") - 1
        return self.offsets[found]

    def wall_times(self, instants: Micros) -> Micros:
        """Return what the clocks show at each instant."""
        return instants + self.offsets_at(instants)

    def instants(self, walls: Micros) -> Micros:
        """Return the instant of each wall-clock time."""
        return walls - self._offsets_of(walls)

    def starts_of_days(self, midnights: Micros) -> Micros:
        """Return the first instant of each day, which is later where the clocks skip midnight."""
        plain = self._within_cycle(midnights)
        found = np.searchsorted(self.walls, plain, side="right") - 1
        following = np.append(self.starts[1:], np.iinfo(np.int64).max)[found]
        starts: Micros = np.minimum(plain - self.offsets[found], following)
        return starts + (midnights - plain)

    def keeping_offsets(self, walls: Micros, offsets: Micros) -> Micros:
        """Return the instant of each wall-clock time, with a wanted offset where it is valid."""
        wanted = walls - offsets
        return np.where(self.offsets_at(wanted) == offsets, wanted, self.instants(walls))

    def _offsets_of(self, walls: Micros) -> Micros:
        found = np.searchsorted(self.walls, self._within_cycle(walls), side="right") - 1
        return self.offsets[found]

    def _within_cycle(self, times: Micros) -> Micros:
        late = times - self.cycle_start
        cycle = _CYCLE_S * _SECOND_US
        return np.where(late >= cycle, self.cycle_start + late % cycle, times)


@lru_cache(maxsize=64)
def zone_offsets(name: str) -> ZoneOffsets:
    """Return the offsets of the zone that a session names.

    Raises:
        UsageError: The zone does not exist (kind `OPTIMIST_UNKNOWN_TIME_ZONE`).
    """
    changes = list(_changes(session_zone(name)))
    starts = np.array([start for start, _ in changes], np.int64) * _SECOND_US
    offsets = np.array([offset for _, offset in changes], np.int64) * _SECOND_US
    starts[0] = np.iinfo(np.int64).min
    walls = starts.copy()
    walls[1:] += np.maximum(offsets[1:], offsets[:-1])
    return ZoneOffsets(starts, offsets, walls, _CYCLE_START_S * _SECOND_US)


def _changes(zone: dt.tzinfo) -> Iterator[tuple[int, int]]:
    """Yield each offset with the instant from which it holds, in seconds, the oldest first."""
    before = _offset_at(zone, _OLDEST_S)
    yield _OLDEST_S, before
    if isinstance(zone, dt.timezone):
        return
    probes = (
        range(_OLDEST_S + _STEP_S, _CYCLE_START_S, _STEP_S),
        range(_CYCLE_START_S, _CYCLE_START_S + _CYCLE_S + 7 * _DAY_S, 7 * _DAY_S),
    )
    last = _OLDEST_S
    for probe in chain(*probes):
        offset = _offset_at(zone, probe)
        if offset != before:
            yield _first_change(zone, last, probe), offset
        last, before = probe, offset


def _first_change(zone: dt.tzinfo, low: int, high: int) -> int:
    """Return the first instant of the offset at `high`; at `low` there is another one."""
    new = _offset_at(zone, high)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _offset_at(zone, middle) == new else (middle, high)
    return high


def _offset_at(zone: dt.tzinfo, seconds: int) -> int:
    moment = (_EPOCH + dt.timedelta(seconds=seconds)).astimezone(zone)
    return round((moment.utcoffset() or dt.timedelta()).total_seconds())
