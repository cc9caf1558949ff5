"""The scheduler: it finds what can go wrong, counts what it looked at, and plays it again."""

from __future__ import annotations

import math
from itertools import count

import pytest

from optimist.core.errors import StorageError
from optimist.core.testing import (
    InterleavingError,
    Mishap,
    Model,
    NotDeterministicError,
    Operation,
    Raised,
    TooManyStatesError,
    Worker,
    World,
    explore_all,
    explore_randomly,
    replay,
    run_alone,
)
from optimist.core.testing.schedule_machine import Machine
from optimist.core.testing.worker_positions import DELIVERY, Choice


class Cells(World):
    """Numbers by name: `get`, `set`, and `add`, which is one step."""

    @property
    def initial(self):
        return ()

    def apply(self, state, operation):
        cells = dict(state)
        found = cells.get(operation.target, 0)
        if operation.kind == "get":
            return state, found
        cells[operation.target] = operation.payload + (found if operation.kind == "add" else 0)
        return tuple(sorted(cells.items())), None

    def is_read(self, operation):
        return operation.kind == "get"

    def silence(self, operation):
        return Raised(StorageError, "no answer", (("kind", "TEST"),))

    def refusal(self, operation):
        return Raised(StorageError, "refused", (("kind", "TEST"),))

    def stale(self, state, operation):
        return (0,) if operation.kind == "get" and dict(state).get(operation.target) else None

    def check_step(self, before, operation, after):
        assert operation.kind != "forbid", "a forbidden step"


def asks(name: str, *steps: tuple[str, str, int]) -> Worker:
    """A worker that makes these steps; its outcome is what it was told, `...` for an error."""

    def run(line):
        told = []
        for kind, target, value in steps:
            try:
                told.append(line.ask(Operation(kind, target, value)))
            except StorageError:
                told.append(...)
        return tuple(told)

    return Worker(name, run)


def increment(name: str) -> Worker:
    """Reads and writes in two steps, as one must not."""

    def run(line):
        found = line.ask(Operation("get", "n"))
        line.ask(Operation("set", "n", found + 1))
        return "done"

    return Worker(name, run)


def anything(moment) -> None:
    """Holds always."""


def nothing_is_lost(moment) -> None:
    if len(moment.outcomes) == 2:
        total = dict(moment.state)["n"]
        assert total == 2, f"two increments made {total}"


LOST_UPDATE = Model(Cells(), (increment("a"), increment("b")), nothing_is_lost)


def test_a_lost_update_is_found_by_a_shortest_schedule_and_replays() -> None:
    with pytest.raises(InterleavingError, match="two increments made 1") as found:
        explore_all(LOST_UPDATE)
    assert found.value.schedule == "a b a b"
    assert "3. a: set n -> None" in str(found.value)
    with pytest.raises(InterleavingError, match="two increments made 1"):
        replay(LOST_UPDATE, found.value.schedule)
    assert replay(LOST_UPDATE, "a a b b") == {"a": "done", "b": "done"}
    assert replay(LOST_UPDATE, "a a") == {"a": "done"}


def test_a_random_search_finds_it_too_and_the_same_one_for_the_same_seed() -> None:
    errors = []
    for _ in range(2):
        with pytest.raises(InterleavingError, match="of seed 7") as found:
            explore_randomly(LOST_UPDATE, schedules=1_000, seed=7)
        errors.append(str(found.value))
    assert errors[0] == errors[1]


@pytest.mark.parametrize("steps", [1, 2, 5])
def test_schedules_are_counted_as_combinatorics_has_them(steps: int) -> None:
    first = asks("a", *[("add", "x", 1)] * steps)
    second = asks("b", *[("add", "y", 1)] * steps)
    found = explore_all(Model(Cells(), (first, second), anything))
    assert found.schedules == math.comb(2 * steps, steps)
    assert found.states == (steps + 1) ** 2
    assert found.longest == 2 * steps


def ends_of_every_schedule(model: Model) -> tuple[set[object], int]:
    """All schedules one by one, none taken for another: the ends, and how many schedules."""
    machine, ends, schedules = Machine(model), set(), 0
    stack = [machine.initial]
    while stack:
        state = stack.pop()
        choices = [move.choice for moves in machine.moves(state) for move in moves]
        choices += [Choice(DELIVERY, None, i) for i in range(len(machine.flying(state)))]
        stack += [machine.step(state, choice) for choice in choices]
        schedules += not choices
        if not machine.live(state):
            ends.add((state & 0xFFFFFF, tuple(sorted(machine.outcomes(state).items()))))
    return ends, schedules


