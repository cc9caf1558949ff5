"""Large commits, hooks, log lines, the session and the lock: what stands around a commit."""

from __future__ import annotations

import logging
from contextlib import nullcontext
from unittest import mock

import pytest

from commit_reading import WRITE, commit, info_of
from optimist.core.errors import (
    ConcurrentWriteException,
    PostCommitHookError,
    StorageError,
)
from optimist.core.log.last_checkpoint import read_last_checkpoint
from optimist.core.snapshot import Snapshot
from optimist.core.table import own_commits
from optimist.core.transaction.conflicts.operations import Operation
from optimist.core.transaction.hooks import default_hooks
from optimist.logstores import LocalLogStore

# Large commits


def test_a_large_commit_lands_at_once_or_not_at_all(make_table):
    table = make_table().create()
    first, second = table.log.start_transaction(), table.log.start_transaction()
    assert first.commit_large([table.add("a")], Operation("CLONE")).version == 1
    with pytest.raises(ConcurrentWriteException, match="CLONE") as raised:
        second.commit_large([table.add("b")], Operation("RESTORE"))
    assert raised.value.conflict.winning_version == 1
    assert table.live() == ["a"]


def test_a_large_commit_makes_a_table_on_a_store_with_directories(make_table, tmp_path):
    table = make_table(store=LocalLogStore(), path=str(tmp_path / "new"))
    result = table.log.start_transaction().commit_large([table.metadata], Operation("CLONE"))
    assert result.version == 0


def test_a_large_commit_is_no_blind_append_and_serializable(make_table):
    table = make_table(configuration={"delta.isolationLevel": "WriteSerializable"}).create()
    restore = table.log.start_transaction()
    restore.commit_large([table.add("a", data_change=False)], Operation("RESTORE"))
    info = info_of(table, 1)
    assert (info.is_blind_append, info.isolation_level) == (False, "Serializable")


def checkpointed(table):
    return read_last_checkpoint(table.store, table.log.log_path, clock=table.clock).version


def test_a_large_commit_is_followed_by_a_checkpoint_whatever_its_version(make_table):
    table = make_table()
    for version, actions in enumerate(([table.metadata, table.add("a")], [table.add("b")])):
        txn = table.log.start_transaction()
        result = txn.commit_large(actions, Operation("CLONE"))
        assert result.version == version
        assert "Post Commit Checkpoint Trigger" in [hook.name for hook in result.hooks]
        assert not result.failed_hooks
        assert checkpointed(table) == version
    commit(table, [table.add("c")])
    assert checkpointed(table) == 1


# Hooks, log lines, session


class Recorder:
    name = "recorder"

    def __init__(self, error=None):
        self.versions = []
        self.error = error

    def run(self, committed):
        self.versions.append((committed.version, committed.snapshot.version))
        if self.error:
            raise self.error


def test_hooks_run_once_each_after_the_commit_at_its_version(make_table):
    table = make_table().create()
    txn, hook = table.log.start_transaction(), Recorder()
    txn.register_post_commit_hook(hook)
    txn.register_post_commit_hook(hook)
    commit(table, [table.add("a")])
    result = txn.commit([table.add("b")], WRITE)
    assert hook.versions == [(2, 2)]
    assert result.failed_hooks == ()


def test_a_failing_hook_is_reported_and_the_commit_stands(make_table, caplog):
    table = make_table().create()
    txn = table.log.start_transaction()
    txn.register_post_commit_hook(Recorder(ValueError("no")))
    result = txn.commit([table.add("a")], WRITE)
    assert [outcome.name for outcome in result.failed_hooks] == ["recorder"]
    assert "Error when executing post-commit hook recorder for commit 1" in caplog.text
    assert table.live() == ["a"]


def test_a_failing_hook_raises_only_on_request_and_says_that_the_commit_succeeded(make_table):
    options = {"spark.databricks.delta.postCommitHook.throwOnError": "true"}
    table = make_table(options=options).create()
    txn = table.log.start_transaction()
    txn.register_post_commit_hook(Recorder(ValueError("no")))
    with pytest.raises(PostCommitHookError, match="version 1 succeeded") as raised:
        txn.commit([table.add("a")], WRITE)
    assert raised.value.kind == "DELTA_POST_COMMIT_HOOK_FAILED"
    assert table.live() == ["a"]


