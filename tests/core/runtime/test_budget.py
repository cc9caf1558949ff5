import logging
import threading

import pytest

from optimist.core import DeltaLog
from optimist.core.errors import CommitOutcomeUnknownError, OptimistError, StorageError
from optimist.core.options.engine import EngineOptions
from optimist.core.plugins.logstore import PutOutcome
from optimist.core.protocol.actions import Metadata, Protocol
from optimist.core.runtime import budget
from optimist.core.runtime.budget import (
    Budget,
    current_budget,
    is_budget_spent,
    try_limit_s,
    within_budget,
)
from optimist.core.runtime.clock import SystemClock
from optimist.core.runtime.read_ahead import read_ahead
from optimist.core.runtime.retry import Patience, call_once, call_patiently
from optimist.core.schema.types import StructType, schema_to_json
from optimist.core.testing import ManualClock
from optimist.core.transaction.conflicts.operations import Operation
from optimist.logstores.memory import MemoryLogStore


def no_answer(**fields):
    return StorageError(
        "Cannot read x: no answer.",
        kind="OPTIMIST_STORE_NO_ANSWER",
        **{"retryable": True, **fields},
    )


class Silent:
    """A server that takes requests and never answers: each costs its time-out."""

    def __init__(self, clock, timeout_s=60.0):
        self.clock = clock
        self.timeout_s = timeout_s
        self.waited = []

    def __call__(self):
        wait_s = try_limit_s(self.timeout_s)
        self.waited.append(wait_s)
        self.clock.advance(wait_s)
        raise no_answer()


class SilentStore(MemoryLogStore):
    """A store whose server has gone silent, once it is told so; it retries as stores do."""

    def __init__(self, clock):
        super().__init__()
        self.clock = clock
        self.is_silent = False

    def _ask(self, call):
        silent = Silent(self.clock)
        return call_patiently(silent if self.is_silent else call, Patience(), self.clock)

    def read_bytes(self, path):
        return self._ask(lambda: super(SilentStore, self).read_bytes(path))

    def list_from(self, path):
        return self._ask(lambda: super(SilentStore, self).list_from(path))

    def put_if_absent(self, path, data):
        if not self.is_silent:
            return super().put_if_absent(path, data)
        try:
            return call_once(Silent(self.clock), self.clock, size_bytes=len(data))
        except StorageError as error:
            if error.kind == "OPTIMIST_STORE_BUDGET_SPENT":
                raise
            return PutOutcome.UNKNOWN


def test_request_waits_a_little_first_then_longer_and_never_beyond_the_budget():
    clock = ManualClock()
    silent = Silent(clock)
    with pytest.raises(StorageError) as caught:
        call_patiently(silent, Patience(base_s=0), clock)
    assert caught.value.kind == "OPTIMIST_STORE_BUDGET_SPENT"
    assert silent.waited == [10, 20, 40, 50]
    assert clock.monotonic_s() == 120


def test_what_was_configured_is_never_exceeded():
    clock = ManualClock()
    silent = Silent(clock, timeout_s=15)
    with pytest.raises(StorageError):
        call_patiently(silent, Patience(base_s=0), clock)
    assert silent.waited == [10, 15, 15, 15, 15]


def test_one_budget_holds_for_all_requests_of_an_operation():
    clock = ManualClock()
    with within_budget(clock, 60) as outer:
        with pytest.raises(StorageError):
            call_patiently(Silent(clock), Patience(base_s=0), clock)
        assert outer.is_spent
        assert is_budget_spent()
        never = pytest.fail
        with pytest.raises(StorageError) as caught:
            call_patiently(lambda: never("a request beyond the budget"), Patience(), clock)
        assert caught.value.kind == "OPTIMIST_STORE_BUDGET_SPENT"
        assert "no answer" in str(caught.value)
    assert clock.monotonic_s() == 60
    assert not is_budget_spent()


def test_pauses_count_and_what_the_store_serves_does_not():
    clock = ManualClock()
    failures = [no_answer(), no_answer()]

    def call():
        clock.advance(7)
        if failures:
            raise failures.pop()
        return "answer"

    with within_budget(clock, 120) as total:
        assert call_patiently(call, Patience(), clock) == "answer"
        slept_s = sum(clock.sleeps[:1])  # the pause before the try that was served is not lost
        assert total.left_s == pytest.approx(120 - 14 - slept_s)
        clock.advance(1_000)
        assert call_patiently(call, Patience(), clock) == "answer"


