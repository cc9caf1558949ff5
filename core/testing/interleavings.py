"""The search through a model's schedules: all of them, random ones, or one again.

`explore_all` visits every state that any schedule leads to, nearest first, so the schedule of a
violation is a shortest one. Equal states are continued once: two schedules that bring the world and
all workers to the same point have the same futures. `Exploration.schedules` is the number of
schedules that the states stand for, counted over their graph.

`explore_randomly` draws whole schedules, for models with too many states. A violation that either
one finds names its schedule, which `replay` runs again.
"""

from __future__ import annotations

import gc
from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from optimist.core.testing.schedule_machine import Machine, State, parse_schedule
from optimist.core.testing.scheduler import Model
from optimist.core.testing.worker_positions import DELIVERY, Choice, ViolationFound

__all__ = [
    "Exploration",
    "InterleavingError",
    "TooManyStatesError",
    "explore_all",
    "explore_randomly",
    "replay",
]


@dataclass(frozen=True, slots=True)
class Exploration:
    """The extent of a search.

    Attributes:
        schedules: The complete schedules: all that the states stand for, or those drawn at random.
        states: The distinct states of the whole; 0 for a random search.
        steps: The steps between states.
        worlds: The distinct states of the world.
        positions: The distinct positions of workers: the number of runs of real code.
        longest: The steps of the longest drawn schedule, or to the farthest state.
    """

    schedules: int
    states: int
    steps: int
    worlds: int
    positions: int
    longest: int


class InterleavingError(AssertionError):
    """A schedule that breaks an invariant.

    Attributes:
        reason: The broken invariant.
        schedule: The schedule as text, for `replay`.
    """

    def __init__(self, reason: str, schedule: str, lines: Sequence[str], origin: str) -> None:
        steps = "\n".join(f"  {number}. {line}" for number, line in enumerate(lines, 1))
        super().__init__(f"{reason}\n{origin}:\n{steps}\nreplay: {schedule!r}")
        self.reason = reason
        self.schedule = schedule


class TooManyStatesError(RuntimeError):
    """An error for a model with more states than the search may keep."""


def explore_all(model: Model, *, max_states: int = 20_000_000) -> Exploration:
    """Search every schedule of a model.

    Args:
        model: The model to search.
        max_states: The number of states to keep before the search stops; one costs about 300 bytes.

    Raises:
        InterleavingError: A shortest schedule that breaks the model.
        TooManyStatesError: The model has more states than `max_states`.
    """
    search = _Search(Machine(model))
    with _no_garbage_collection():
        while search.next < len(search.states):
            if len(search.states) > max_states:
                raise TooManyStatesError(f"more than {max_states} states")
            search.expand()
        return search.result()


def explore_randomly(model: Model, *, schedules: int, seed: int) -> Exploration:
    """Run schedules drawn at random, the same ones for the same seed.

    Raises:
        InterleavingError: The first schedule found that breaks the model.
    """
    machine, chance = Machine(model), _Chance(seed)
    steps = longest = 0
    for number in range(schedules):
        choices: list[Choice] = []
        try:
            _run_random(machine, chance, choices)
        except ViolationFound as error:
            origin = f"schedule {number} of seed {seed}"
            choices += [error.choice] if error.choice is not None else []
            raise _describe_violation(machine, str(error), choices, origin) from error
        steps += len(choices)
        longest = max(longest, len(choices))
    return Exploration(schedules, 0, steps, machine.worlds(), machine.positions(), longest)


def replay(model: Model, schedule: str) -> dict[str, object]:
    """Run one schedule from the text of an `InterleavingError`.

    It may end early.

    Returns:
        The outcomes of the workers that have ended.

    Raises:
        InterleavingError: The schedule breaks the model.
    """
    machine, choices = Machine(model), []
    state = machine.initial
    try:
        machine.check(state)
        for choice in parse_schedule(schedule, machine):
            choices.append(choice)
            state = machine.step(state, choice)
            machine.check(state)
    except ViolationFound as error:
        raise _describe_violation(machine, str(error), choices, "the schedule") from error
    return machine.outcomes(state)


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Switch the garbage collector off, which would scan millions of states, all in use."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


