"""Processes forked from one whose threads commit: nothing of what they inherit may hang."""

from __future__ import annotations

import ast
import os
import signal
import subprocess
import sys
import threading

import pyarrow as pa
import pytest

from optimist.core import DeltaLog
from optimist.core.errors import UsageError
from optimist.core.forking import (
    ForkSafeLock,
    PerProcess,
    closed_in_child,
    renew_in_child,
)
from optimist.core.options.engine import EngineOptions
from optimist.core.runtime.clock import SystemClock
from optimist.core.testing.forked_children import run_in_forked_children
from optimist.core.transaction.commit_lock import commit_lock
from optimist.core.transaction.hooks.background import BackgroundWork
from optimist.locks import InProcessLease

IN_GROUPS = {"spark.optimist.commit.group.enabled": "true"}
IN_BACKGROUND = {"spark.optimist.postCommit.background": "true"}


def in_a_child(work) -> None:
    """Run it in one forked child, with no thread at work but those of the caller."""
    run_in_forked_children(lambda _: work(), children=1)


def rows(name: str, number: int) -> pa.Table:
    return pa.table({"who": [name], "number": [number]})


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    "options", [{}, IN_BACKGROUND, IN_GROUPS], ids=["", "background", "groups"]
)
def test_children_forked_while_threads_commit_go_on_with_the_handle_they_inherit(tmp_path, options):
    path = str(tmp_path / "table")
    log = DeltaLog.for_path(path, options)
    log.append(rows("first", 0))

    def child(number: int) -> None:
        log.append(rows("child", number))
        log.wait_for_background_work()
        other = DeltaLog.for_path(
            f"{path}/", {**options, "spark.optimist.conflict.granularity": "file"}
        )
        other.append(rows("child", number + 100))
        assert log.count("who = 'child'") >= 2

    rounds = run_in_forked_children(
        child, meanwhile=lambda number: log.append(rows("parent", number)), children=20
    )
    log.wait_for_background_work()
    found = log.to_arrow()
    names = found["who"].to_pylist()
    told = sorted(zip(names, found["number"].to_pylist(), strict=True))
    assert told == sorted(
        [("first", 0)]
        + [("child", number + extra) for number in range(20) for extra in (0, 100)]
        + [("parent", number) for number in range(rounds)]
    )


def test_a_lock_that_another_thread_holds_is_free_in_a_child():
    lock, taken, over = ForkSafeLock(), threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            taken.set()
            over.wait(60)

    holder = threading.Thread(target=hold)
    holder.start()
    taken.wait()
    try:
        in_a_child(lambda: lock.__enter__())
    finally:
        over.set()
        holder.join()


def test_a_lock_that_the_forking_thread_holds_is_held_in_the_child_too():
    lock = ForkSafeLock()

    def give_back() -> None:
        assert lock.is_held_here
        lock.__exit__(None, None, None)
        assert not lock.is_held_here
        with lock:
            pass

    with lock:
        in_a_child(give_back)
        assert lock.is_held_here


def test_a_lock_is_acquired_again_by_its_holder_and_by_nobody_else():
    lock, seen = ForkSafeLock(), []
    with lock, lock:
        other = threading.Thread(target=lambda: seen.append(lock.acquire(blocking=False)))
        other.start()
        other.join()
    assert seen == [False]
    assert not lock.is_held_here


@pytest.mark.timeout(method="thread")  # the other method needs the timer that is used here
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_no_interrupt_leaves_a_lock_locked():
    """Every later user of it would wait for ever, such as the next cell of a notebook.

    Python drops an interrupt that strikes a callback of a weak reference. So no try waits for it.
    """

    class StruckError(Exception):
        pass

    def interrupt(*_: object) -> None:
        raise StruckError

    before = signal.signal(signal.SIGALRM, interrupt)
    left_locked = 0
    try:
        for _ in range(300):
            lock = ForkSafeLock()
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.0003)
                for _ in range(100_000):
                    with lock:
                        pass
            except StruckError:
                left_locked += lock.is_held_here
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert left_locked == 0


def test_a_value_of_a_process_is_made_anew_in_a_child_and_the_old_one_is_not_destroyed():
    class Connection:
        def __del__(self) -> None:
            closed.append(os.getpid())

    closed: list[int] = []
    held = PerProcess(Connection)
    of_parent = id(held.get())
    assert held.get() is held.made

    def look() -> None:
        assert held.made is None
        assert id(held.get()) != of_parent
        assert closed == []

    in_a_child(look)
    assert id(held.get()) == of_parent


