"""How long the parts of a command take, for the history."""

from __future__ import annotations

from optimist.core.runtime.clock import Clock

__all__ = ["Stopwatch"]


class Stopwatch:
    """Runs from the start of a command; each lap is a metric, in milliseconds."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._started_s = self._lap_s = clock.monotonic_s()
        self._laps: dict[str, object] = {}

    def lap(self, metric: str) -> None:
        """End a part of the command, which began with the last lap or the start.

        Args:
            metric: The metric that tells how long it took, such as `scanTimeMs`.
        """
        last_s, self._lap_s = self._lap_s, self._clock.monotonic_s()
        self._laps[metric] = _milliseconds(self._lap_s - last_s)

    def metrics(self) -> dict[str, object]:
        """The laps so far, and how long the command has taken (`executionTimeMs`)."""
        total_s = self._clock.monotonic_s() - self._started_s
        return {"executionTimeMs": _milliseconds(total_s), **self._laps}


def _milliseconds(seconds: float) -> int:
    return round(seconds * 1000)
