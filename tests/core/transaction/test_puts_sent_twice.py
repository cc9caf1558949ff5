"""Commits whose put was sent twice below the engine, such as by a proxy, and which meet themselves.

Only the second answer comes back: that the version exists. Whatever happens next, the commit is in
the table, and nobody may say otherwise or remove its files.
"""

from __future__ import annotations

import pyarrow as pa
import pytest

from optimist.core import CommitState, DeltaLog
from optimist.core.errors import (
    CommitOutcomeUnknownError,
    MaxCommitAttemptsExceededError,
    StorageError,
)
from optimist.core.log.commits import read_commit
from optimist.core.log.names import commit_path
from optimist.core.options.engine import EngineOptions
from optimist.core.plugins.logstore import PutOutcome
from optimist.core.protocol.actions import CommitInfo
from optimist.core.testing import Fault, FaultyLogStore, ManualClock, When
from optimist.core.transaction.commit_outcome import CommitOutcome
from optimist.core.transaction.conflicts.operations import Operation
from optimist.logstores import LocalLogStore, MemoryLogStore

WRITE = Operation.write("Append")
COMMIT_1 = f"{1:020}.json"
NO_RETRY = {"spark.databricks.delta.maxCommitAttempts": "0"}
NO_INFO = {"spark.databricks.delta.commitInfo.enabled": "false"}
BUDGET_S = EngineOptions().retry_budget_s


class _Twice:
    """Sends version 1 twice, tells the second answer, and then does what a test has planned."""

    def put_if_absent(self, path, data):
        if not path.endswith(COMMIT_1):
            return super().put_if_absent(path, data)
        super().put_if_absent(path, data)
        outcome = super().put_if_absent(path, data)
        if outcome is PutOutcome.EXISTS:
            self.then()
        return outcome

    def then(self):
        pass


class Twice(_Twice, FaultyLogStore):
    """Such a store in memory, whose calls can fail."""


class TwiceOnDisk(_Twice, LocalLogStore):
    """Such a store on disk."""


@pytest.fixture
def table(make_table):
    return make_table(store=Twice(MemoryLogStore({}))).create()


def append(table):
    txn = table.log.start_transaction()
    return txn, lambda: txn.commit([table.add("ours")], WRITE)


def adds(table):
    found = []
    for version in range(1, table.handle().snapshot().version + 1):
        actions = read_commit(table.store, commit_path(table.log.log_path, version))
        found += [action.path for action in actions if type(action).KEY == "add"]
    return found


def cannot(table, *operations):
    """Let these operations fail from the lost answer on."""

    def fail():
        error = StorageError("down", kind="OPTIMIST_TEST", retryable=False)
        for operation in operations:
            table.store.plan(Fault(operation, When.BEFORE, error=error, times=100))

    table.store.then = fail


def test_a_commit_that_took_all_the_time_has_landed(table):
    table.store.then = lambda: table.clock.sleep(BUDGET_S + 1)
    _, commit = append(table)
    assert commit().version == 1
    assert adds(table) == ["ours"]


def test_a_commit_that_may_try_only_once_has_landed(make_table):
    table = make_table(store=Twice(MemoryLogStore({})), options=NO_RETRY).create()
    _, commit = append(table)
    assert commit().version == 1
    assert adds(table) == ["ours"]


@pytest.mark.parametrize("large", [False, True])
def test_a_commit_has_landed_though_nothing_can_be_listed(table, large):
    cannot(table, "list_from")
    txn = table.log.start_transaction()
    commit = txn.commit_large if large else txn.commit
    assert commit([table.add("ours")], WRITE).version == 1
    table.store.clear()
    assert adds(table) == ["ours"]


def test_a_commit_that_no_listing_shows_yet_has_landed(table, monkeypatch):
    """It was put again, at the same version, and any error of that was told as its own."""
    listed = table.store.list_from
    table.store.then = lambda: monkeypatch.setattr(
        table.store, "list_from", lambda path: iter([s for s in listed(path) if s.name < COMMIT_1])
    )
    error = StorageError("denied", kind="OPTIMIST_TEST", retryable=False)
    table.store.plan(Fault("put_if_absent", When.BEFORE, name=COMMIT_1, error=error, on_call=3))
    _, commit = append(table)
    assert commit().version == 1
    monkeypatch.undo()
    assert adds(table) == ["ours"]


def test_a_commit_that_can_not_be_read_back_is_unknown(table):
    cannot(table, "list_from", "read_bytes")
    txn, commit = append(table)
    with pytest.raises(CommitOutcomeUnknownError) as told:
        commit()
    assert (told.value.version, txn.outcome) == (1, CommitOutcome.UNKNOWN)
    table.store.clear()
    resolution = table.log.resolve_commit(told.value.txn_id)
    assert (resolution.state, resolution.version) == (CommitState.LANDED, 1)


def test_a_commit_that_is_late_and_can_not_be_read_back_is_unknown(table):
    cannot(table, "read_bytes")
    fail = table.store.then
    table.store.then = lambda: (fail(), table.clock.sleep(BUDGET_S + 1))
    txn, commit = append(table)
    with pytest.raises(CommitOutcomeUnknownError):
        commit()
    assert txn.outcome is CommitOutcome.UNKNOWN


def test_a_commit_without_commit_info_is_known_by_its_bytes(make_table):
    table = make_table(store=Twice(MemoryLogStore({})), options=NO_INFO).create()
    _, commit = append(table)
    assert commit().version == 1
    assert adds(table) == ["ours"]


@pytest.mark.parametrize(
    ("then", "error"),
    [
        (lambda table: cannot(table, "list_from"), StorageError),
        (
            lambda table: setattr(table.store, "then", lambda: table.clock.sleep(BUDGET_S + 1)),
            MaxCommitAttemptsExceededError,
        ),
    ],
    ids=["nothing is listed", "late"],
)
def test_a_commit_that_met_another_is_not_in_the_table(table, then, error):
    txn, commit = append(table)
    other = CommitInfo(txn_id="other", is_blind_append=True)
    table.poke(1, [other, table.add("theirs")])
    then(table)
    with pytest.raises(error):
        commit()
    assert txn.outcome is CommitOutcome.NOT_COMMITTED
    table.store.clear()
    assert adds(table) == ["theirs"]


def test_the_files_of_such_a_commit_stay(tmp_path):
    clock = ManualClock()
    store = TwiceOnDisk()
    log = DeltaLog(str(tmp_path / "t"), store, clock=clock)
    log.append(pa.table({"id": [1]}))
    store.then = lambda: clock.sleep(BUDGET_S + 1)
    assert log.append(pa.table({"id": [2]})).version == 1
    fresh = DeltaLog.for_path(str(tmp_path / "t"))
    assert sorted(fresh.to_arrow()["id"].to_pylist()) == [1, 2]
