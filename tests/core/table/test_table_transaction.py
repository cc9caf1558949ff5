"""Several operations in one commit: what is committed, what is seen, and what is refused."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack, suppress
from threading import Barrier, BrokenBarrierError, Event

import deltalake
import pyarrow as pa
import pytest

from block_tables import data_files, ids_of, kind_of, rows, table
from local_tables import opened
from optimist.core import Column, ColumnChange, DeltaLog, Identity, NewColumn, Operation
from optimist.core.errors import (
    CommitOutcomeUnknownError,
    PostCommitHookError,
    SchemaError,
    TableNotFoundError,
    UsageError,
)
from optimist.core.log.names import commit_path
from optimist.core.testing import Fault, FaultyLogStore, ManualClock, When
from optimist.core.transaction.hooks import default_hooks
from optimist.core.transaction.several import SeveralSteps
from optimist.logstores import LocalLogStore

_UNCHECKED = {"spark.databricks.delta.retentionDurationCheck.enabled": "false"}


def actions_of(log: DeltaLog, kind: str) -> list[dict]:
    text = log.store.read_bytes(commit_path(log.log_path, log.snapshot().version)).decode()
    return [line[kind] for line in map(json.loads, text.splitlines()) if kind in line]


# What is committed, and what is seen


@pytest.mark.parametrize("has_vectors", [True, False])
def test_operations_see_those_before_them_and_are_one_commit(tmp_path, has_vectors):
    log = table(tmp_path / "t", 1, 2, 3, has_vectors=has_vectors)
    with log.transaction(user_metadata="why") as txn:
        txn.append(rows(4, 5))
        assert txn.delete("id IN (1, 4)").num_deleted == 2
        assert txn.update(set={"id": "id + 10"}, predicate="id > 2").num_updated == 2
        merge = txn.merge(rows(13, 20, s="m"), ["id"])
        merged = merge.when_matched_update_all().when_not_matched_insert_all().execute()
        assert (merged.num_updated, merged.num_inserted) == (1, 1)
        assert sorted(txn.to_arrow()["id"].to_pylist()) == [2, 13, 15, 20]
        assert txn.count() == 4
        assert ids_of(log) == [1, 2, 3]  # nobody else sees any of it
    assert txn.result.version == log.snapshot().version == 1
    assert ids_of(log) == [2, 13, 15, 20]
    assert log.to_arrow("id = 13")["s"].to_pylist() == ["m13"]
    record = log.history(1)[0].info
    assert (record.operation, record.user_metadata) == ("TRANSACTION", "why")
    told = json.loads(record.operation_parameters["operations"])
    assert [each["operation"] for each in told] == ["WRITE", "DELETE", "UPDATE", "MERGE"]
    assert record.operation_metrics["numDeletedRows"] == "2"


def test_another_engine_reads_what_a_transaction_has_committed(tmp_path):
    log = table(tmp_path / "t", 1, 2, 3, has_vectors=False)
    with log.transaction() as txn:
        txn.append(rows(4))
        txn.delete("id = 2")
        txn.alter.add_columns([NewColumn("z", "int")])
    found = deltalake.DeltaTable(str(tmp_path / "t")).to_pyarrow_table()
    assert sorted(found["id"].to_pylist()) == [1, 3, 4]
    assert found.column_names == ["id", "s", "z"]


def test_a_file_that_comes_and_goes_within_a_transaction_is_in_no_action(tmp_path):
    log = table(tmp_path / "t", 1, 2, has_vectors=False)
    with log.transaction() as txn:
        txn.append(rows(3, 4))
        txn.delete("id > 2")
        txn.append(rows(5))
    assert len(actions_of(log, "add")) == 1
    assert actions_of(log, "remove") == []
    assert ids_of(log) == [1, 2, 5]


def test_of_several_vectors_for_a_file_the_last_is_committed(tmp_path):
    log = table(tmp_path / "t", 1, 2, 3, 4)
    log.delete("id = 4")
    before = log.files()["deletionVector"].to_pylist()[0]
    with log.transaction() as txn:
        txn.delete("id = 1")
        txn.delete("id = 2")
    (add,), (remove,) = actions_of(log, "add"), actions_of(log, "remove")
    assert add["path"] == remove["path"]
    assert remove["deletionVector"]["pathOrInlineDv"] == before["pathOrInlineDv"]
    assert add["deletionVector"]["cardinality"] == 3
    assert ids_of(log) == [3]


def test_a_vector_and_then_the_whole_file_removes_the_file_as_it_was(tmp_path):
    log = table(tmp_path / "t", 1, 2, 3)
    with log.transaction() as txn:
        txn.delete("id = 1")
        txn.delete()
        txn.append(rows(7))
    (remove,) = actions_of(log, "remove")
    assert "deletionVector" not in remove
    assert ids_of(log) == [7]


def test_a_transaction_of_one_operation_is_told_as_that_operation(tmp_path):
    log = table(tmp_path / "t", 1, 2)
    with log.transaction() as txn:
        txn.delete("id = 1")
    assert log.history(1)[0].info.operation == "DELETE"


def test_a_transaction_without_operations_commits_nothing(tmp_path):
    log = table(tmp_path / "t", 1, 2)
    with log.transaction() as txn:
        assert txn.count() == 2
        txn.delete("id = 9")
    assert txn.result is None
    assert log.snapshot().version == 0


def test_what_an_operation_returns_is_no_commit_yet(tmp_path):
    log = table(tmp_path / "t", 1, 2)
    with log.transaction() as txn:
        staged = txn.append(rows(3))
        changed = txn.alter.set_comment("of")
        assert (staged.version, staged.attempts) == (changed.version, changed.attempts) == (1, 0)
        assert staged.elapsed_ms == 0
    assert txn.result.attempts == 1


def test_a_table_is_made_and_changed_in_its_first_commit(tmp_path):
    log = opened(tmp_path / "t", has_vectors=True)
    with log.transaction() as txn:
        with pytest.raises(TableNotFoundError):
            txn.snapshot()
        txn.append(rows(1, 2), partition_by=["s"])
        txn.delete("id = 1")
        txn.alter.set_properties({"a": "b"})
        assert not log.table_exists()
    assert (log.snapshot().version, ids_of(log)) == (0, [2])
    assert log.metadata.partition_columns == ("s",)
    assert log.metadata.configuration["a"] == "b"


def test_new_columns_are_written_by_the_operations_after_them(tmp_path):
    log = table(tmp_path / "t", 1, 2)
    with log.transaction() as txn:
        txn.alter.add_columns([NewColumn("z", "int")])
        txn.append(rows(3).append_column("z", pa.array([7], pa.int32())))
        txn.update(set={"z": "id"}, predicate="z IS NULL")
        txn.alter.change_columns([ColumnChange("id", comment="which")])
    assert sorted(log.to_arrow()["z"].to_pylist()) == [1, 2, 7]
    assert len(actions_of(log, "metaData")) == 1
    assert log.snapshot().schema.find("id").metadata["comment"] == "which"


def test_a_constraint_is_held_against_rows_of_the_same_transaction(tmp_path):
    log = table(tmp_path / "t", 1, 2)
    with pytest.raises(SchemaError) as error, log.transaction() as txn:
        txn.append(rows(-1))
        txn.alter.add_constraint("positive", "id > 0")
    assert kind_of(error) == "DELTA_NEW_CHECK_CONSTRAINT_VIOLATION"
    assert log.snapshot().version == 0


def test_progress_of_an_application_is_recorded_once_and_replays_are_passed_over(tmp_path):
    log = table(tmp_path / "t", 1)
    with log.transaction() as txn:
        txn.append(rows(2), txn=("job", 1))
        assert txn.append(rows(2), txn=("job", 1)) is None
        txn.append(rows(3), txn=("job", 2))
    assert ids_of(log) == [1, 2, 3]
    assert [each["version"] for each in actions_of(log, "txn")] == [2]


def test_new_rows_get_row_ids_at_the_commit_and_old_rows_keep_theirs(tmp_path):
    log = table(tmp_path / "t", 1, 2, 3, enableRowTracking="true")
    tracked = ["id", "_metadata.row_id", "_metadata.row_commit_version"]
    with log.transaction() as txn:
        txn.append(rows(4, 5))
        txn.update(set={"s": "'x'"}, predicate="id >= 3")
        log.append(rows(-10, -11))  # another transaction, which takes the ids that come next
    found = {row["id"]: row for row in log.to_arrow(columns=tracked).to_pylist()}
    assert log.snapshot().version == 2
    assert [found[i]["_metadata.row_id"] for i in (1, 2, 3, -10, -11)] == [0, 1, 2, 3, 4]
    assert len({row["_metadata.row_id"] for row in found.values()}) == 7
    versions = {i: found[i]["_metadata.row_commit_version"] for i in found}
    assert versions == {1: 0, 2: 0, 3: 2, 4: 2, 5: 2, -10: 1, -11: 1}


def test_time_stamps_within_commits_go_on_through_a_transaction(tmp_path):
    log = table(tmp_path / "t", 1, enableInCommitTimestamps="true")
    before = log.snapshot().timestamp_ms
    with log.transaction() as txn:
        txn.append(rows(2))
        txn.append(rows(3))
        assert txn.snapshot().timestamp_ms == before
    assert log.snapshot().timestamp_ms > before


# Errors


def test_an_error_in_the_block_commits_nothing_and_leaves_no_file(tmp_path):
    log = table(tmp_path / "t", 1, 2, 3)
    before = data_files(tmp_path / "t")
    with pytest.raises(ZeroDivisionError), log.transaction() as txn:
        txn.append(rows(4))
        txn.delete("id = 1")
        txn.update(set={"s": "'x'"}, predicate="id = 2")
        raise ZeroDivisionError
    assert (log.snapshot().version, ids_of(log)) == (0, [1, 2, 3])
    assert data_files(tmp_path / "t") == before
    assert txn.result is None


def test_an_operation_that_fails_leaves_the_block_and_commits_nothing(tmp_path):
    log = table(tmp_path / "t", 1, 2)
    before = data_files(tmp_path / "t")
    with pytest.raises(SchemaError), log.transaction() as txn:
        txn.append(rows(3))
        txn.append(pa.table({"other": ["x"]}))
    assert log.snapshot().version == 0
    assert data_files(tmp_path / "t") == before


def test_an_error_that_is_caught_undoes_only_its_operation(tmp_path):
    log = table(tmp_path / "t", 1, 2)
    with log.transaction() as txn:
        txn.append(rows(3))
        with pytest.raises(SchemaError):
            txn.append(pa.table({"other": ["x"]}))
        txn.delete("id = 1")
    assert ids_of(log) == [2, 3]


def test_nothing_is_done_after_the_block_or_before_it(tmp_path):
    log = table(tmp_path / "t", 1, 2)
    txn = log.transaction()
    with pytest.raises(UsageError) as error:
        txn.append(rows(3))
    assert kind_of(error) == "OPTIMIST_TRANSACTION_FAILED"
    with txn:
        txn.append(rows(3))
    for use in (lambda: txn.append(rows(4)), txn.to_arrow, txn.snapshot, txn.delete):
        with pytest.raises(UsageError) as error:
            use()
        assert kind_of(error) == "OPTIMIST_TRANSACTION_ALREADY_COMMITTED"
    with pytest.raises(UsageError), txn:
        pass
    assert ids_of(log) == [1, 2, 3]


@pytest.mark.parametrize(
    "name",
    [
        "clone",
        "convert",
        "create",
        "drop_feature",
        "optimize",
        "purge",
        "recompute_statistics",
        "restore",
        "transaction",
        "vacuum",
    ],
)
def test_what_can_be_no_step_is_refused_by_name(tmp_path, name):
    log = table(tmp_path / "t", 1)
    told = pytest.raises(UsageError, match="can't be one of several")
    with told as error, log.transaction() as txn:
        txn.append(rows(2))
        getattr(txn, name)("x", y=1)
    assert kind_of(error) == "OPTIMIST_NOT_A_STEP"
    assert log.snapshot().version == 0


def test_row_ids_for_existing_rows_are_given_before_the_transaction(tmp_path):
    log = table(tmp_path / "t", 1)
    with pytest.raises(UsageError) as error, log.transaction() as txn:
        txn.alter.set_properties({"delta.enableRowTracking": "true"})
    assert kind_of(error) == "OPTIMIST_NOT_A_STEP"
    assert log.snapshot().version == 0


def test_an_application_named_by_the_conf_is_refused_before_anything_is_done(tmp_path):
    table(tmp_path / "t", 1)
    conf = {
        "spark.databricks.delta.write.txnAppId": "job",
        "spark.databricks.delta.write.txnVersion": "1",
    }
    log = DeltaLog.for_path(str(tmp_path / "t"), conf)
    with pytest.raises(UsageError) as error, log.transaction():
        raise AssertionError("the block began")
    assert kind_of(error) == "DELTA_INVALID_IDEMPOTENT_WRITES_OPTIONS"


@pytest.mark.parametrize("feed", ["before", "within"])
def test_a_second_change_of_rows_is_refused_where_changes_are_recorded(tmp_path, feed):
    given = {"enableChangeDataFeed": "true"} if feed == "before" else {}
    log = table(tmp_path / "t", 1, 2, 3, **given)
    with pytest.raises(UsageError) as error, log.transaction() as txn:
        txn.delete("id = 1")
        if feed == "before":
            txn.append(rows(4))
        else:
            txn.alter.set_properties({"delta.enableChangeDataFeed": "true"})
    assert kind_of(error) == "OPTIMIST_CHANGE_FEED_IN_TRANSACTION"
    assert log.snapshot().version == 0


def test_appends_and_one_change_of_rows_are_told_by_the_change_feed(tmp_path):
    log = table(tmp_path / "t", 1, 2, 3, enableChangeDataFeed="true")
    with log.transaction() as txn:
        txn.append(rows(4))
        txn.append(rows(5))
    with log.transaction() as txn:
        txn.alter.set_comment("changed")
        txn.update(set={"s": "'x'"}, predicate="id = 1")
    found = log.changes(starting_version=1).to_pylist()
    told = sorted((row["_commit_version"], row["_change_type"], row["id"]) for row in found)
    assert told == [
        (1, "insert", 4),
        (1, "insert", 5),
        (2, "update_postimage", 1),
        (2, "update_preimage", 1),
    ]


# Order of steps, rules of the table, and lost answers


def test_numbers_of_identity_columns_go_on_from_step_to_step(tmp_path):
    log = DeltaLog.for_path(str(tmp_path / "t"))
    log.create([Column("n", "bigint", identity=Identity()), Column("id", "bigint")])
    with log.transaction() as txn:
        txn.append(pa.table({"id": [1, 2]}))
        txn.append(pa.table({"id": [3]}))
    log.append(pa.table({"id": [4]}))
    found = log.to_arrow().to_pylist()
    assert sorted((row["id"], row["n"]) for row in found) == [(1, 1), (2, 2), (3, 3), (4, 4)]
    (info,) = [each.info for each in log.history() if each.info.operation == "TRANSACTION"]
    assert info.tags["delta.identity.schemaUpdate"] == "true"


def test_steps_that_did_not_see_each_other_are_refused(tmp_path):
    log = table(tmp_path / "t", 1)
    with pytest.raises(UsageError) as error, log.transaction() as txn:
        begun = txn.start_transaction()
        txn.append(rows(2))
        begun.commit([], Operation("WRITE"))
    assert kind_of(error) == "OPTIMIST_STEPS_OUT_OF_ORDER"
    with pytest.raises(UsageError) as error, log.transaction() as txn:
        old = txn.snapshot()
        txn.append(rows(2))
        txn.start_transaction(old)
    assert kind_of(error) == "OPTIMIST_STEPS_OUT_OF_ORDER"


def test_of_two_threads_that_stage_at_once_no_step_is_lost(tmp_path, monkeypatch):
    log, seen = table(tmp_path / "t", 1), []

    def let_the_other_stage(block, steps, after):
        if not seen:
            seen.append(threads.submit(other.commit, [], Operation("WRITE")))
            wait(seen, timeout=0.5)
        return look(block, steps, after)

    look = SeveralSteps._ensure_feed_can_tell
    with ThreadPoolExecutor(1) as threads, log.transaction() as txn:
        other = txn.start_transaction()
        monkeypatch.setattr(SeveralSteps, "_ensure_feed_can_tell", let_the_other_stage)
        txn.append(rows(2))
        error = seen[0].exception(timeout=60)
    assert error is not None and error.kind == "OPTIMIST_STEPS_OUT_OF_ORDER"
    assert ids_of(log) == [1, 2]


def test_a_step_of_another_thread_is_in_the_commit_or_refused(tmp_path, monkeypatch):
    log = table(tmp_path / "t", 1)

    def let_the_block_end(block, steps, after):
        is_looked_at.set()
        has_ended.wait(timeout=0.5)
        return look(block, steps, after)

    look, is_looked_at, has_ended = SeveralSteps._ensure_feed_can_tell, Event(), Event()
    with ThreadPoolExecutor(1) as threads:
        with log.transaction() as txn:
            monkeypatch.setattr(SeveralSteps, "_ensure_feed_can_tell", let_the_block_end)
            step = threads.submit(txn.append, rows(2))
            assert is_looked_at.wait(timeout=60)
        has_ended.set()
        is_told = step.exception(timeout=60) is None
    assert ids_of(log) == ([1, 2] if is_told else [1])


def test_of_two_threads_that_commit_one_block_at_once_one_does(tmp_path, monkeypatch):
    log, ensure_open, meet = table(tmp_path / "t", 1), SeveralSteps._ensure_open, Barrier(2)

    def look_together(block):
        ensure_open(block)
        with suppress(BrokenBarrierError):
            meet.wait(timeout=0.5)

    def try_commit(block):
        try:
            return block.commit_steps().version
        except UsageError as error:
            return error.kind

    txn = ExitStack().enter_context(log.transaction())
    txn.append(rows(2))
    monkeypatch.setattr(SeveralSteps, "_ensure_open", look_together)
    with ThreadPoolExecutor(2) as threads:
        done = list(threads.map(try_commit, [txn._open_txn] * 2))
    assert done.count(1) == 1
    assert [each.version for each in log.history()] == [1, 0]
    assert ids_of(log) == [1, 2]


def test_rows_of_a_table_that_only_takes_appends_stay_whatever_the_block_unsets(tmp_path):
    log = table(tmp_path / "t", 1, appendOnly="true")
    before = data_files(tmp_path / "t")
    with pytest.raises(UsageError) as error, log.transaction() as txn:
        txn.alter.unset_properties(["delta.appendOnly"])
        txn.delete("id = 1")
    assert kind_of(error) == "DELTA_CANNOT_MODIFY_APPEND_ONLY"
    assert data_files(tmp_path / "t") == before


def test_a_caught_refusal_of_row_ids_leaves_no_feature_behind(tmp_path):
    log = table(tmp_path / "t", 1)
    with log.transaction() as txn:
        with pytest.raises(UsageError):
            txn.alter.set_properties({"delta.enableRowTracking": "true"})
        txn.append(rows(2))
    assert log.protocol == log.snapshot(version=0).protocol


def test_a_commit_without_an_answer_keeps_the_files_of_all_steps(tmp_path):
    table(tmp_path / "t", 1, 2, has_vectors=False)
    store, name = FaultyLogStore(LocalLogStore()), "00000000000000000001.json"
    log = DeltaLog(str(tmp_path / "t"), store, clock=ManualClock())
    store.plan(Fault("put_if_absent", When.AFTER, name=name))
    store.plan(Fault("read_bytes", When.BEFORE, name=name, times=11))
    with pytest.raises(CommitOutcomeUnknownError), log.transaction() as txn:
        txn.append(rows(3))
        txn.delete("id = 1")
    assert ids_of(DeltaLog.for_path(str(tmp_path / "t"))) == [2, 3]  # it had landed


def test_a_hook_whose_failure_is_raised_leaves_the_commit_as_the_result(tmp_path, monkeypatch):
    options = {"spark.databricks.delta.postCommitHook.throwOnError": "true"}
    log = DeltaLog.for_path(str(tmp_path / "t"), options)
    log.append(rows(1))

    def fail(*_: object) -> None:
        raise OSError

    monkeypatch.setattr(default_hooks.ChecksumHook, "run", fail)
    block = log.transaction()
    with pytest.raises(PostCommitHookError), block as txn:
        txn.append(rows(2))
    assert block.result.version == 1
    assert [hook.name for hook in block.result.failed_hooks] == ["Write Version Checksum"]
    assert ids_of(DeltaLog.for_path(str(tmp_path / "t"))) == [1, 2]


# Beside VACUUM


@pytest.mark.parametrize("has_vectors", [True, False])
def test_a_vacuum_without_retention_spares_the_files_of_an_open_block(tmp_path, has_vectors):
    log = table(tmp_path / "t", 1, 2, has_vectors=has_vectors)
    other = DeltaLog.for_path(log.table_path, _UNCHECKED)
    with log.transaction() as txn:
        txn.append(rows(3, 4))
        txn.delete("id IN (1, 3)")
        other.vacuum(0)
        txn.append(rows(5))
        other.vacuum(0)
    assert ids_of(log) == [2, 4, 5]
    assert not list((tmp_path / "t" / "_optimist_intents").glob("*"))


@pytest.mark.parametrize("ends_well", [True, False])
def test_a_block_that_has_ended_leaves_no_intent(tmp_path, ends_well):
    log = table(tmp_path / "t", 1)
    with suppress(ZeroDivisionError), log.transaction() as txn:
        txn.append(rows(2))
        assert list((tmp_path / "t" / "_optimist_intents").glob("*"))
        _ = 1 / ends_well
    assert ids_of(log) == ([1, 2] if ends_well else [1])
    assert not list((tmp_path / "t" / "_optimist_intents").glob("*"))


# Beside forked processes


def test_a_child_that_leaves_the_block_takes_nothing_from_its_parent(tmp_path):
    log = table(tmp_path / "t", 1)
    with log.transaction() as txn:
        txn.append(rows(2))
        if (child := os.fork()) == 0:
            with suppress(UsageError):
                txn.append(rows(9))
                os._exit(1)
            try:
                txn.__exit__(SystemExit, SystemExit(), None)
            finally:
                os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert ids_of(log) == [1, 2]