def test_time_lost_side_by_side_is_counted_once():
    clock = ManualClock()
    total = Budget(clock, 100)
    clock.advance(10)
    total.lose(0, no_answer())
    total.lose(2, no_answer())
    clock.advance(5)
    total.lose(9, no_answer())
    assert total.left_s == 85
    total.close()


@pytest.mark.parametrize("error", [no_answer(retryable=False), ValueError("a bug")])
def test_what_is_not_retryable_is_raised_at_once(error):
    tries = []

    def call():
        tries.append(1)
        raise error

    with pytest.raises(type(error)):
        call_patiently(call, Patience(), ManualClock())
    assert len(tries) == 1


def test_create_leaves_time_to_read_back_what_became_of_it():
    clock = ManualClock()
    small, large = Silent(clock), Silent(clock)
    with within_budget(clock, 60):
        with pytest.raises(StorageError):
            call_once(small, clock, size_bytes=1_000)
        with pytest.raises(StorageError):
            call_once(large, clock, size_bytes=100 << 20)
        assert not is_budget_spent()
    assert small.waited == [5]
    assert large.waited == [27.5]


def test_threads_that_read_ahead_count_on_the_same_budget():
    clock = ManualClock()

    def budget_of(_):
        return current_budget()

    with within_budget(clock, 60) as total:
        assert set(read_ahead(budget_of, range(10), threads=3, ahead=4)) == {total}


def test_first_retry_and_every_ten_seconds_are_told(caplog):
    clock = ManualClock()
    with caplog.at_level(logging.WARNING), pytest.raises(StorageError):
        call_patiently(Silent(clock, timeout_s=5), Patience(max_tries=9, base_s=0), clock)
    told = [each.getMessage() for each in caplog.records if "Trying again" in each.getMessage()]
    assert [message.partition("Trying again; ")[2][:5] for message in told] == [
        "115 s",
        "105 s",
        "95 s ",
        "85 s ",
        "75 s ",
    ]


def test_long_wait_is_told_of_while_it_lasts(caplog, monkeypatch):
    monkeypatch.setattr(budget, "TELL_EVERY_S", 0.01)
    is_told = threading.Event()

    class Listener(logging.Handler):
        def emit(self, record):
            if "has not answered for" in record.getMessage():
                is_told.set()

    listener = Listener()
    logging.getLogger("optimist.core.runtime.budget").addHandler(listener)
    tries = []

    def call():
        tries.append(1)
        if len(tries) == 1:
            raise no_answer()
        assert is_told.wait(30), "nothing was told while the second request was waited for"

    try:
        call_patiently(call, Patience(base_s=0), SystemClock())
    finally:
        logging.getLogger("optimist.core.runtime.budget").removeHandler(listener)
    assert len(tries) == 2


# The engine


@pytest.fixture
def log():
    clock = ManualClock()
    options = EngineOptions(storage_budget_s=100.0)
    return DeltaLog("memory://t", SilentStore(clock), options, clock=clock)


@pytest.mark.parametrize(
    "ask",
    [
        DeltaLog.table_exists,
        DeltaLog.start_transaction,
        DeltaLog.history,
        DeltaLog.snapshot,
        lambda log: log.snapshot(7),
        lambda log: log.resolve_commit("txn"),
    ],
    ids=["exists", "transaction", "history", "snapshot", "version", "resolve"],
)
def test_no_operation_outlives_its_budget(log, ask):
    log.store.is_silent = True
    with pytest.raises(StorageError) as caught:
        ask(log)
    assert caught.value.kind == "OPTIMIST_STORE_BUDGET_SPENT"
    assert log.clock.monotonic_s() <= 101


def test_commit_whose_put_is_never_answered_ends_within_its_budget(log):
    transaction = log.start_transaction()
    log.store.is_silent = True
    with pytest.raises(OptimistError) as caught:
        transaction.commit(
            [Protocol(1, 2), Metadata(id="t", schema_string=schema_to_json(StructType(())))],
            Operation.write("Append"),
        )
    assert isinstance(caught.value, CommitOutcomeUnknownError)
    assert log.clock.monotonic_s() <= 101