class _Search:
    """A breadth-first search.

    A state is identified by its index in the order of discovery.
    """

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self.states: list[State] = []
        self.next = 0
        self._indices: dict[State, int] = {}
        self._found_from = array("q")
        self._found_by: list[Choice | None] = []
        self._depth = array("l")
        self._first_edge = array("q")
        self._edges = array("q")
        self._add_state(machine.initial, -1, None)

    def expand(self) -> None:
        """Take all steps from the next state."""
        index, machine = self.next, self._machine
        state = self.states[index]
        self.next += 1
        self._first_edge.append(len(self._edges))
        indices, edges = self._indices, self._edges
        try:
            for moves in machine.moves(state):
                for move in moves:
                    after = machine.after(state, move) if move[2] >= 0 else state + move[1]
                    known = indices.get(after)
                    if known is None:
                        known = self._add_state(after, index, move[0], must_check=not move[3])
                    edges.append(known)
        except ViolationFound as error:
            assert error.choice is not None
            raise self._describe_violation(error, index, error.choice) from error
        for request in range(len(machine.flying(state))):
            choice = Choice(DELIVERY, None, request)
            try:
                after = machine.deliver(state, request)
            except ViolationFound as error:
                raise self._describe_violation(error, index, choice) from error
            known = self._indices.get(after)
            if known is None:
                known = self._add_state(after, index, choice)
            self._edges.append(known)

    def result(self) -> Exploration:
        return Exploration(
            schedules=self._count_schedules(),
            states=len(self.states),
            steps=len(self._edges),
            worlds=self._machine.worlds(),
            positions=self._machine.positions(),
            longest=max(self._depth),
        )

    def _add_state(
        self, state: State, found_from: int, choice: Choice | None, *, must_check: bool = True
    ) -> int:
        index = self._indices[state] = len(self.states)
        self.states.append(state)
        self._found_from.append(found_from)
        self._found_by.append(choice)
        self._depth.append(self._depth[found_from] + 1 if found_from >= 0 else 0)
        if not must_check:
            return index
        try:
            self._machine.check(state)
        except ViolationFound as error:
            assert choice is not None, error
            raise self._describe_violation(error, found_from, choice) from error
        return index

    def _describe_violation(
        self, error: ViolationFound, index: int, last: Choice
    ) -> InterleavingError:
        choices = [last]
        while (choice := self._found_by[index]) is not None:
            choices.append(choice)
            index = self._found_from[index]
        choices.reverse()
        return _describe_violation(self._machine, str(error), choices, "a shortest schedule")

    def _count_schedules(self) -> int:
        """Count the paths from the first state to one without a next step.

        Their number is finite, since the graph has no cycle.
        """
        first, edges = self._first_edge, self._edges
        first.append(len(edges))
        missing = array("l", bytes(8 * len(self.states)))
        for target in edges:
            missing[target] += 1
        ways: dict[int, int] = {0: 1}
        ready, total = [0], 0
        while ready:
            index = ready.pop()
            here = ways.pop(index)
            targets = edges[first[index] : first[index + 1]]
            total += 0 if targets else here
            for target in targets:
                ways[target] = ways.get(target, 0) + here
                missing[target] -= 1
                if not missing[target]:
                    ready.append(target)
        return total


_MISHAP_CHANCE = 0.08
"""The chance of a mishap at each step, while any are left.

With it, two mishaps fall anywhere in a schedule of 30 steps.
"""


class _Chance:
    """A fixed sequence of numbers for each seed (a 64-bit linear congruential generator)."""

    def __init__(self, seed: int) -> None:
        self._state = seed

    def below(self, limit: int) -> int:
        """Return one of 0 ... limit - 1."""
        self._state = (self._state * 6364136223846793005 + 1442695040888963407) & (1 << 64) - 1
        return (self._state >> 32) * limit >> 32

    def strikes(self) -> bool:
        return self.below(1000) < 1000 * _MISHAP_CHANCE


def _run_random(machine: Machine, chance: _Chance, choices: list[Choice]) -> None:
    """Run a schedule to its end, drawing each step evenly from workers and late requests.

    Now and then a mishap strikes the worker.
    """
    state = machine.initial
    machine.check(state)
    live = machine.live(state)
    while live:
        flying = len(machine.flying(state))
        number = chance.below(len(live) + flying)
        if number >= len(live):
            choices.append(Choice(DELIVERY, None, number - len(live)))
            state = machine.deliver(state, number - len(live))
            machine.check(state)
            continue
        worker, mishap = live[number], None
        if chance.strikes() and (kinds := machine.mishaps(state, worker)):
            mishap = kinds[chance.below(len(kinds))]
        move = machine.move(state, worker, mishap)
        assert move is not None
        choices.append(move.choice)
        state = machine.after(state, move)
        if not move.is_silent:
            machine.check(state)
            live = machine.live(state)


def _describe_violation(
    machine: Machine, reason: str, choices: Sequence[Choice], origin: str
) -> InterleavingError:
    state, lines = machine.initial, []
    for choice in choices:
        lines.append(machine.line(state, choice))
        try:
            state = machine.step(state, choice)
        except ViolationFound:
            break
    schedule = " ".join(machine.text(choice) for choice in choices)
    return InterleavingError(reason, schedule, lines, origin)
