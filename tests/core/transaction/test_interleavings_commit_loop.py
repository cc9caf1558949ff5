"""Every interleaving of the engine's transactions on a store that creates exclusively."""

from __future__ import annotations

import json

import pytest

from optimist.core.errors import StorageError
from optimist.core.plugins.logstore import PutOutcome
from optimist.core.testing import (
    InterleavingError,
    LogInvariants,
    Mishap,
    Model,
    SimulatedLogStore,
    SimulatedWorld,
    added_file,
    engine_writer,
    explore_all,
    explore_randomly,
    first_commit,
    reader,
    replay,
    snapshot_reader,
)
from optimist.core.transaction import commit_loop, outcome

TABLE = "sim://table"
EVERYTHING = (Mishap.CRASH, Mishap.LOST, Mishap.LATE, Mishap.REFUSED)
WITH_STALE_LISTINGS = (Mishap.CRASH, Mishap.LOST, Mishap.STALE)
WORLD = SimulatedWorld([first_commit(TABLE, "f0")])
LAGGING_WORLD = SimulatedWorld([first_commit(TABLE, "f0")], has_late_listings=True)


pytestmark = pytest.mark.usefixtures("quiet_log")


def conditional_store(line, clock):
    return SimulatedLogStore(line)


def blind_append(txn, name):
    return [added_file(name)]


def replace_all_files(txn, name):
    """Reads the one file of the table and puts another in its place."""
    names = txn.filter_files().column("path").to_pylist()
    return [*(added_file(known).remove(5) for known in names), added_file(name)]


class FilesAreRemovedOnce(LogInvariants):
    """Besides: no commit removes a file that another has removed; one file is live."""

    def __call__(self, moment) -> None:
        super().__call__(moment)
        live = set()
        for _, data in sorted(moment.state.files):
            for line in data.decode().splitlines():
                action = json.loads(line)
                if "remove" in action:
                    path = action["remove"]["path"]
                    assert path in live, f"lost update: {path} is removed twice"
                    live.remove(path)
                if "add" in action:
                    live.add(action["add"]["path"])
        assert len(live) == 1


def model(work, mishaps, max_mishaps, *, names="ab", world=WORLD, open_store=conditional_store):
    def writer(name, does=work):
        return engine_writer(name, TABLE, open_store, does, world=world)

    watcher = (
        snapshot_reader("r", TABLE, open_store, world=world)
        if world is WORLD
        else reader("r", TABLE, open_store)  # one look: what lags may go back
    )
    after = reader("after", TABLE, open_store, passes=2)
    if work is replace_all_files:
        invariant = FilesAreRemovedOnce(TABLE, world, after)
    else:
        invariant = LogInvariants(TABLE, world, writer("late", blind_append), after)
    workers = (*map(writer, names), watcher)
    return Model(world, workers, invariant, mishaps, max_mishaps)


@pytest.mark.again
@pytest.mark.parametrize("work", [blind_append, replace_all_files])
def test_two_transactions_and_a_reader_survive_every_schedule_with_two_mishaps(work) -> None:
    found = explore_all(model(work, EVERYTHING, 2))
    assert found.schedules > 10**5


@pytest.mark.parametrize("work", [blind_append, replace_all_files])
def test_a_listing_that_lags_costs_no_commit_in_any_schedule(work) -> None:
    found = explore_all(model(work, WITH_STALE_LISTINGS, 2, world=LAGGING_WORLD))
    assert found.schedules > 10**3


@pytest.mark.again
def test_three_transactions_survive_schedules_drawn_at_random() -> None:
    pair_and_one = model(blind_append, EVERYTHING, 2, names="abc")
    without_reader = Model(WORLD, pair_and_one.workers[:3], pair_and_one.invariant, EVERYTHING, 2)
    assert explore_randomly(without_reader, schedules=20_000, seed=2026).longest > 10


# One guard taken away


class OverwritingStore(SimulatedLogStore):
    def put_if_absent(self, path, data):
        try:
            self.put_overwrite(path, data)
        except StorageError:
            return PutOutcome.UNKNOWN  # honest about silence: that it overwrites is its only sin
        return PutOutcome.CREATED


class CheckingStore(OverwritingStore):
    """Looks whether the file is there, and then writes it: two steps."""

    def put_if_absent(self, path, data):
        if any(status.path == path for status in self.list_from(path)):
            return PutOutcome.EXISTS
        return super().put_if_absent(path, data)


class SilenceIsSuccess(SimulatedLogStore):
    def put_if_absent(self, path, data):
        answer = super().put_if_absent(path, data)
        return PutOutcome.CREATED if answer is PutOutcome.UNKNOWN else answer


@pytest.mark.parametrize(
    ("store", "reason"),
    [
        (OverwritingStore, "changed a file"),
        (CheckingStore, "changed a file"),
        (SilenceIsSuccess, "lost"),
    ],
)
def test_a_store_without_one_guard_is_caught(store, reason: str) -> None:
    mutant = model(blind_append, EVERYTHING, 2, open_store=lambda line, clock: store(line))
    ensure_caught(mutant, reason)


def test_read_back_that_takes_what_it_finds_for_anothers_is_caught(monkeypatch) -> None:
    monkeypatch.setattr(outcome.VersionFile, "is_same", lambda file, found: False)
    ensure_caught(model(blind_append, EVERYTHING, 2), "told that nothing is committed")
    monkeypatch.setattr(commit_loop, "rebase_past", rebase_without_looking_for_ourselves)
    ensure_caught(model(blind_append, EVERYTHING, 1), "doubled")


def test_read_back_that_takes_what_it_finds_for_ours_is_caught(monkeypatch) -> None:
    monkeypatch.setattr(outcome.VersionFile, "is_same", lambda file, found: True)
    ensure_caught(model(blind_append, EVERYTHING, 2), "lost")


def test_a_transaction_that_skips_the_conflict_check_is_caught(monkeypatch) -> None:
    monkeypatch.setattr(commit_loop, "pass_winner", lambda ours, winner: ours)
    ensure_caught(model(replace_all_files, (), 0), "lost update")


def rebase_without_looking_for_ourselves(ours, winners, *others):
    return REBASE(ours, tuple(without_txn_id(winner) for winner in winners), *others)


REBASE = commit_loop.rebase_past


def without_txn_id(winner):
    actions = tuple(a for a in winner.actions if type(a).__name__ != "CommitInfo")
    return type(winner)(winner.version, winner.modified_ms, actions)


def ensure_caught(mutant, reason: str) -> None:
    with pytest.raises(InterleavingError, match=reason) as found:
        explore_all(mutant)
    with pytest.raises(InterleavingError) as again:
        replay(mutant, found.value.schedule)
    assert again.value.reason == found.value.reason
