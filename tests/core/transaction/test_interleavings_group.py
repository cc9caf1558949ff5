"""Every interleaving of a group and a single writer on a store that creates exclusively."""

from __future__ import annotations

import logging

import pytest

from grouped_appends import APPEND, GROUPED
from optimist.core import DeltaLog
from optimist.core.errors import OptimistError
from optimist.core.options.engine import EngineOptions
from optimist.core.testing import (
    InterleavingError,
    LogInvariants,
    Mishap,
    Model,
    SimulatedLogStore,
    SimulatedWorld,
    Worker,
    added_file,
    engine_writer,
    explore_all,
    first_commit,
    reader,
)
from optimist.core.testing.log_scenario import telling
from optimist.core.testing.scheduler import DirectLine
from optimist.core.testing.simulated_store import SimulatedClock
from optimist.core.transaction.groups import members, queue
from optimist.core.transaction.groups.members import Member
from prepared_commits import prepared

TABLE = "sim://table"
EVERYTHING = (Mishap.CRASH, Mishap.LOST, Mishap.LATE, Mishap.REFUSED)
WORLD = SimulatedWorld([first_commit(TABLE, "f0")])
SETTINGS = {**GROUPED, "spark.databricks.delta.writeChecksumFile.enabled": "false"}


@pytest.fixture(autouse=True)
def _quiet():
    """The engine warns of every mishap, in each of thousands of runs."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def open_log(line, name):
    clock = SimulatedClock(name)
    options = EngineOptions.from_options(SETTINGS)
    return DeltaLog(TABLE, SimulatedLogStore(line), options, clock=clock)


def group_writer(name, size):
    """A thread that leads: the other members wait, and were there before it."""
    known = open_log(DirectLine(WORLD, WORLD.initial), name).snapshot()

    def run(line):
        log = open_log(line, name)
        begun = [log.start_transaction(known) for _ in range(size)]
        drafts = [
            prepared(txn, [added_file(f"{name}{number}")], APPEND)
            for number, txn in enumerate(begun)
        ]
        waiting = [Member(draft, known) for draft in drafts[:-1]]
        log.commit_queue._waiting.extend(waiting)
        last = telling(begun[-1].txn_id, lambda: log.commit_queue.commit(drafts[-1], known).version)
        outcomes = [
            telling(txn.txn_id, lambda member=member: version_of(member.outcome))
            for txn, member in zip(begun, waiting, strict=False)
        ]
        return (*outcomes, last)

    return Worker(name, run)


def version_of(outcome):
    if isinstance(outcome, OptimistError):
        raise outcome
    return outcome.version


def appends(txn, name):
    return [added_file(name)]


def model(mishaps, max_mishaps, *, size=2):
    def open_store(line, clock):
        return SimulatedLogStore(line)

    single = engine_writer("b", TABLE, open_store, appends, world=WORLD)
    late = engine_writer("late", TABLE, open_store, appends, world=WORLD)
    after = reader("after", TABLE, open_store, passes=2)
    invariant = LogInvariants(TABLE, WORLD, late, after)
    return Model(WORLD, (group_writer("a", size), single), invariant, mishaps, max_mishaps)


@pytest.mark.again
def test_a_group_and_a_writer_survive_every_schedule_with_two_mishaps() -> None:
    assert explore_all(model(EVERYTHING, 2)).schedules > 10**3


@pytest.mark.again
def test_two_groups_survive_every_schedule_with_one_mishap() -> None:
    one = model(EVERYTHING, 1, size=3)
    both = Model(WORLD, (*one.workers, group_writer("c", 2)), one.invariant, EVERYTHING, 1)
    assert explore_all(both).schedules > 10**3


def test_a_group_that_does_not_recognise_itself_is_caught(monkeypatch) -> None:
    monkeypatch.setattr(members.Theirs, "holds", lambda theirs, txn_id: False)
    monkeypatch.setattr(
        "optimist.core.transaction.outcome.VersionFile.is_same", lambda file, found: False
    )
    with pytest.raises(InterleavingError, match=r"doubled|told that nothing"):
        explore_all(model(EVERYTHING, 1))


def test_a_group_that_takes_its_members_along_to_a_success_is_caught(monkeypatch) -> None:
    settle = queue._settle

    def hopeful(group, outcome):
        is_error = isinstance(outcome, OptimistError)
        settle(group, RESULT if is_error else outcome)

    monkeypatch.setattr(queue, "_settle", hopeful)
    with pytest.raises(InterleavingError, match="lost"):
        explore_all(model(EVERYTHING, 2))


RESULT = queue.CommitResult(1, "", 1, 0, "Serializable")
