"""Post-commit work in the background: it fails no commit, delays none, and is waited for."""

import logging
import pickle
import subprocess
import sys
import threading
from concurrent.futures import CancelledError

import pytest

from optimist.core.errors import PostCommitHookError, StorageError
from optimist.core.log.names import checksum_name, classic_checkpoint_name
from optimist.core.testing import ManualClock
from optimist.core.transaction.conflicts.operations import Operation
from optimist.core.transaction.hooks import default_hooks
from optimist.core.transaction.hooks.background import BackgroundWork
from optimist.core.transaction.hooks.default_hooks import CheckpointHook
from optimist.logstores import MemoryLogStore

PATIENCE_S = 30
BACKGROUND = {"optimist.postCommit.background": "true"}
OFTEN = {"delta.checkpointInterval": "2"}


class GatedStore(MemoryLogStore):
    """Lets nothing but commits be created until the gate opens."""

    def __init__(self):
        super().__init__(clock=ManualClock())
        self.gate, self.is_waiting = threading.Event(), threading.Event()
        self.failing = False

    def put_if_absent(self, path, data):
        if not path.endswith(".json"):
            self.is_waiting.set()
            assert self.gate.wait(PATIENCE_S)
            if self.failing:
                raise StorageError("the disk is full", kind="OPTIMIST_STORAGE", retryable=False)
        return super().put_if_absent(path, data)


@pytest.fixture
def table(make_table):
    return make_table(store=GatedStore(), options=BACKGROUND, configuration=OFTEN).create()


def commit(table, name):
    return table.log.start_transaction().commit([table.add(name)], Operation("WRITE"))


def names(table):
    return {status.name for status in table.store.list_from(f"{table.log.log_path}/")}


def test_a_commit_returns_before_its_checkpoint_is_written(table):
    results = [commit(table, f"f{number}") for number in range(2)]
    assert [result.version for result in results] == [1, 2]
    assert classic_checkpoint_name(2) not in names(table)
    assert all(hook.is_pending for result in results for hook in result.hooks)
    assert not table.log.wait_for_background_work(0.0)
    table.store.gate.set()
    assert table.log.wait_for_background_work(PATIENCE_S)
    assert {classic_checkpoint_name(2), checksum_name(1), checksum_name(2)} <= names(table)
    settled = results[1].wait_for_hooks(PATIENCE_S)
    assert [hook.name for hook in settled.hooks] == [
        "Write Version Checksum",
        "Post Commit Checkpoint Trigger",
    ]
    assert settled.failed_hooks == ()
    assert not any(hook.is_pending for hook in settled.hooks)


def test_the_checkpoint_is_of_the_committed_version_though_others_have_followed(table):
    for number in range(3):
        commit(table, f"f{number}")
    table.store.gate.set()
    assert table.log.wait_for_background_work(PATIENCE_S)
    assert classic_checkpoint_name(2) in names(table)
    assert classic_checkpoint_name(3) not in names(table)
    assert table.live() == ["f0", "f1", "f2"]


def test_a_failure_lands_in_the_log_and_the_result_and_the_commit_stands(table, caplog):
    table.store.failing = True
    results = [commit(table, f"f{number}") for number in range(2)]
    with caplog.at_level(logging.ERROR):
        table.store.gate.set()
        assert table.log.wait_for_background_work(PATIENCE_S)
    failed = results[1].wait_for_hooks(PATIENCE_S).failed_hooks
    assert [hook.name for hook in failed] == [
        "Write Version Checksum",
        "Post Commit Checkpoint Trigger",
    ]
    assert all("full" in str(hook.error) for hook in failed)
    assert "Post Commit Checkpoint Trigger" in caplog.text
    assert table.live() == ["f0", "f1"]
    assert commit(table, "f2").version == 3


def test_waiting_for_hooks_ends_after_the_time_given(table):
    result = commit(table, "f0")
    with pytest.raises(TimeoutError, match="Write Version Checksum"):
        result.wait_for_hooks(0.0)
    table.store.gate.set()
    assert result.wait_for_hooks(PATIENCE_S).failed_hooks == ()


def test_hooks_of_users_run_before_the_commit_returns(table):
    seen = []

    class Hook:
        name = "mine"

        def run(self, committed):
            seen.append(committed.version)

    txn = table.log.start_transaction()
    txn.register_post_commit_hook(Hook())
    txn.commit([table.add("a")], Operation("WRITE"))
    assert seen == [1]
    table.store.gate.set()
    assert table.log.wait_for_background_work(PATIENCE_S)


@pytest.fixture
def by_default(monkeypatch):
    """What is late if no option says so; other tests have none of it."""
    monkeypatch.setattr(default_hooks, "_LATE_BY_DEFAULT", frozenset({CheckpointHook.name}))


@pytest.fixture
def gated(make_table, by_default):
    def make(**options):
        return make_table(store=LateStore(), options=options, configuration=OFTEN).create()

    return make