@pytest.mark.parametrize("is_loud", [True, False])
def test_a_failing_checkpoint_raises_only_where_the_option_says_so(make_table, is_loud):
    options = {"spark.databricks.delta.checkpoint.exceptionThrowing.enabled": str(is_loud)}
    configuration = {"delta.checkpointInterval": "1"}
    table = make_table(options=options, configuration=configuration).create()
    txn = table.log.start_transaction()
    broken = StorageError("the disk is full", kind="OPTIMIST_STORAGE_FAILED")
    raised = pytest.raises(PostCommitHookError, match="disk is full") if is_loud else nullcontext()
    with mock.patch.object(default_hooks, "write_checkpoint", side_effect=broken), raised:
        txn.commit([table.add("a")], WRITE)
    assert table.live() == ["a"]


def test_a_symlink_manifest_that_fails_is_always_heard(make_table, tmp_path):
    configuration = {"delta.compatibility.symlinkFormatManifest.enabled": "true"}
    table = make_table(
        configuration=configuration, store=LocalLogStore({}), path=str(tmp_path)
    ).create()
    (tmp_path / "_symlink_format_manifest").write_text("in the way")
    txn = table.log.start_transaction()
    with pytest.raises(PostCommitHookError, match="version 1 succeeded"):
        txn.commit([table.add("p=1/a", 1)], WRITE)
    assert table.live() == ["p=1/a"]


def without_snapshot():
    """Makes snapshots fail that are made of what is known of a commit."""
    return mock.patch.object(Snapshot, "with_commits", side_effect=ArithmeticError("no snapshot"))


def test_hooks_work_on_the_log_where_the_snapshot_can_not_be_made(make_table):
    table = make_table().create()
    txn, hook = table.log.start_transaction(), Recorder()
    txn.register_post_commit_hook(hook)
    with without_snapshot():
        result = txn.commit([table.add("a")], WRITE)
    assert (hook.versions, result.failed_hooks) == ([(1, 1)], ())
    assert "Write Version Checksum" in [outcome.name for outcome in result.hooks]


@pytest.mark.parametrize("has_manifest", [True, False])
def test_hooks_that_can_not_run_are_reported(make_table, has_manifest):
    key = "delta.compatibility.symlinkFormatManifest.enabled"
    table = make_table(configuration={key: str(has_manifest).lower()}).create()
    txn, hook = table.log.start_transaction(), Recorder()
    txn.register_post_commit_hook(hook)
    loud = pytest.raises(PostCommitHookError, match="Manifest") if has_manifest else nullcontext()
    unreadable = StorageError("gone", kind="OPTIMIST_STORAGE_FAILED")
    broken = mock.patch.object(own_commits, "load_version", side_effect=unreadable)
    with without_snapshot(), broken, loud:
        result = txn.commit([table.add("a")], WRITE)
        assert [outcome.name for outcome in result.failed_hooks] == ["recorder"]
    assert hook.versions == []
    assert table.live() == ["a"]


def test_log_lines_of_a_commit_that_met_a_winner(make_table, caplog):
    caplog.set_level(logging.DEBUG)
    table = make_table().create()
    txn = table.log.start_transaction()
    commit(table, [table.add("a")])
    caplog.clear()
    txn.commit([table.add("b")], WRITE)
    text = caplog.text
    assert "Attempting to commit version 1 with 1 actions with Serializable isolation level" in text
    assert "Completed checking for conflicts Version: 1 Attempt: 1 Time: 0 ms" in text
    assert "No logical conflicts with deltas [1, 2), retrying." in text
    assert f"Committed delta #2 to {table.log.log_path}" in text


def test_the_session_learns_the_last_version(make_table):
    table = make_table().create()
    session = {}
    log = table.handle(session=session)
    log.start_transaction().commit([table.add("a")], WRITE)
    assert session == {"spark.databricks.delta.lastCommitVersionInSession": "1"}


class GoneSession(dict):
    """The conf of a session whose server is gone."""

    def __setitem__(self, key, value):
        raise ConnectionError("gone")


def test_a_commit_stands_though_the_session_can_not_be_told(make_table, caplog):
    table = make_table().create()
    log = table.handle(session=GoneSession())
    assert log.start_transaction().commit([table.add("a")], WRITE).version == 1
    assert "Version 1 was committed, but the session's conf was not updated." in caplog.text


# Commit lock


@pytest.mark.parametrize(("option", "expected"), [(None, False), ("true", True), ("false", False)])
def test_the_lock_follows_the_option_and_else_the_store(make_table, option, expected):
    key = "spark.databricks.delta.commitLock.enabled"
    table = make_table(options={key: option} if option else {}).create()
    assert table.log.start_transaction().is_commit_lock_enabled() is expected


def test_the_lock_is_on_where_partial_writes_are_visible(make_table, monkeypatch):
    table = make_table().create()
    monkeypatch.setattr(table.store, "is_partial_write_visible", lambda path: True)
    assert table.log.start_transaction().is_commit_lock_enabled()
