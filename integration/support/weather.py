"""Bad weather on a wire: which fault meets a message, drawn by a seed."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from typing import Generic, TypeVar

from optimist.core.testing import ManualClock

__all__ = ["Weather"]

F = TypeVar("F")


class Weather(Generic[F]):
    """Draws a fault for some of the messages. Threads may share it.

    Args:
        faults: What may happen, each as often as the others.
        rate: To how many of the messages.
        seed: Which sequence is drawn; the threads of a test take from it as they come.
    """

    def __init__(self, faults: Sequence[F], *, rate: float, seed: int) -> None:
        self._faults = faults
        self._rate = rate
        self._lock = threading.Lock()
        self._chance = ManualClock(seed=seed)
        self.met: Counter[str] = Counter()
        self.messages = 0

    def draw(self) -> F | None:
        """The fault of the next message, or None."""
        with self._lock:
            self.messages += 1
            if self._chance.uniform(0, 1) >= self._rate:
                return None
            fault = self._faults[int(self._chance.uniform(0, len(self._faults) - 1e-9))]
            self.met[str(fault)] += 1
            return fault

    def __str__(self) -> str:
        return f"{sum(self.met.values())} of {self.messages} messages disturbed: {dict(self.met)}"
