"""Time and randomness as a parameter: the only module that may ask the machine for either."""

from __future__ import annotations

import random  # noqa: TID251 - the one place
import time
import uuid
from typing import Protocol

__all__ = ["Clock", "SystemClock"]


class Clock(Protocol):
    """The engine's source of time and randomness."""

    def now_ms(self) -> int:
        """Milliseconds since the Unix epoch, by the wall clock."""

    def monotonic_s(self) -> float:
        """Seconds on a clock that never runs backwards; only differences mean anything."""

    def sleep(self, duration_s: float) -> None:
        """Wait for `duration_s` seconds."""

    def uniform(self, low: float, high: float) -> float:
        """A number between the two, evenly spread: the jitter of a back-off."""

    def new_uuid(self) -> str:
        """A fresh random UUID, in lower case with hyphens."""


class SystemClock:
    """The machine's own time and randomness.

    Random numbers come from the operating system, not from the sequence that the functions of
    `random` share: a retry must not change what a program that called `random.seed` draws next, and
    processes forked from one parent must not wait equally long.
    """

    _chance = random.SystemRandom()

    def now_ms(self) -> int:
        """See `Clock.now_ms`."""
        return time.time_ns() // 1_000_000

    def monotonic_s(self) -> float:
        """See `Clock.monotonic_s`."""
        return time.monotonic()

    def sleep(self, duration_s: float) -> None:
        """See `Clock.sleep`."""
        time.sleep(duration_s)  # noqa: TID251 - the one place

    def uniform(self, low: float, high: float) -> float:
        """See `Clock.uniform`."""
        return self._chance.uniform(low, high)

    def new_uuid(self) -> str:
        """See `Clock.new_uuid`."""
        return str(uuid.uuid4())