def test_taking_equal_states_for_one_leaves_out_no_schedule_and_no_end() -> None:
    mishaps = (Mishap.CRASH, Mishap.LOST, Mishap.LATE, Mishap.REFUSED, Mishap.STALE)
    workers = (
        asks("a", ("add", "x", 1), ("get", "y", 0)),
        asks("b", ("set", "x", 5), ("add", "y", 1)),
        asks("c", ("get", "x", 0)),
    )
    seen = set()

    def note(moment) -> None:
        if moment.is_final:
            seen.add((moment.state, tuple(sorted(moment.outcomes.items()))))

    model = Model(Cells(), workers, note, mishaps, 2)
    found = explore_all(model)
    ends, schedules = ends_of_every_schedule(model)
    assert found.schedules == schedules
    assert len(seen) == len(ends) > 10


def outcomes_with(mishap: Mishap, *workers: Worker) -> set[object]:
    found = set()

    def note(moment) -> None:
        if moment.is_final:
            found.add((moment.state, tuple(sorted(moment.outcomes.items()))))

    explore_all(Model(Cells(), workers, note, (mishap,), 1))
    return found


DONE = ((("x", 1),), (("a", (None,)),))
NO_ANSWER = (("a", (...,)),)


def test_each_mishap_does_what_it_says() -> None:
    worker = asks("a", ("add", "x", 1))
    assert outcomes_with(Mishap.CRASH, worker) == {DONE, ((), ())}
    assert outcomes_with(Mishap.LOST, worker) == {DONE, ((("x", 1),), NO_ANSWER)}
    assert outcomes_with(Mishap.REFUSED, worker) == {DONE, ((), NO_ANSWER)}
    assert outcomes_with(Mishap.LATE, worker) == {
        DONE,
        ((), NO_ANSWER),
        ((("x", 1),), NO_ANSWER),
    }


def test_a_late_request_can_arrive_after_the_next_one() -> None:
    worker = asks("a", ("set", "x", 1), ("set", "x", 2))
    ends = {state for state, _ in outcomes_with(Mishap.LATE, worker)}
    assert (("x", 1),) in ends


def test_a_read_can_be_stale_only_where_the_world_says_so() -> None:
    reads = asks("r", ("get", "x", 0))
    writes = asks("w", ("set", "x", 3))
    told = {dict(outcomes)["r"] for _, outcomes in outcomes_with(Mishap.STALE, writes, reads)}
    assert told == {(0,), (3,)}
    model = Model(Cells(), (writes, reads), anything, (Mishap.STALE,), 1)
    assert replay(model, "w r:stale")["r"] == (0,)
    with pytest.raises(ValueError, match="r:stale can't happen there"):
        replay(model, "r:stale")


def test_a_worker_that_may_not_fail_does_not() -> None:
    sure = Worker("a", asks("a", ("add", "x", 1)).run, may_fail=False)
    assert outcomes_with(Mishap.CRASH, sure) == {DONE}


def test_an_error_of_the_code_under_test_is_a_violation() -> None:
    def run(line):
        return {}[line.ask(Operation("get", "x"))]

    with pytest.raises(InterleavingError, match="a broke: KeyError"):
        explore_all(Model(Cells(), (Worker("a", run),), anything))


def test_a_step_that_the_world_forbids_is_a_violation() -> None:
    def run(line):
        line.ask(Operation("get", "x"))
        line.ask(Operation("forbid", "x", 1))

    model = Model(Cells(), (Worker("a", run),), anything)
    for search in (explore_all, lambda it: explore_randomly(it, schedules=1, seed=0)):
        with pytest.raises(InterleavingError, match="a forbidden step") as found:
            search(model)
        assert found.value.schedule == "a a"


def test_code_that_swallows_every_exception_is_stopped_all_the_same() -> None:
    def run(line):
        try:
            return line.ask(Operation("get", "x"))
        except BaseException:  # noqa: BLE001 - what no code should do
            return "swallowed"

    assert replay(Model(Cells(), (Worker("a", run),), anything), "a") == {"a": 0}


def test_a_worker_that_depends_on_more_than_its_answers_is_reported() -> None:
    numbers = count()

    def run(line):
        line.ask(Operation("get", f"x{next(numbers)}"))

    with pytest.raises(InterleavingError, match=NotDeterministicError.__name__):
        explore_all(Model(Cells(), (Worker("a", run),), anything))


def test_a_search_gives_up_where_it_was_told_to() -> None:
    with pytest.raises(TooManyStatesError, match="more than 2"):
        explore_all(Model(Cells(), (increment("a"), increment("b")), anything), max_states=2)


def test_a_worker_can_be_run_alone() -> None:
    assert run_alone(Cells(), (("n", 4),), increment("a")) == ((("n", 5),), "done")
