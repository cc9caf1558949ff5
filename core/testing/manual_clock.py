"""A clock that moves only when a test moves it, with repeatable random numbers."""

from __future__ import annotations

from optimist.core.forking import ForkSafeLock

__all__ = ["ManualClock"]

_MULTIPLIER = 6364136223846793005
_INCREMENT = 1442695040888963407
_MASK = (1 << 64) - 1


class ManualClock:
    """A `Clock` for tests, whose `sleep` returns at once and moves the time forward.

    Two clocks with the same arguments give the same times, numbers and UUIDs. Threads may share one
    clock.

    Args:
        now_ms: The start of the wall clock, in epoch milliseconds.
        seed: The seed for the sequence of numbers that `uniform` gives.
    """

    def __init__(self, *, now_ms: int = 1_700_000_000_000, seed: int = 0) -> None:
        self._lock = ForkSafeLock()
        self._now_ms: float = now_ms
        self._monotonic_s = 0.0
        self._sleeps: list[float] = []
        self._state = seed
        self._uuids = 0

    @property
    def sleeps(self) -> tuple[float, ...]:
        """Every duration that was slept, in seconds, in order."""
        with self._lock:
            return tuple(self._sleeps)

    def advance(self, duration_s: float) -> None:
        """Move both clocks forward."""
        with self._lock:
            self._move_forward(duration_s)

    def set_now_ms(self, now_ms: int) -> None:
        """Set the wall clock, even backwards as an administrator might.

        The other clock stays.
        """
        with self._lock:
            self._now_ms = now_ms

    def now_ms(self) -> int:
        """Return the wall clock's time (see `Clock.now_ms`)."""
        with self._lock:
            return int(self._now_ms)

    def monotonic_s(self) -> float:
        """Return the monotonic time, which starts at 0 (see `Clock.monotonic_s`)."""
        with self._lock:
            return self._monotonic_s

    def sleep(self, duration_s: float) -> None:
        """Return at once, and move both clocks forward (see `Clock.sleep`)."""
        with self._lock:
            self._sleeps.append(duration_s)
            self._move_forward(duration_s)

    def uniform(self, low: float, high: float) -> float:
        """Return the next number of the seed's sequence (see `Clock.uniform`)."""
        with self._lock:
            self._state = (self._state * _MULTIPLIER + _INCREMENT) & _MASK
            fraction = (self._state >> 11) / (1 << 53)
        return low + (high - low) * fraction

    def new_uuid(self) -> str:
        """Return the next UUID, which counts up (see `Clock.new_uuid`)."""
        with self._lock:
            self._uuids += 1
            return f"00000000-0000-4000-8000-{self._uuids:012x}"

    def _move_forward(self, duration_s: float) -> None:
        self._now_ms += duration_s * 1000
        self._monotonic_s += duration_s
