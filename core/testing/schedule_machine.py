"""The states of a model and the steps between them, as numbers.

States of the world, operations, answers and positions of workers are each stored once and numbered,
and every effect is computed once. A state of the whole is then one integer of 24-bit fields: the
world, the remaining mishaps, the requests in flight, and the position of each worker. A step of a
worker adds a difference to it, which is the same in all states with the same world and the same
position of that worker.

Two simplifications lose no behaviour. For a worker that has ended, only the outcome is kept, and
for one that crashed nothing is kept, since neither does anything more.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import NamedTuple

from optimist.core.testing.scheduler import Mishap, Model, Moment, Operation
from optimist.core.testing.worker_positions import (
    CRASHED,
    DELIVERY,
    FIELD_BITS,
    Choice,
    Numbered,
    Positions,
    ViolationFound,
)

__all__ = ["Machine", "Move", "State", "parse_schedule"]

State = int
"""A state of the whole, as one integer; see the module."""

_BITS = FIELD_BITS
_MASK = (1 << _BITS) - 1
_LEFT = 1 << _BITS
_FLYING_SHIFT = 2 * _BITS
_NODES_SHIFT = 3 * _BITS


class Move(NamedTuple):
    """A choice of a worker, and its effect on a state."""

    choice: Choice
    difference: int
    """The number that it adds to the state, apart from a request that it sends late."""
    sent: int = -1
    """The operation that it sends late; -1 for none."""
    is_silent: bool = False
    """Whether it changes neither the world nor the set of live workers, and needs no check."""


class Machine:
    """A model, ready to be stepped through."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self._worlds = Numbered()
        self._operations = Numbered()
        self._answers = Numbered()
        self._flights = Numbered()
        self._programs = tuple(
            Positions(worker, self._operations, self._answers) for worker in model.workers
        )
        self._shifts = tuple(_NODES_SHIFT + _BITS * i for i in range(len(model.workers)))
        self._keys = tuple(_MASK | _MASK << shift for shift in self._shifts)
        self._effects: dict[tuple[int, int], tuple[int, int]] = {}
        self._sound: set[tuple[int, tuple[int, ...]]] = set()
        self._singles: dict[Mishap | None, dict[int, Move | None]] = {}
        self._moves: tuple[dict[int, tuple[Move, ...]], ...] = ({}, {})
        self._flights.number(())
        self.initial: State = self._worlds.number(model.world.initial) + model.max_mishaps * _LEFT
        for program, shift in zip(self._programs, self._shifts, strict=True):
            self.initial += program.start << shift

    # Stepping

    def live(self, state: State) -> list[int]:
        """Return the numbers of the workers that have not ended."""
        return [i for i, mark in enumerate(self._marks_of(state)) if mark == 0]

    def moves(self, state: State) -> Iterator[tuple[Move, ...]]:
        """Yield for each worker its possible next moves, if it has not ended.

        Raises:
            ViolationFound: One of the moves must never happen; the field `choice` says which.
        """
        known = self._moves[self._may_fail(state)]
        for worker, mask in enumerate(self._keys):
            key = state & mask
            moves = known.get(key)
            if moves is None:
                moves = known[key] = tuple(self._all_moves(state, worker))
            yield moves

    def after(self, state: State, move: Move) -> State:
        """Return the state that a move leads to."""
        if move.sent < 0:
            return state + move.difference
        flying = self.flying(state)
        return self._with_flying(state + move.difference, (*flying, move.sent))

    def flying(self, state: State) -> tuple[int, ...]:
        """Return the requests in flight, in the order in which they were sent."""
        flying: tuple[int, ...] = self._flights.value(state >> _FLYING_SHIFT & _MASK)
        return flying

    def deliver(self, state: State, request: int) -> State:
        """Return the state after a late request has arrived.

        Raises:
            ViolationFound: The request does something that must never happen.
        """
        flying, world = self.flying(state), state & _MASK
        after, _ = self._effect_of_operation(world, flying[request])
        return self._with_flying(state + after - world, (*flying[:request], *flying[request + 1 :]))

    def step(self, state: State, choice: Choice) -> State:
        """Return the state after a choice.

        Raises:
            ViolationFound: The step must never happen, or a worker broke.
            ValueError: The choice is not possible in this state.
        """
        if choice.worker == DELIVERY:
            return self.deliver(state, choice.request)
        if self._is_live(state, choice.worker):
            move = self.move(state, choice.worker, choice.mishap)
            if move is not None and (choice.mishap is None or self._may_fail(state)):
                return self.after(state, move)
        raise ValueError(f"{self.text(choice)} can't happen there")

    def move(self, state: State, worker: int, mishap: Mishap | None = None) -> Move | None:
        """Return one move of a live worker, or None if it needs a stale answer that does not exist.

        Raises:
            ViolationFound: The move must never happen.
        """
        known = self._singles.get(mishap)
        if known is None:
            known = self._singles[mishap] = {}
        key = state & self._keys[worker]
        if key not in known:
            known[key] = self._compute_move(state, Choice(worker, mishap))
        return known[key]

    def mishaps(self, state: State, worker: int) -> tuple[Mishap, ...]:
        """Return the mishaps that may strike a live worker now."""
        if not self._may_fail(state) or not self.model.workers[worker].may_fail:
            return ()
        program = self._programs[worker]
        question = self._operations.value(program.operation(self._position_of(state, worker)))
        kinds = self._kinds_for(question)
        if (
            Mishap.STALE in kinds
            and self._answer_in_mishap(state & _MASK, question, Mishap.STALE) is None
        ):
            return tuple(kind for kind in kinds if kind is not Mishap.STALE)
        return kinds

    def check(self, state: State) -> None:
        """Check the invariant, once for each state of the world with its outcomes.

        Raises:
            ViolationFound: The invariant does not hold.
        """
        marks = self._marks_of(state)
        key = (state & _MASK, marks)
        if key in self._sound:
            return
        moment = Moment(self._worlds.value(key[0]), self.outcomes(state), 0 not in marks)
        try:
            self.model.invariant(moment)
        except AssertionError as error:
            raise ViolationFound(str(error)) from error
        self._sound.add(key)

    # Results

    def outcomes(self, state: State) -> dict[str, Hashable]:
        """Return the outcomes of the workers that have ended, by name."""
        return {
            program.worker.name: program.outcome(mark - 2)
            for program, mark in zip(self._programs, self._marks_of(state), strict=True)
            if mark > 1
        }

    def positions(self) -> int:
        """Return the number of sequences of answers that were run."""
        return sum(len(program.marks) - 1 for program in self._programs)

    def worlds(self) -> int:
        """Return the number of states of the world that were met."""
        return len(self._worlds)

    def text(self, choice: Choice) -> str:
        """Format a choice for `parse_schedule`."""
        if choice.worker == DELIVERY:
            return f"deliver:{choice.request}"
        name = self.model.workers[choice.worker].name
        return f"{name}:{choice.mishap.value}" if choice.mishap else name

    def line(self, state: State, choice: Choice) -> str:
        """Describe a choice in words, with the worker's question and the answer."""
        if choice.worker == DELIVERY:
            request = self.flying(state)[choice.request]
            return f"a late request arrives: {self._operations.value(request)}"
        program = self._programs[choice.worker]
        operation = program.operation(self._position_of(state, choice.worker))
        name, what = program.worker.name, self._operations.value(operation)
        if choice.mishap is None:
            try:
                _, answer = self._effect_of_operation(state & _MASK, operation)
            except ViolationFound:
                return f"{name}: {what}"
            return f"{name}: {what} -> {_shorten(self._answers.value(answer))}"
        return f"{name}: {what} -> {choice.mishap.value.upper()}"

    # Parts

    def _position_of(self, state: State, worker: int) -> int:
        return state >> self._shifts[worker] & _MASK

    def _marks_of(self, state: State) -> tuple[int, ...]:
        nodes = [state >> shift & _MASK for shift in self._shifts]
        return tuple([p.marks[node] for p, node in zip(self._programs, nodes, strict=True)])

    def _with_flying(self, state: State, flying: tuple[int, ...]) -> State:
        before = state & _MASK << _FLYING_SHIFT
        return state - before + (self._flights.number(flying) << _FLYING_SHIFT)

    def _may_fail(self, state: State) -> bool:
        return state >> _BITS & _MASK > 0

    def _is_live(self, state: State, worker: int) -> bool:
        return self._programs[worker].marks[self._position_of(state, worker)] == 0

    def _all_moves(self, state: State, worker: int) -> Iterator[Move]:
        if self._is_live(state, worker):
            for mishap in (None, *self.mishaps(state, worker)):
                move = self.move(state, worker, mishap)
                if move is not None:
                    yield move

    def _compute_move(self, state: State, choice: Choice) -> Move | None:
        try:
            return self._effect_of(state, choice)
        except ViolationFound as error:
            raise ViolationFound(str(error), choice) from error

    def _effect_of(self, state: State, choice: Choice) -> Move | None:
        program, mishap = self._programs[choice.worker], choice.mishap
        world, node = state & _MASK, self._position_of(state, choice.worker)
        question, after, answer = program.operation(node), world, 0
        if mishap in (None, Mishap.LOST):
            after, answer = self._effect_of_operation(world, question)
        if mishap is not None and mishap is not Mishap.CRASH:
            answers = self._answer_in_mishap(world, self._operations.value(question), mishap)
            if answers is None:
                return None
            answer = self._answers.number(answers[0])
        next_node = CRASHED if mishap is Mishap.CRASH else program.after(node, answer)
        difference = after - world + ((next_node - node) << self._shifts[choice.worker])
        if mishap is not None:
            difference -= _LEFT
        is_silent = after == world and program.marks[next_node] == 0
        return Move(choice, difference, question if mishap is Mishap.LATE else -1, is_silent)

    def _answer_in_mishap(
        self, world: int, operation: Operation, mishap: Mishap
    ) -> tuple[Hashable] | None:
        """Return a worker's answer in a mishap, in a tuple, or None if it can't happen here."""
        rules = self.model.world
        if mishap is Mishap.STALE:
            return rules.stale(self._worlds.value(world), operation)
        if mishap is Mishap.REFUSED:
            return (rules.refusal(operation),)
        return (rules.silence(operation),)

    def _effect_of_operation(self, world: int, operation: int) -> tuple[int, int]:
        known = self._effects.get((world, operation))
        if known is not None:
            return known
        before, value = self._worlds.value(world), self._operations.value(operation)
        after, answer = self.model.world.apply(before, value)
        try:
            self.model.world.check_step(before, value, after)
        except AssertionError as error:
            raise ViolationFound(str(error)) from error
        effect = (self._worlds.number(after), self._answers.number(answer))
        self._effects[world, operation] = effect
        return effect

    def _kinds_for(self, operation: Operation) -> tuple[Mishap, ...]:
        kinds = self.model.mishaps
        if not self.model.world.is_read(operation):
            return tuple(kind for kind in kinds if kind is not Mishap.STALE)
        # All mishaps that leave a read without an answer are equal, so one of them is enough. A
        # crash before a read is the same as a crash before the next write, or as an end.
        unanswered = [k for k in kinds if k not in (Mishap.CRASH, Mishap.STALE)][:1]
        return tuple(k for k in kinds if k is Mishap.STALE or k in unanswered)


def parse_schedule(text: str, machine: Machine) -> list[Choice]:
    """Parse the choices of a schedule from an error's text: `a b a:crash deliver:3 ...`."""
    indices = {worker.name: i for i, worker in enumerate(machine.model.workers)}
    choices = []
    for word in text.split():
        name, _, rest = word.partition(":")
        if name == "deliver":
            choices.append(Choice(DELIVERY, None, int(rest)))
        else:
            choices.append(Choice(indices[name], Mishap(rest) if rest else None))
    return choices


def _shorten(answer: Hashable) -> str:
    text = str(answer)
    return text if len(text) <= 100 else f"{text[:97]}..."