class LateStore(GatedStore):
    """Lets no checkpoint be created until the gate opens."""

    def put_if_absent(self, path, data):
        if ".checkpoint." not in path:
            return MemoryLogStore.put_if_absent(self, path, data)
        return super().put_if_absent(path, data)


def test_by_default_only_the_checkpoint_is_late(gated):
    table = gated()
    results = [commit(table, f"f{number}") for number in range(2)]
    assert checksum_name(2) in names(table)
    assert [hook.is_pending for hook in results[1].hooks] == [False, True]
    table.store.gate.set()
    assert table.log.wait_for_background_work(PATIENCE_S)
    assert classic_checkpoint_name(2) in names(table)


def test_a_checkpoint_that_still_waits_is_left_out_for_a_newer_one_and_ends_like_it(gated):
    table = gated()
    results = [commit(table, f"f{number}") for number in range(8)]
    table.store.gate.set()
    assert table.log.wait_for_background_work(PATIENCE_S)
    written = {version for version in range(9) if classic_checkpoint_name(version) in names(table)}
    assert 8 in written
    assert written <= {2, 4, 8}  # the thread may take its time to begin
    assert 6 not in written
    for result in results:
        assert result.wait_for_hooks(PATIENCE_S).failed_hooks == ()
    assert len(table.live()) == 8


def test_a_failure_of_the_newer_checkpoint_is_that_of_the_one_left_out(gated):
    table = gated()
    results = [commit(table, f"f{number}") for number in range(8)]
    table.store.failing = True
    table.store.gate.set()
    assert table.log.wait_for_background_work(PATIENCE_S)
    for version in (6, 8):
        (failed,) = results[version - 1].wait_for_hooks(PATIENCE_S).failed_hooks
        assert "full" in str(failed.error)


@pytest.mark.parametrize(
    "key", ["postCommitHook.throwOnError", "checkpoint.exceptionThrowing.enabled"]
)
def test_a_failure_that_the_caller_wants_raised_is_raised_by_the_commit(gated, key):
    table = gated(**{f"spark.databricks.delta.{key}": "true"})
    table.store.failing = True
    table.store.gate.set()
    commit(table, "f0")
    with pytest.raises(PostCommitHookError, match="full"):
        commit(table, "f1")
    assert table.live() == ["f0", "f1"]


def test_a_table_made_anew_gets_no_checkpoint_of_the_one_before(gated, make_table):
    table = gated()
    results = [commit(table, f"f{number}") for number in range(2)]
    assert table.store.is_waiting.wait(PATIENCE_S)  # it has looked, and is about to create
    for name in names(table):
        table.store.delete(f"{table.log.log_path}/{name}")
    other = make_table(store=table.store, path=table.path).create()
    table.store.gate.set()
    assert table.log.wait_for_background_work(PATIENCE_S)
    (failed,) = results[1].wait_for_hooks(PATIENCE_S).failed_hooks
    assert failed.error.kind == "OPTIMIST_PREDECESSOR_MISSING"
    assert not any(".checkpoint" in name or "_last" in name for name in names(other))


class DroppedStore(MemoryLogStore):
    """Has the table made anew right before a checkpoint is created."""

    remake = None

    def put_if_absent(self, path, data):
        if ".checkpoint." in path and self.remake is not None:
            remake, self.remake = self.remake, None
            remake()
        return super().put_if_absent(path, data)


@pytest.mark.parametrize("by_hook", [True, False])
def test_a_checkpoint_that_is_waited_for_is_not_written_into_a_table_made_anew(make_table, by_hook):
    store = DroppedStore(clock=ManualClock())
    options = {"optimist.postCommit.background": "false"}
    table = make_table(store=store, options=options, configuration=OFTEN).create()
    commit(table, "f0")
    made_anew = []

    def remake():
        for name in names(table):
            store.delete(f"{table.log.log_path}/{name}")
        made_anew.append(make_table(store=store, path=table.path).create())

    store.remake = remake
    if by_hook:
        (failed,) = commit(table, "f1").failed_hooks
        error = failed.error
    else:
        with pytest.raises(StorageError) as caught:
            table.log.checkpoint()
        error = caught.value
    assert error.kind == "OPTIMIST_PREDECESSOR_MISSING"
    assert not any(".checkpoint" in name or "_last" in name for name in names(made_anew[0]))


def test_a_result_can_be_pickled_whether_or_not_its_hooks_have_ended(gated):
    table = gated()
    commit(table, "f0")
    result = commit(table, "f1")
    before = pickle.loads(pickle.dumps(result))
    assert [(hook.name, hook.is_pending) for hook in before.hooks] == [
        (hook.name, False) for hook in result.hooks
    ]
    table.store.failing = True
    table.store.gate.set()
    assert table.log.wait_for_background_work(PATIENCE_S)
    (failed,) = pickle.loads(pickle.dumps(result)).failed_hooks
    assert "full" in str(failed.error)


