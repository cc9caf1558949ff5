"""The commit lock with a lease: one commit loop at a time, and none after it lapsed."""

from __future__ import annotations

import subprocess
import sys
import threading
from contextlib import suppress

import pyarrow as pa
import pytest

from optimist.core import DeltaLog
from optimist.core.errors import (
    CommitOutcomeUnknownError,
    ConfigError,
    LeaseLapsedError,
    StorageError,
)
from optimist.core.log.names import commit_path
from optimist.core.options.engine import EngineOptions
from optimist.core.plugins.lease import Lease, LeaseGrant, lapsed
from optimist.core.plugins.logstore import PutOutcome
from optimist.core.protocol.actions import CommitInfo
from optimist.core.testing import Fault, FaultyLogStore, ManualClock, Pause, When
from optimist.core.transaction.commit_lock import commit_lock
from optimist.core.transaction.conflicts.operations import Operation
from optimist.logstores import MemoryLogStore

WRITE = Operation.write("Append")
LOCKED = {"optimist.commit.lock.enabled": "true"}


class TestLease(Lease):
    """One lease in memory, by a manual clock; says what was asked of it."""

    __test__ = False

    def __init__(self, clock):
        super().__init__()
        self.clock = clock
        self.holder = None
        self.number = 0
        self.asked = []

    def try_acquire(self, name, *, ttl_s):
        self.asked.append("try_acquire")
        if self.holder is not None and self.clock.now_ms() < self.holder.deadline_ms:
            return None
        self.number += 1
        self.holder = LeaseGrant(name, f"owner-{self.number}", self.number, self._deadline(ttl_s))
        return self.holder

    def renew(self, grant, *, ttl_s):
        self.asked.append("renew")
        self._check(grant)
        self.holder = LeaseGrant(
            grant.name, grant.owner, grant.fencing_number, self._deadline(ttl_s)
        )
        return self.holder

    def release(self, grant):
        self.asked.append("release")
        if self.holder is not None and self.holder.owner == grant.owner:
            self.holder = None

    def ensure_held(self, grant):
        self.asked.append("ensure_held")
        self._check(grant)

    def _check(self, grant):
        held = self.holder is not None and self.holder.owner == grant.owner
        if not held or self.clock.now_ms() >= self.holder.deadline_ms:
            raise lapsed(grant)

    def _deadline(self, ttl_s):
        return self.clock.now_ms() + round(ttl_s * 1000)


class Setting:
    """A table whose log is at hand, with a lease and a store that can be made to fail."""

    def __init__(self, make_table, options=None):
        self.clock = ManualClock()
        self.store = FaultyLogStore(MemoryLogStore({}))
        self.lease = TestLease(self.clock)
        self.table = make_table(store=self.store, clock=self.clock).create()
        given = EngineOptions.from_options({**LOCKED, **(options or {})})
        self.log = DeltaLog(self.table.path, self.store, given, lease=self.lease, clock=self.clock)

    def start(self):
        txn = self.log.start_transaction()
        self.store.clear()
        self.lease.asked.clear()
        return txn

    def another_commits(self, version):
        def poke(_path):
            actions = [
                CommitInfo(txn_id=f"other-{version}", is_blind_append=True),
                self.table.add(f"other-{version}"),
            ]
            self.table.poke(version, actions)

        return poke

    @property
    def version(self):
        return DeltaLog(self.table.path, self.store, clock=self.clock).snapshot().version


@pytest.fixture
def setting(make_table):
    return Setting(make_table)


def test_commit_takes_the_lease_looks_before_the_put_and_gives_it_back(setting):
    txn = setting.start()
    result = txn.commit([setting.table.add("a")], WRITE)
    assert result.version == 1
    assert setting.lease.asked == ["try_acquire", "ensure_held", "release"]
    assert setting.lease.holder is None


def test_lease_is_for_the_log_by_its_resolved_path(setting):
    names = []
    acquire = setting.lease.try_acquire
    setting.lease.try_acquire = lambda name, *, ttl_s: (
        names.append((name, ttl_s)) or acquire(name, ttl_s=ttl_s)
    )
    setting.start().commit([setting.table.add("a")], WRITE)
    assert names == [(setting.store.resolve_path(setting.log.log_path), 60.0)]


def test_lease_is_renewed_before_every_attempt_but_the_first(setting):
    txn = setting.start()
    setting.store.plan(
        Pause("put_if_absent", When.BEFORE, lambda path: setting.another_commits(1)(path))
    )
    assert txn.commit([setting.table.add("a")], WRITE).version == 2
    first, second = ["try_acquire", "ensure_held"], ["renew", "ensure_held", "release"]
    assert setting.lease.asked == first + second


