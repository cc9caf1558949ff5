"""The positions of workers: each possible sequence of answers, run once and numbered."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, NamedTuple

from optimist.core.testing.scheduler import Ended, Mishap, Operation, Worker

__all__ = [
    "CRASHED",
    "DELIVERY",
    "FIELD_BITS",
    "Choice",
    "Numbered",
    "Positions",
    "ViolationFound",
]

FIELD_BITS = 24
"""The number of bits of each field in a state of the whole."""

CRASHED = 0
"""The position of every worker that crashed."""

DELIVERY = -1
"""The worker in a `Choice` of a late request that arrives, which is no worker's step."""


class Choice(NamedTuple):
    """One step of a schedule: a worker continues or meets a mishap, or a late request arrives."""

    worker: int
    """The worker's index in the model, or `DELIVERY`."""
    mishap: Mishap | None = None
    request: int = 0
    """The index of a request in flight, in the order of sending."""


class ViolationFound(Exception):  # noqa: N818 - internal: the search adds the schedule
    """A violation: the broken invariant, and the choice, unless the state itself is wrong."""

    def __init__(self, reason: str, choice: Choice | None = None) -> None:
        super().__init__(reason)
        self.choice = choice


class Numbered:
    """Values, each stored once."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}
        self._values: list[Any] = []

    def __len__(self) -> int:
        return len(self._values)

    def number(self, value: Hashable) -> int:
        """Return the number of a value.

        A new value gets the next free number.
        """
        number = self._numbers.setdefault(value, len(self._values))
        if number == len(self._values):
            assert number < 1 << FIELD_BITS, "more values than a field of a state holds"
            self._values.append(value)
        return number

    def value(self, number: int) -> Any:
        """Return the value that has this number."""
        return self._values[number]


class Positions:
    """The tree of a worker's positions, with its next question or its end at each.

    Attributes:
        marks: For each position 0 if the worker is live there, 1 if it has crashed, and the
            position's own number plus 2 if it has ended.
    """

    def __init__(self, worker: Worker, operations: Numbered, answers: Numbered) -> None:
        self.worker = worker
        self.marks = [1]  # of CRASHED
        self._operations = operations
        self._answers = answers
        self._ends: dict[int, Ended] = {}
        self._asks = [-1]
        self._history: list[tuple[tuple[Operation, Hashable], ...]] = [()]
        self._after: dict[tuple[int, int], int] = {}
        self._by_outcome: dict[Hashable, int] = {}
        self.start = self._add_position(())

    def outcome(self, node: int) -> Hashable:
        """Return the outcome of the worker at a position where it has ended."""
        return self._ends[node].outcome

    def operation(self, node: int) -> int:
        """Return the number of the operation that the worker asks for at a position."""
        return self._asks[node]

    def after(self, node: int, answer: int) -> int:
        """Return the position to which an answer leads the worker.

        Raises:
            ViolationFound: The worker breaks at that answer.
        """
        known = self._after.get((node, answer))
        if known is None:
            step = (self._operations.value(self._asks[node]), self._answers.value(answer))
            known = self._after[node, answer] = self._add_position((*self._history[node], step))
        end = self._ends.get(known)
        if end is not None and end.problem is not None:
            raise ViolationFound(f"{self.worker.name} broke: {end.problem}")
        return known

    def _add_position(self, history: tuple[tuple[Operation, Hashable], ...]) -> int:
        found, node = self.worker.advance(history), len(self.marks)
        assert node < 1 << FIELD_BITS, "more positions than a field of a state holds"
        if isinstance(found, Ended):
            known = self._by_outcome.setdefault(found, node)
            if known != node:
                return known
            self._ends[node] = found
        self.marks.append(node + 2 if isinstance(found, Ended) else 0)
        self._history.append(history)
        self._asks.append(-1 if isinstance(found, Ended) else self._operations.number(found))
        return node