def test_work_that_was_left_out_is_given_up_in_a_forked_child():
    work, over = BackgroundWork(), threading.Event()
    work.submit(lambda: over.wait(PATIENCE_S))
    older, newer = (work.submit(lambda: 1, "a key") for _ in range(2))
    try:
        work._leave_to_parent()  # what the child runs
        assert older.cancelled()
        assert newer.cancelled()
    finally:
        over.set()


def test_whoever_waits_for_work_that_was_left_out_hears_that_the_newer_was_cancelled():
    work, over, heard = BackgroundWork(), threading.Event(), threading.Event()
    work.submit(lambda: over.wait(PATIENCE_S))
    older, newer = (work.submit(lambda: 1, "a key") for _ in range(2))
    begun = threading.Event()

    def wait():
        begun.set()
        with pytest.raises(CancelledError):
            older.result()
        heard.set()

    threading.Thread(target=wait, daemon=True).start()
    try:
        assert begun.wait(PATIENCE_S)
        while not older._condition._waiters:
            over.wait(0.01)
        assert newer.cancel()
        assert heard.wait(PATIENCE_S)
    finally:
        over.set()


def test_work_of_other_keys_is_not_left_out():
    work, over, done = BackgroundWork(), threading.Event(), []
    work.submit(lambda: over.wait(PATIENCE_S))
    for key in ("a", None, "b", "a", None):
        work.submit(lambda key=key: done.append(key), key)
    over.set()
    assert work.wait(PATIENCE_S)
    assert done == [None, "b", "a", None]


def test_where_the_options_say_no_all_is_done_when_the_commit_returns(make_table, by_default):
    never = {"optimist.postCommit.background": "false"}
    table = make_table(configuration=OFTEN, options=never).create()
    results = [commit(table, f"f{number}") for number in range(2)]
    assert not any(hook.is_pending for result in results for hook in result.hooks)
    assert results[1].wait_for_hooks() == results[1]
    assert classic_checkpoint_name(2) in names(table)


def test_work_of_one_table_keeps_its_order():
    work, done = BackgroundWork(), []
    for number in range(50):
        work.submit(lambda number=number: done.append(number))
    assert work.wait(PATIENCE_S)
    assert done == list(range(50))


def test_work_that_fails_does_not_hold_up_what_follows():
    work = BackgroundWork()

    def fail():
        raise ValueError("no")

    failed, answered = work.submit(fail), work.submit(lambda: 7)
    assert answered.result(PATIENCE_S) == 7
    assert isinstance(failed.exception(PATIENCE_S), ValueError)


def test_work_that_is_cancelled_does_not_hold_up_what_follows():
    work, over, done = BackgroundWork(), threading.Event(), []
    running = work.submit(lambda: over.wait(PATIENCE_S))
    waiting = work.submit(lambda: done.append(1))
    following = work.submit(lambda: 7)
    assert waiting.cancel()
    running.cancel()
    over.set()
    assert following.result(PATIENCE_S) == 7
    assert work.wait(PATIENCE_S)
    assert done == []


SCRIPT = """
import sys, time
import pyarrow as pa
from optimist.core import DeltaLog
log = DeltaLog.for_path(sys.argv[1], {**eval(sys.argv[2]),
    "spark.databricks.delta.properties.defaults.checkpointInterval": "1"})
for number in range(4):
    log.append(pa.table({"x": [number]}))
"""


@pytest.mark.parametrize("options", [BACKGROUND, {}])
def test_the_interpreter_waits_for_what_is_left_when_it_ends(tmp_path, options):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path), repr(options)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    found = {path.name for path in (tmp_path / "_delta_log").iterdir()}
    assert classic_checkpoint_name(3) in found  # it may stand for those before
    assert {checksum_name(version) for version in range(4)} <= found


READING_AT_THE_END = """
import time
from optimist.core.runtime.read_ahead import read_ahead
from optimist.core.transaction.hooks.background import BackgroundWork
def read():
    time.sleep(0.5)  # by now the interpreter is ending
    print(sum(read_ahead(abs, range(9), threads=2, ahead=2)))
BackgroundWork().submit(read)
"""


def test_work_can_use_threads_while_the_interpreter_waits_for_it():
    done = subprocess.run(
        [sys.executable, "-c", READING_AT_THE_END], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "36\n", "")


FORKING = """
import os, sys
import pyarrow as pa
from optimist.core import DeltaLog
from optimist.core.transaction.hooks.background import BackgroundWork
first = BackgroundWork()
first.submit(lambda: None)
assert first.wait(30)
child = os.fork()
if child == 0:
    work = BackgroundWork()
    answer = work.submit(lambda: 5).result(30)
    os._exit(answer)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_forked_child_does_its_own_background_work():
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORKING],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (5, "")