def test_lease_is_looked_at_before_every_put_of_one_attempt(setting):
    txn = setting.start()
    setting.store.plan(Fault("put_if_absent", When.BEFORE, times=2))
    assert txn.commit([setting.table.add("a")], WRITE).version == 1
    assert setting.lease.asked == ["try_acquire", *["ensure_held"] * 3, "release"]


def test_lapsed_lease_raises_before_the_write(setting):
    txn = setting.start()
    check = setting.lease.ensure_held

    def sleep_too_long(grant):
        setting.clock.advance(61)
        check(grant)

    setting.lease.ensure_held = sleep_too_long
    with pytest.raises(LeaseLapsedError) as caught:
        txn.commit([setting.table.add("a")], WRITE)
    assert caught.value.kind == "OPTIMIST_LEASE_LAPSED"
    assert setting.store.counts["put_if_absent"] == 0
    assert setting.version == 0


def test_lease_that_lapsed_while_winners_were_read_stops_the_next_attempt(setting):
    txn = setting.start()

    def lose_and_sleep(path):
        setting.another_commits(1)(path)
        setting.clock.advance(61)

    setting.store.plan(Pause("put_if_absent", When.BEFORE, lose_and_sleep))
    with pytest.raises(LeaseLapsedError):
        txn.commit([setting.table.add("a")], WRITE)
    assert setting.lease.asked == ["try_acquire", "ensure_held", "renew", "release"]
    assert setting.version == 1


def test_next_holder_keeps_the_lease_when_the_lapsed_one_gives_up(setting):
    txn = setting.start()
    taken = []

    def sleep_while_another_takes_it(path):
        setting.another_commits(1)(path)
        setting.clock.advance(61)
        taken.append(setting.lease.try_acquire("x", ttl_s=60))

    setting.store.plan(Pause("put_if_absent", When.BEFORE, sleep_while_another_takes_it))
    with pytest.raises(LeaseLapsedError):
        txn.commit([setting.table.add("a")], WRITE)
    assert setting.lease.holder == taken[0]


def test_lease_that_lapsed_after_a_lost_answer_leaves_the_outcome_open(setting):
    txn = setting.start()

    def vanish(path):
        setting.clock.advance(61)

    setting.store.plan(
        Pause("put_if_absent", When.BEFORE, vanish), Fault("put_if_absent", When.BEFORE)
    )
    with pytest.raises(CommitOutcomeUnknownError):
        txn.commit([setting.table.add("a")], WRITE)
    assert setting.version == 0


def test_waiting_for_the_lease_is_jittered_and_ends(setting):
    held = setting.lease.try_acquire("x", ttl_s=5.0)
    txn = setting.start()
    assert txn.commit([setting.table.add("a")], WRITE).version == 1
    assert setting.clock.now_ms() >= held.deadline_ms
    pauses = setting.clock.sleeps
    assert len(set(pauses)) == len(pauses) > 3
    assert max(pauses) <= 1.0


def test_lease_that_others_hold_for_the_whole_budget_is_one_error(make_table):
    setting = Setting(make_table, {"optimist.commit.retry.budgetSeconds": "20"})
    held = setting.lease.try_acquire("x", ttl_s=1000.0)
    txn = setting.start()
    before = setting.clock.monotonic_s()
    with pytest.raises(StorageError) as caught:
        txn.commit([setting.table.add("a")], WRITE)
    assert caught.value.kind == "OPTIMIST_COMMIT_LOCK_BUSY"
    assert caught.value.retryable
    assert setting.clock.monotonic_s() - before == pytest.approx(20)
    assert setting.store.counts["put_if_absent"] == 0
    assert setting.lease.holder == held
    assert "release" not in setting.lease.asked


def test_keeper_that_fails_before_the_grant_gives_nothing_back(setting):
    txn = setting.start()

    def fail(name, *, ttl_s):
        raise StorageError("no answer", kind="OPTIMIST_STORE_NO_ANSWER")

    setting.lease.try_acquire = fail
    with pytest.raises(StorageError, match="no answer"):
        txn.commit([setting.table.add("a")], WRITE)
    assert setting.lease.asked == []
    assert setting.version == 0


@pytest.mark.parametrize("error", [StorageError("down", kind="K"), RuntimeError("broken")])
def test_failure_to_give_the_lease_back_does_not_fail_the_commit(setting, error, caplog):
    txn = setting.start()

    def fail(grant):
        raise error

    setting.lease.release = fail
    assert txn.commit([setting.table.add("a")], WRITE).version == 1
    assert "could not be released" in caplog.text