def test_what_was_to_be_renewed_is_forgotten_with_its_owner():
    class Owner:
        pass

    renewed: list[str] = []
    kept, gone = Owner(), Owner()
    renew_in_child(kept, lambda _: renewed.append("kept"))
    renew_in_child(gone, lambda _: renewed.append("gone"))
    del gone
    in_a_child(lambda: os._exit(1) if renewed != ["kept"] else None)


def test_a_child_holds_no_copy_of_a_file_that_another_thread_has_locked():
    reading, writing = os.pipe()
    opened, over = threading.Event(), threading.Event()

    def hold() -> None:
        with closed_in_child(reading):
            opened.set()
            over.wait(60)

    holder = threading.Thread(target=hold)
    holder.start()
    opened.wait()

    def look() -> None:
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(reading)

    try:
        in_a_child(look)
        os.fstat(reading)
    finally:
        over.set()
        holder.join()
        os.close(reading)
        os.close(writing)


def test_a_child_waits_for_none_of_its_parents_background_work(tmp_path):
    work, over = BackgroundWork(), threading.Event()
    running, waiting = work.submit(lambda: over.wait(60)), work.submit(lambda: 2)

    def look() -> None:
        assert work.wait()
        assert running.cancelled()
        assert waiting.cancelled()
        assert work.submit(lambda: 3).result() == 3

    try:
        in_a_child(look)
        assert not waiting.done()
    finally:
        over.set()
    assert waiting.result(60) == 2


def test_a_child_is_told_that_it_can_not_know_how_its_parents_hook_ends(tmp_path):
    log, over = DeltaLog.for_path(str(tmp_path), IN_BACKGROUND), threading.Event()
    log._commits.background.submit(lambda: over.wait(60))
    result = log.append(rows("parent", 0))

    def look() -> None:
        failed = result.wait_for_hooks().failed_hooks
        assert failed
        assert {type(hook.error) for hook in failed} == {UsageError}
        assert {hook.error.kind for hook in failed} == {"OPTIMIST_FORKED_HOOK"}

    try:
        in_a_child(look)
    finally:
        over.set()
    assert not result.wait_for_hooks(60).failed_hooks


def test_a_lease_of_the_process_that_a_thread_of_the_parent_holds_is_free_in_a_child():
    lease = InProcessLease()
    grant = lease.try_acquire("table", ttl_s=3600)

    def take() -> None:
        mine = lease.try_acquire("table", ttl_s=3600)
        assert mine.fencing_number > grant.fencing_number

    in_a_child(take)
    lease.release(grant)


def test_a_child_does_not_take_the_commit_lock_of_its_parents_thread_for_its_own():
    lease, taken, over = InProcessLease(), threading.Event(), threading.Event()
    given = {"lease": lease, "options": EngineOptions(), "clock": SystemClock()}

    def hold() -> None:
        with commit_lock("/table/_delta_log", **given) as guard:
            guard.ensure_held()
            taken.set()
            over.wait(60)

    holder = threading.Thread(target=hold)
    holder.start()
    taken.wait()

    def commit() -> None:
        with commit_lock("/table/_delta_log", **given) as guard:
            guard.ensure_held()

    try:
        in_a_child(commit)
    finally:
        over.set()
        holder.join()


def test_the_first_commit_and_the_first_read_load_modules_only_while_no_fork_can_happen(tmp_path):
    """A child that is forked while a thread imports a module waits for it for ever."""
    script = f"""
import importlib.abc
import sys
import pyarrow as pa
from optimist.core import DeltaLog
from optimist.core.forking import NO_FORK_MEANWHILE


class Watch(importlib.abc.MetaPathFinder):
    loaded = set()

    def find_spec(self, name, path, target=None):
        if not NO_FORK_MEANWHILE.is_held_here:
            self.loaded.add(name.partition(".")[0])


rows = pa.table({{"a": [1], "p": ["x"]}})
log = DeltaLog.for_path({str(tmp_path / "table")!r}, {IN_BACKGROUND!r})
sys.meta_path.insert(0, Watch())
for _ in range(12):
    log.append(rows)
log.wait_for_background_work()
log.count("a > 1")
log.to_arrow("a = 1 AND p = 'x'")
log.optimize()
log.delete("a = 1")
print(sorted(Watch.loaded))
"""
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120
    )
    # The email package is that of importlib.metadata, which finds the store.
    assert set(ast.literal_eval(run.stdout)) <= {"email"}
