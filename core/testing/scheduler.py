"""A deterministic scheduler, which runs real code step by step against a simulated world.

A *worker* is a function of real code (a commit, a recovery, a read) whose plug-ins ask the *world*
(files, entries) through a `Line`, one `Operation` at a time. Between two operations a worker sees
nothing of the others. So a *schedule*, which says who is next and what fails, decides everything.

How a worker pauses between two operations without a thread:

1. The worker is a function of the answers so far: its clock does not move, its names count up.
2. So its position is the sequence of those answers. To continue from there, the worker is run again
   from its start with the known answers. The first question beyond them ends the run.
3. Each sequence of answers is run once, whatever schedule leads to it: `Machine` keeps a tree of
   them, and a step of a schedule is a few look-ups (`schedule_machine`).

So a state is a value, which can be compared, stored, and continued in more than one way.
`interleavings` searches all of them.
"""

from __future__ import annotations

import enum
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = [
    "DirectLine",
    "Ended",
    "Line",
    "Mishap",
    "Model",
    "Moment",
    "NotDeterministicError",
    "Operation",
    "Raised",
    "Worker",
    "World",
    "run_alone",
]


class Mishap(enum.Enum):
    """The things that may happen to a worker instead of an answer to its operation."""

    CRASH = "crash"
    """The worker never runs again; the operation was not sent."""
    LOST = "lost"
    """The operation took effect, and the answer is lost."""
    LATE = "late"
    """The answer is lost, and the request is still in flight: it takes effect later or never."""
    REFUSED = "refused"
    """A clear refusal: nothing was done, and another try may help."""
    STALE = "stale"
    """A read gets an answer that was true earlier, if the world allows that."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One request of a worker to the world, which is done in one step or not at all."""

    kind: str
    target: str
    payload: Hashable = None

    def __str__(self) -> str:
        return f"{self.kind} {self.target.rpartition('/')[2]}"


@dataclass(frozen=True, slots=True)
class Raised:
    """An answer that is an error, which every run builds and raises again.

    Attributes:
        error: Called with the message and the fields; returns the error.
        message: The error's message.
        fields: The error's keyword arguments.
    """

    error: Callable[..., BaseException]
    message: str
    fields: tuple[tuple[str, Hashable], ...] = ()

    def take(self) -> BaseException:
        """Return a new error."""
        return self.error(self.message, **dict(self.fields))


class NotDeterministicError(AssertionError):
    """An error for a worker whose questions depend on more than the answers."""


class _Parked(BaseException):
    """Ends a run at its first question without an answer.

    It is not an `Exception`, so that code which catches those does not stop it.
    """


class Line:
    """The connection of a worker's plug-ins to the world.

    Each run of a worker has its own.
    """

    def __init__(self, known: Sequence[tuple[Operation, Hashable]] = ()) -> None:
        self._known = known
        self._position = 0
        self._thread = threading.get_ident()
        self.question: Operation | None = None

    def ask(self, operation: Operation) -> Any:
        """Return the world's answer, or end the run if it is not known yet.

        Raises:
            NotDeterministicError: The worker has other threads, or depends on more than the
                answers.
        """
        if threading.get_ident() != self._thread:
            raise NotDeterministicError(f"{operation}: a worker may have one thread only")
        if self._position == len(self._known):
            self.question = self.question or operation
            raise _Parked
        expected, answer = self._known[self._position]
        if operation != expected:
            raise NotDeterministicError(f"asked {operation} where it had asked {expected}")
        self._position += 1
        if isinstance(answer, Raised):
            raise answer.take()
        return answer


@dataclass(frozen=True, slots=True)
class Ended:
    """The end of a worker: its outcome, or an error that it should not have raised."""

    outcome: Hashable
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Worker:
    """Code under test.

    Attributes:
        name: Its name in schedules.
        run: The code, from its start to its outcome, a value. It builds its plug-ins from the line,
            and turns the errors that it may meet into values. Any other error is a violation, and
            so is an `AssertionError` of its own.
        may_fail: Whether mishaps may strike it.
    """

    name: str
    run: Callable[[Line], Hashable]
    may_fail: bool = True

    def advance(self, known: Sequence[tuple[Operation, Hashable]]) -> Operation | Ended:
        """Return the worker's next question after the known answers, or its end."""
        line = Line(known)
        try:
            outcome = self.run(line)
        except _Parked:
            outcome = None
        except Exception as error:  # noqa: BLE001 - whatever it is, the search looks for it
            if line.question is None:
                return Ended(None, f"{type(error).__name__}: {error}")
        # Code that swallows the end of the run, or cleans up by more questions, is paused, too.
        return line.question or Ended(outcome)


class World(ABC):
    """The world that the workers share: states that are values, and the effects of operations."""

    @property
    @abstractmethod
    def initial(self) -> Hashable:
        """The state that every schedule starts from."""

    @abstractmethod
    def apply(self, state: Any, operation: Operation) -> tuple[Hashable, Hashable]:
        """Return the state after an operation and its answer, a value or a `Raised`."""

    @abstractmethod
    def is_read(self, operation: Operation) -> bool:
        """Tell whether an operation changes nothing."""

    @abstractmethod
    def silence(self, operation: Operation) -> Hashable:
        """Return the result for the worker when the answer is lost."""

    @abstractmethod
    def refusal(self, operation: Operation) -> Hashable:
        """Return the result for the worker when nothing was done."""

    def stale(self, state: Any, operation: Operation) -> tuple[Hashable] | None:  # noqa: ARG002
        """Return an outdated answer that this world may give, in a tuple, or None."""
        return None

    def check_step(self, before: Any, operation: Operation, after: Any) -> None:  # noqa: B027
        """Raise `AssertionError` for a step that must never happen."""


@dataclass(frozen=True, slots=True)
class Moment:
    """A moment of a schedule, as an invariant sees it.

    Attributes:
        state: The state of the world.
        outcomes: The outcomes of the workers that have ended, by name.
        is_final: Whether all workers have ended; a worker without an outcome has then crashed.
    """

    state: Any
    outcomes: Mapping[str, Any]
    is_final: bool


@dataclass(frozen=True, slots=True)
class Model:
    """The object of a search: the world, its workers, the mishaps, and the invariant.

    Attributes:
        world: The world that the workers share.
        workers: The workers, in this order; their names are distinct.
        invariant: Raises `AssertionError` at a moment that must never be. It is called once for
            each pair of a state and the outcomes so far.
        mishaps: The kinds of mishaps that may strike.
        max_mishaps: The number of mishaps that may strike in one schedule.
    """

    world: World
    workers: tuple[Worker, ...]
    invariant: Callable[[Moment], None]
    mishaps: tuple[Mishap, ...] = (Mishap.CRASH, Mishap.LOST)
    max_mishaps: int = 0


def run_alone(world: World, state: Hashable, worker: Worker) -> tuple[Hashable, Hashable]:
    """Run a worker to its end on a state of the world, alone and without mishaps.

    Returns:
        The state that it leaves, and its outcome.
    """
    line = DirectLine(world, state)
    outcome = worker.run(line)
    return line.state, outcome


class DirectLine(Line):
    """A line that answers at once, from a state of its own.

    Attributes:
        state: The state of the world after the operations so far.
    """

    def __init__(self, world: World, state: Hashable) -> None:
        super().__init__()
        self._world = world
        self.state = state

    def ask(self, operation: Operation) -> Any:
        """Apply the operation, and return the answer (see `Line.ask`)."""
        before = self.state
        self.state, answer = self._world.apply(before, operation)
        self._world.check_step(before, operation, self.state)
        if isinstance(answer, Raised):
            raise answer.take()
        return answer