def test_lease_is_given_back_when_the_commit_fails(setting):
    txn = setting.start()
    setting.store.plan(Fault("put_if_absent", When.BEFORE, KeyboardInterrupt()))
    with suppress(KeyboardInterrupt):
        txn.commit([setting.table.add("a")], WRITE)
    assert setting.lease.asked[-1] == "release"
    assert setting.lease.holder is None


def test_large_commit_holds_the_lease_too(setting):
    txn = setting.start()
    assert txn.commit_large([setting.table.add("a")], WRITE).version == 1
    assert setting.lease.asked == ["try_acquire", "ensure_held", "release"]


def test_store_that_needs_no_lock_takes_no_lease(make_table):
    setting = Setting(make_table, {"optimist.commit.lock.enabled": "false"})
    assert setting.start().commit([setting.table.add("a")], WRITE).version == 1
    assert setting.lease.asked == []


def test_thread_that_comes_again_keeps_the_lease_it_has():
    clock = ManualClock()
    lease = TestLease(clock)
    arguments = {"lease": lease, "options": EngineOptions(), "clock": clock}
    with commit_lock("/t/_delta_log", **arguments) as outer:
        with commit_lock("/t/_delta_log", **arguments) as inner:
            assert inner is outer
        outer.ensure_held()
    assert lease.asked == ["try_acquire", "ensure_held", "release"]


def test_of_many_threads_of_one_process_only_one_asks_for_the_lease():
    clock = ManualClock()
    lease = TestLease(clock)
    barrier = threading.Barrier(8)
    inside, most = [], []

    def work():
        barrier.wait(30)
        for _ in range(20):
            with commit_lock("/t/_delta_log", lease=lease, options=EngineOptions(), clock=clock):
                inside.append(1)
                most.append(len(inside))
                inside.pop()

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert max(most) == 1
    assert len(most) == 160
    assert lease.asked == ["try_acquire", "release"] * 160


# Through the conf


def test_lease_of_the_conf_is_used_on_a_store_with_visible_partial_writes(tmp_path):
    options = {
        "spark.optimist.store.lease": "optimist.locks.file_lease:FileLease",
        "spark.optimist.store.file-lease.directory": str(tmp_path / "leases"),
    }
    log = DeltaLog.for_path(str(tmp_path / "t"), options)
    for number in range(3):
        log.append(pa.table({"number": [number]}))
    (state,) = (tmp_path / "leases").glob("*.lease")
    text = state.read_text()
    assert '"fencingNumber": 3' in text
    assert '"owner": null' in text


def test_lease_that_the_conf_misspells_is_refused_when_the_table_is_opened(tmp_path):
    with pytest.raises(ConfigError) as caught:
        DeltaLog.for_path(str(tmp_path), {"optimist.store.lease": "fiel"})
    assert caught.value.kind == "OPTIMIST_UNKNOWN_LOCK"


def test_lease_duration_below_a_second_is_refused():
    with pytest.raises(ConfigError) as caught:
        EngineOptions.from_options({"optimist.commit.lock.leaseSeconds": "0.5"})
    assert caught.value.kind == "OPTIMIST_INVALID_OPTION"


WRITER = """
import sys
import pyarrow as pa
from optimist.core import DeltaLog
path, leases, writer, appends = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
log = DeltaLog.for_path(path, {
    "optimist.store.lease": "optimist.locks.file_lease:FileLease",
    "optimist.store.file-lease.directory": leases,
})
sys.stdin.readline()
attempts = 0
for number in range(appends):
    attempts += log.append(pa.table({"writer": [writer], "number": [number]})).attempts
print(attempts)
"""


@pytest.mark.again
def test_processes_that_share_a_lease_lose_no_append(tmp_path):
    table, leases = str(tmp_path / "t"), str(tmp_path / "leases")
    DeltaLog.for_path(table).append(pa.table({"writer": [-1], "number": [-1]}))
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, table, leases, str(writer), "5"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for writer in range(4)
    ]
    ended = [writer.communicate("go\n", timeout=200) for writer in writers]
    assert [writer.returncode for writer in writers] == [0] * 4, ended
    log = DeltaLog.for_path(table)
    assert log.snapshot().version == 20
    assert len({record.info.txn_id for record in log.history()}) == 21
    (state,) = (tmp_path / "leases").glob("*.lease")
    assert '"fencingNumber": 20' in state.read_text()


def test_put_of_the_store_still_decides_where_the_lease_does_not(setting):
    txn = setting.start()
    setting.another_commits(1)("")
    assert (
        setting.store.inner.put_if_absent(commit_path(setting.log.log_path, 1), b"")
        is PutOutcome.EXISTS
    )
    assert txn.commit([setting.table.add("a")], WRITE).version == 2
