"""The positions of workers: each sequence of answers one may have had, run once and numbered."""

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
"""How many bits each number has in a state of the whole."""

CRASHED = 0
"""The position of every worker that crashed."""

DELIVERY = -1
"""The worker of a `Choice` that is nobody's step: a late request arrives."""


class Choice(NamedTuple):
    """One step of a schedule: a worker goes on, or meets a mishap, or a late request arrives."""

    worker: int
    """The worker's place among the workers of the model, or `DELIVERY`."""
    mishap: Mishap | None = None
    request: int = 0
    """Which of the requests on their way, counted from the one sent first."""


class ViolationFound(Exception):  # noqa: N818 - internal: the search adds the schedule
    """A violation: what was broken, and by which choice, unless the state itself is at fault."""

    def __init__(self, reason: str, choice: Choice | None = None) -> None:
        super().__init__(reason)
        self.choice = choice


class Numbered:
    """Values, each kept once."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}
        self._values: list[Any] = []

    def __len__(self) -> int:
        return len(self._values)

    def number(self, value: Hashable) -> int:
        """The number of a value; a new value gets the next free number."""
        number = self._numbers.setdefault(value, len(self._values))
        if number == len(self._values):
            assert number < 1 << FIELD_BITS, "more values than a field of a state holds"
            self._values.append(value)
        return number

    def value(self, number: int) -> Any:
        """The value that has this number."""
        return self._values[number]


class Positions:
    """The tree of a worker's positions: what it asks next, or its end.

    Attributes:
        marks: For each position 0 if the worker is at work there, 1 if it has crashed, and the
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
        self.start = self._grow(())

    def outcome(self, node: int) -> Hashable:
        """The outcome of the worker at a position where it has ended."""
        return self._ends[node].outcome

    def operation(self, node: int) -> int:
        """The number of the operation that the worker asks for at a position."""
        return self._asks[node]

    def after(self, node: int, answer: int) -> int:
        """The position to which an answer takes the worker.

        Raises:
            ViolationFound: The worker breaks by that answer.
        """
        known = self._after.get((node, answer))
        if known is None:
            step = (self._operations.value(self._asks[node]), self._answers.value(answer))
            known = self._after[node, answer] = self._grow((*self._history[node], step))
        end = self._ends.get(known)
        if end is not None and end.problem is not None:
            raise ViolationFound(f"{self.worker.name} broke: {end.problem}")
        return known

    def _grow(self, history: tuple[tuple[Operation, Hashable], ...]) -> int:
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
