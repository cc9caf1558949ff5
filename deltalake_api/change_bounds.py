"""The range of a change feed, of which deltalake takes versions and times together."""

from __future__ import annotations

from typing import Any

from optimist.core import DeltaLog
from optimist.core.changes.bounds import first_version_since
from optimist.core.errors.argument_types import optional_whole, whole_number
from optimist.core.log.timestamps import epoch_ms

__all__ = ["change_bounds"]


def change_bounds(
    log: DeltaLog, versions: tuple[int, int | None], times: tuple[str | None, str | None]
) -> dict[str, Any]:
    """Return the arguments of `DeltaLog.changes` for a range that both bounds hold.

    An end after the newest commit is the newest commit.

    Args:
        log: The table's handle.
        versions: The first and the last version.
        times: The first and the last time.
    """
    (first, last), (begin, end) = versions, times
    first = whole_number(first, "starting_version")
    last = optional_whole(last, "ending_version")
    found: dict[str, Any] = {"starting_version": first}
    if begin is not None and first == 0:
        found = {"starting_timestamp": begin}
    elif begin is not None:
        since = _first_since(log, epoch_ms(begin, "starting_timestamp"))
        found = {"starting_version": max(first, since)}
    if end is None:
        return {**found, "ending_version": last}
    until = _first_since(log, epoch_ms(end, "ending_timestamp") + 1) - 1
    if last is not None:
        return {**found, "ending_version": min(last, until)}
    is_open = until >= log.snapshot().version
    return {**found, "ending_timestamp": None if is_open else end}


def _first_since(log: DeltaLog, time_ms: int) -> int:
    return first_version_since(log.table, log.snapshot(), time_ms)
