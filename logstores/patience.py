"""Trying again, by a Clock: what SDKs do by themselves, with sleeps that a test can own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from optimist.core.clock import Clock
from optimist.core.errors import StorageError

__all__ = ["Patience", "call_patiently"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Patience:
    """How often and how long to try.

    The pause before try n + 1 is drawn evenly from the upper half of `min(cap_s, base_s * 2**n)`:
    a store that asks for less traffic gets a real pause, and clients spread out.
    """

    max_tries: int = 5
    base_s: float = 0.1
    cap_s: float = 5.0

    def tries(self, clock: Clock) -> Iterator[int]:
        """Counts the tries from 0, sleeping before each but the first."""
        for number in range(self.max_tries):
            if number:
                limit_s = min(self.cap_s, self.base_s * 2.0 ** (number - 1))
                clock.sleep(clock.uniform(limit_s / 2, limit_s))
            yield number


def call_patiently(call: Callable[[], T], patience: Patience, clock: Clock) -> T:
    """The result of a call that may be repeated, tried again while its error is retryable.

    Raises:
        StorageError: The last one, or the first that is not retryable.
    """
    for number in patience.tries(clock):
        try:
            return call()
        except StorageError as error:
            if not error.retryable or number + 1 >= patience.max_tries:
                raise
    raise AssertionError("patience allows at least one try")
