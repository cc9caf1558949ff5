"""Time and randomness as a parameter.

No other module may read the machine's.
"""

from __future__ import annotations

import random  # noqa: TID251 - the one place
import time
import uuid
from typing import Protocol

__all__ = ["Clock", "SystemClock"]


class Clock(Protocol):
    """The engine's source of time and randomness."""

    def now_ms(self) -> int:
        """Return the milliseconds since the Unix epoch, by the wall clock."""

    def monotonic_s(self) -> float:
        """Return the seconds of a clock that never goes back.

        Only differences have a meaning.
        """

    def sleep(self, duration_s: float) -> None:
        """Wait for `duration_s` seconds."""

    def uniform(self, low: float, high: float) -> float:
        """Return a random number between the two, evenly distributed: the jitter of a back-off."""

    def new_uuid(self) -> str:
        """Return a new random UUID, in lower case with hyphens."""


class SystemClock:
    """The machine's own time and randomness.

    Random numbers come from the operating system, not from the state that the functions of `random`
    share. A retry must not change the next numbers of a program that called `random.seed`, and
    processes forked from one parent must not wait equally long.
    """

    _random = random.SystemRandom()

    def now_ms(self) -> int:
        """Return the wall clock's time (see `Clock.now_ms`)."""
        return time.time_ns() // 1_000_000

    def monotonic_s(self) -> float:
        """Return the monotonic time (see `Clock.monotonic_s`)."""
        return time.monotonic()

    def sleep(self, duration_s: float) -> None:
        """Wait (see `Clock.sleep`)."""
        time.sleep(duration_s)  # noqa: TID251 - the one place

    def uniform(self, low: float, high: float) -> float:
        """Return a random number (see `Clock.uniform`)."""
        return self._random.uniform(low, high)

    def new_uuid(self) -> str:
        """Return a new UUID (see `Clock.new_uuid`)."""
        return str(uuid.uuid4())
