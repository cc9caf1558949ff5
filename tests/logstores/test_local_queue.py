"""Writers of one log on one machine take turns, and nobody depends on it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import subprocess
import sys
import threading
from functools import partial

import pyarrow as pa
import pytest

from optimist.core import DeltaLog
from optimist.core.testing.logstore_races import run_in_processes
from optimist.logstores import LocalLogStore
from optimist.logstores.local.queue import turn_at

HOLD = """
import fcntl, os, sys, time
held = os.open(sys.argv[1], os.O_RDONLY)
fcntl.flock(held, fcntl.LOCK_EX)
print("held", flush=True)
time.sleep(600)
"""


def is_free(directory) -> bool:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True


@contextlib.contextmanager
def holding(directory):
    """Another process that has its turn and does not end it."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, directory], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout.readline() == "held\n"
            yield process
        finally:
            process.kill()  # one that was stopped would be waited for for ever


@pytest.fixture
def holder(tmp_path):
    with holding(str(tmp_path)) as process:
        yield process


def test_a_turn_is_had_alone_and_leaves_nothing_behind(tmp_path):
    with turn_at(str(tmp_path), timeout_s=60):
        assert not is_free(tmp_path)
    assert is_free(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_who_waits_is_next_when_the_holder_dies(tmp_path, holder):
    waiting, had = threading.Event(), threading.Event()

    def wait() -> None:
        waiting.set()
        with turn_at(str(tmp_path), timeout_s=60):
            had.set()

    thread = threading.Thread(target=wait)
    thread.start()
    waiting.wait(60)
    assert not had.is_set()
    holder.kill()
    thread.join(60)
    assert had.is_set()
    assert is_free(tmp_path)


def test_a_commit_does_without_its_turn_where_the_holder_was_stopped(tmp_path, monkeypatch, caplog):
    log = DeltaLog(str(tmp_path / "t"), LocalLogStore())
    log.append(pa.table({"id": [1]}))
    monkeypatch.setattr("optimist.core.transaction.commit_lock._LONGEST_WAIT_S", 0.05)
    with holding(log.log_path) as process:
        process.send_signal(signal.SIGSTOP)
        log.append(pa.table({"id": [2]}))
    assert "this one no longer waits" in caplog.text
    assert log.count() == 2
    with turn_at(log.log_path, timeout_s=60):  # the one that was given up came and went
        assert not is_free(log.log_path)


def test_where_there_is_no_directory_nobody_waits(tmp_path):
    with turn_at(str(tmp_path / "gone"), timeout_s=60):
        assert list(tmp_path.iterdir()) == []


def test_a_thread_that_has_its_turn_may_commit_once_more(tmp_path):
    log = DeltaLog(str(tmp_path), LocalLogStore())
    log.append(pa.table({"id": [1]}))
    with log.start_transaction().lock_commit_if_enabled():
        assert not is_free(log.log_path)
        log.append(pa.table({"id": [2]}))
    assert is_free(log.log_path)


def append_often(log: DeltaLog, *, writer: int) -> list[int]:
    return [log.append(pa.table({"id": [writer]})).attempts for _ in range(10)]


def test_writers_in_many_processes_lose_no_race_twice(tmp_path):
    path = str(tmp_path / "t")
    DeltaLog.for_path(path).append(pa.table({"id": [-1]}))
    writers = [{"writer": writer} for writer in range(6)]
    attempts = run_in_processes(partial(DeltaLog.for_path, path), append_often, writers)
    assert max(max(each) for each in attempts) <= 2
    assert DeltaLog.for_path(path).count() == 61


class CountingStore(LocalLogStore):
    def __init__(self) -> None:
        super().__init__()
        self.listings = 0

    def list_from(self, path):
        self.listings += 1
        return super().list_from(path)


def test_commits_look_for_the_next_versions_by_name_and_list_no_directory(tmp_path):
    store = CountingStore()
    log, other = (DeltaLog(str(tmp_path), kind) for kind in (store, LocalLogStore()))
    log.append(pa.table({"id": [0]}))
    store.listings = 0
    for number in range(4):
        other.append(pa.table({"id": [number]}))
        transaction = log.start_transaction()
        other.append(pa.table({"id": [number]}))
        log.append(pa.table({"id": [number]}))
        assert transaction.read_version == 3 * number + 1
    assert store.listings == 0
    assert log.snapshot().version == 12


def test_a_handle_that_is_far_behind_lists_commits_and_checkpoints_once(tmp_path):
    store = CountingStore()
    log, other = (DeltaLog(str(tmp_path), kind) for kind in (store, LocalLogStore()))
    log.append(pa.table({"id": [0]}))
    log.snapshot()
    store.listings = 0
    for number in range(105):
        other.append(pa.table({"id": [number]}))
    assert log.snapshot().version == 105
    assert store.listings == 2
