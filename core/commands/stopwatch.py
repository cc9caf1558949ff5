"""A stopwatch for the parts of a command, for the history."""

from __future__ import annotations

from optimist.core.runtime.clock import Clock

__all__ = ["Stopwatch"]


class Stopwatch:
    """Measures time from the start of a command.

    Each lap is a metric, in milliseconds.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._started_s = self._lap_s = clock.monotonic_s()
        self._laps: dict[str, object] = {}

    def lap(self, metric: str) -> None:
        """End a part of the command, which began with the last lap or the start.

        Args:
            metric: The name of the metric for its duration, such as `scanTimeMs`.
        """
        last_s, self._lap_s = self._lap_s, self._clock.monotonic_s()
        self._laps[metric] = _to_milliseconds(self._lap_s - last_s)

    def metrics(self) -> dict[str, object]:
        """Return the laps so far, and the time since the start (`executionTimeMs`)."""
        total_s = self._clock.monotonic_s() - self._started_s
        return {"executionTimeMs": _to_milliseconds(total_s), **self._laps}


def _to_milliseconds(seconds: float) -> int:
    return round(seconds * 1000)
