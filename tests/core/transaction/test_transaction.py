"""What a single transaction does: what it writes, refuses, skips, and reports."""

from __future__ import annotations

import json
import logging
from contextlib import nullcontext
from dataclasses import replace
from unittest import mock

import pytest

from optimist.core.errors import (
    ConcurrentAppendException,
    ConcurrentTransactionException,
    ConcurrentWriteException,
    PostCommitHookError,
    SchemaError,
    StorageError,
    TableError,
    UsageError,
)
from optimist.core.log.commits import read_commit
from optimist.core.log.names import commit_path
from optimist.core.protocol.actions import (
    AddCDCFile,
    CommitInfo,
    DomainMetadata,
    Metadata,
    Protocol,
    SetTransaction,
)
from optimist.core.schema.types import PrimitiveType, StructField, StructType, schema_to_json
from optimist.core.transaction.conflicts.operations import Operation
from optimist.core.transaction.hooks import default_hooks
from optimist.logstores import LocalLogStore

WRITE = Operation.write("Append")
DELETE = Operation.delete(["x"])


def written(table, version):
    return read_commit(table.store, commit_path(table.log.log_path, version))


def info_of(table, version):
    first = written(table, version)[0]
    assert isinstance(first, CommitInfo)
    return first


def commit(table, actions, operation=WRITE, *, read=None, **kwargs):
    txn = table.log.start_transaction()
    if read is not None:
        txn.filter_files(read)
    return txn.commit(actions, operation, **kwargs)


# commitInfo


def test_commit_info_comes_first_and_says_everything(make_table):
    options = {"spark.databricks.delta.commitInfo.userMetadata": "from the conf"}
    table = make_table(options=options).create()
    operation = WRITE.with_metrics({"numFiles": 1, "numOutputRows": 10})
    result = commit(table, [table.add("a")], operation, tags={"k": "v"})
    info = info_of(table, 1)
    assert (info.operation, info.read_version, info.is_blind_append) == ("WRITE", 0, True)
    assert info.isolation_level == "Serializable"
    assert info.operation_parameters == {"mode": "Append", "partitionBy": "[]"}
    assert info.operation_metrics == {"numFiles": "1", "numOutputRows": "10"}
    assert info.user_metadata == "from the conf"
    assert info.tags == {"k": "v"}
    assert info.txn_id == result.txn_id
    assert info.engine_info.startswith("Optimist/")


def test_the_writes_own_user_metadata_wins(make_table):
    options = {"spark.databricks.delta.commitInfo.userMetadata": "from the conf"}
    table = make_table(options=options).create()
    commit(table, [table.add("a")], replace(WRITE, user_metadata="mine"))
    assert info_of(table, 1).user_metadata == "mine"


def test_commit_info_and_metrics_can_be_switched_off(make_table):
    options = {"spark.databricks.delta.history.metricsEnabled": "false"}
    table = make_table(options=options).create()
    commit(table, [table.add("a")], WRITE.with_metrics({"numFiles": 1}))
    assert info_of(table, 1).operation_metrics is None
    quiet = make_table(options={"spark.databricks.delta.commitInfo.enabled": "false"}).create()
    commit(quiet, [quiet.add("a")])
    assert [type(action).KEY for action in written(quiet, 1)] == ["add"]


@pytest.mark.parametrize(
    ("actions", "read", "expected"),
    [
        (lambda t: [t.add("a")], None, True),
        (lambda t: [t.add("a")], "p = 1", False),
        (lambda t: [t.add("a"), t.remove("f")], None, False),
        (lambda t: [t.add("a"), AddCDCFile("c", {"p": "1"}, 5)], None, False),
        (lambda t: [], None, True),
        (lambda t: [t.metadata], None, True),
        (lambda t: [SetTransaction("app", 1), t.add("a")], None, True),
    ],
)
def test_blind_append_flag(make_table, actions, read, expected):
    table = make_table().create(make_table().add("f"))
    commit(table, actions(table), read=read)
    assert info_of(table, 1).is_blind_append is expected


# Isolation levels


@pytest.mark.parametrize(
    ("extra", "expected"),
    [
        ([], "SnapshotIsolation"),
        ([SetTransaction("app", 1)], "Serializable"),
        ([DomainMetadata("my.domain", "{}")], "Serializable"),
    ],
)
def test_rearranging_commits_are_downgraded_unless_they_do_more(make_table, extra, expected):
    protocol = Protocol(1, 7, None, ("domainMetadata",))
    table = make_table(protocol=protocol)
    table.create(table.add("f"))
    actions = [table.remove("f", data_change=False), table.add("g", data_change=False), *extra]
    result = commit(table, actions, Operation("OPTIMIZE"))
    assert result.isolation_level == expected


def test_empty_delete_is_skipped_when_serializable_and_recorded_when_write_serializable(make_table):
    table = make_table().create()
    assert table.log.start_transaction().commit_if_needed([], DELETE) is None
    assert table.log.update().version == 0
    weaker = make_table(configuration={"delta.isolationLevel": "WriteSerializable"}).create()
    assert weaker.log.start_transaction().commit_if_needed([], DELETE).version == 1
    recorded = make_table(options={"spark.databricks.delta.skipRecordingEmptyCommits": "false"})
    recorded.create()
    assert recorded.log.start_transaction().commit_if_needed([], DELETE).version == 1


# Refusals before anything is written


@pytest.mark.parametrize(
    ("actions", "kind"),
    [
        (lambda t: [t.add("a"), t.add("a")], "DELTA_DUPLICATE_ACTIONS_FOUND"),
        (lambda t: [t.remove("a"), t.remove("a")], "DELTA_DUPLICATE_ACTIONS_FOUND"),
        (lambda t: [t.add("a"), t.remove("a")], "DELTA_DUPLICATE_ACTIONS_FOUND"),
        (lambda t: [t.metadata, t.metadata], "OPTIMIST_METADATA_CHANGED_TWICE"),
        (lambda t: [Protocol(1, 3), Protocol(1, 3)], "OPTIMIST_PROTOCOL_CHANGED_TWICE"),
        (
            lambda t: [SetTransaction("app", 1), SetTransaction("app", 2)],
            "DELTA_DUPLICATE_SET_TRANSACTION",
        ),
        (
            lambda t: [replace(t.add("a"), partition_values={"q": "1"})],
            "DELTA_INVALID_PARTITIONING_SCHEMA",
        ),
        (lambda t: [DomainMetadata("d", "{}")], "DELTA_DOMAIN_METADATA_NOT_SUPPORTED"),
    ],
)
def test_commits_that_are_refused(make_table, actions, kind):
    table = make_table().create()
    with pytest.raises(UsageError) as raised:
        commit(table, actions(table))
    assert raised.value.kind == kind
    assert table.log.update().version == 0


def test_append_only_tables_take_rearrangement_but_no_removal_of_data(make_table):
    table = make_table(configuration={"delta.appendOnly": "true"})
    table.create(table.add("f"))
    with pytest.raises(UsageError) as raised:
        commit(table, [table.remove("f")], DELETE)
    assert raised.value.kind == "DELTA_CANNOT_MODIFY_APPEND_ONLY"
    actions = [table.remove("f", data_change=False), table.add("g", data_change=False)]
    assert commit(table, actions, Operation("OPTIMIZE")).version == 1


def test_one_set_transaction_given_twice_is_written_once(make_table):
    table = make_table().create()
    commit(table, [SetTransaction("app", 1), SetTransaction("app", 1)])
    assert [type(a).KEY for a in written(table, 1)] == ["commitInfo", "txn"]


def test_inconsistent_data_change_is_fatal_only_when_asked(make_table, caplog):
    table = make_table()
    table.create(table.add("f"))
    mixed = [table.remove("f", data_change=False), table.add("g", data_change=True)]
    commit(table, mixed)
    assert "mixes file actions" in caplog.text
    key = "spark.databricks.delta.commitValidation.consistentDataChange.mode"
    strict = make_table(options={key: "fatal"})
    strict.create(strict.add("f"))
    with pytest.raises(UsageError) as raised:
        commit(strict, [strict.remove("f", data_change=False), strict.add("g")])
    assert raised.value.kind == "DELTA_INCONSISTENT_DATA_CHANGE"


def test_a_new_table_needs_metadata(make_table):
    table = make_table()
    with pytest.raises(TableError) as raised:
        commit(table, [table.add("a")])
    assert raised.value.kind == "DELTA_METADATA_ABSENT"
    assert not table.log.table_exists()


def test_repartitioning_is_for_operations_that_may(make_table):
    table = make_table().create()
    metadata = replace(table.metadata, partition_columns=())
    with pytest.raises(SchemaError) as raised:
        commit(table, [metadata], Operation("SET TBLPROPERTIES"))
    assert raised.value.kind == "DELTA_UNSUPPORTED_PARTITION_COLUMN_CHANGE"


# Metadata


def test_metadata_can_be_changed_once(make_table):
    table = make_table().create()
    txn = table.log.start_transaction()
    txn.update_metadata(replace(table.metadata, description="one"))
    with pytest.raises(UsageError, match="more than once in a transaction") as raised:
        txn.update_metadata(replace(table.metadata, description="two"))
    assert raised.value.args[0] == "Cannot change the metadata more than once in a transaction."


def test_a_new_table_gets_a_protocol_and_the_conf_defaults(make_table):
    options = {"spark.databricks.delta.properties.defaults.appendOnly": "true"}
    table = make_table(options=options)
    txn = table.log.start_transaction()
    assert txn.read_version == -1
    txn.update_metadata(table.metadata)
    assert txn.commit([], Operation("CREATE TABLE")).version == 0
    snapshot = table.log.update()
    assert snapshot.metadata.configuration["delta.appendOnly"] == "true"
    assert snapshot.protocol == Protocol(1, 2)
    keys = [type(action).KEY for action in written(table, 0)]
    assert keys == ["commitInfo", "metaData", "protocol"]


def test_reserved_change_feed_names_are_refused_when_the_feed_is_on(make_table):
    schema = StructType((StructField("_change_type", PrimitiveType("string")),
                         StructField("p", PrimitiveType("integer"))))  # fmt: skip
    table = make_table()
    configuration = {"delta.enableChangeDataFeed": "true"}
    metadata = replace(
        table.metadata, schema_string=schema_to_json(schema), configuration=configuration
    )
    txn = table.log.start_transaction()
    with pytest.raises(SchemaError):
        txn.update_metadata(metadata)
        txn.commit([], Operation("CREATE TABLE"))
    assert not table.log.table_exists()


# One use


def test_a_transaction_commits_once(make_table):
    table = make_table().create()
    txn = table.log.start_transaction()
    txn.commit([table.add("a")], WRITE)
    with pytest.raises(UsageError) as raised:
        txn.commit([table.add("b")], WRITE)
    assert raised.value.args[0] == "Transaction already committed."
    assert table.live() == ["a"]


def test_a_failed_transaction_cannot_be_used_again(make_table):
    table = make_table().create()
    txn = table.log.start_transaction()
    with pytest.raises(UsageError):
        txn.commit([table.add("a"), table.add("a")], WRITE)
    with pytest.raises(UsageError) as raised:
        txn.commit([table.add("a")], WRITE)
    assert raised.value.kind == "OPTIMIST_TRANSACTION_FAILED"


# Application transactions


def test_txn_version_is_minus_one_then_what_was_written(make_table):
    table = make_table().create()
    assert table.log.start_transaction().txn_version("app") == -1
    commit(table, [SetTransaction("app", 3), table.add("a")])
    assert table.log.start_transaction().txn_version("app") == 3


def test_writing_an_application_without_reading_it_is_no_conflict(make_table):
    table = make_table().create()
    txn = table.log.start_transaction()
    commit(table, [SetTransaction("app", 1), table.add("a")])
    assert txn.commit([SetTransaction("app", 2), table.add("b")], WRITE).version == 2


def test_domain_set_by_both_conflicts_and_others_do_not(make_table):
    protocol = Protocol(1, 7, None, ("domainMetadata",))
    table = make_table(protocol=protocol).create()
    first, second = table.log.start_transaction(), table.log.start_transaction()
    commit(table, [DomainMetadata("d", "{}")])
    assert second.commit([DomainMetadata("e", "{}")], WRITE).version == 2
    with pytest.raises(ConcurrentTransactionException) as raised:
        first.commit([DomainMetadata("d", "{}")], WRITE)
    assert raised.value.conflict.subject == "metadata domain d"


# The statistics tier


def racing_delete(table, read, winner_file):
    txn = table.log.start_transaction()
    files = txn.filter_files(read)
    assert files.num_rows == 1
    commit(table, [winner_file])
    return txn.commit([table.remove("f")], DELETE)


@pytest.mark.parametrize("partitioned", [True, False])
def test_a_disjoint_range_is_no_conflict_by_file_and_one_by_partition(make_table, partitioned):
    far = {"low": 100, "high": 109}
    table = make_table(partitioned=partitioned)
    table.create(table.add("f"))
    assert racing_delete(table, "x < 50", table.add("new", **far)).version == 2
    options = {"spark.optimist.conflict.granularity": "partition"}
    coarse = make_table(partitioned=partitioned, options=options)
    coarse.create(coarse.add("f"))
    with pytest.raises(ConcurrentAppendException):
        racing_delete(coarse, "x < 50", coarse.add("new", **far))


@pytest.mark.parametrize(
    "winner", [{"low": 40, "high": 60}, {"low": 100, "high": 109, "stats": False}]
)
def test_overlap_or_missing_statistics_conflict(make_table, winner):
    table = make_table(partitioned=False)
    table.create(table.add("f"))
    with pytest.raises(ConcurrentAppendException, match="the root of the table") as raised:
        racing_delete(table, "x < 50", table.add("new", **winner))
    conflict = raised.value.conflict
    assert (conflict.paths, conflict.num_paths, conflict.partition) == (("new",), 1, None)
    assert "x" in conflict.predicate
    assert conflict.winning_operation == "WRITE"
    assert conflict.winning_engine.startswith("Optimist/")


def test_the_partition_of_the_conflict_is_named(make_table):
    table = make_table()
    table.create(table.add("f"))
    with pytest.raises(ConcurrentAppendException, match=r"partition \[p=1\]"):
        racing_delete(table, "p = 1", table.add("new"))


def test_reads_of_the_whole_table_and_random_predicates_stay_coarse(make_table):
    far = {"low": 100, "high": 109}
    table = make_table(partitioned=False)
    table.create(table.add("f"))
    txn = table.log.start_transaction()
    txn.filter_files("x < 50 AND rand() < 0.5")
    commit(table, [table.add("new", **far)])
    with pytest.raises(ConcurrentAppendException):
        txn.commit([table.remove("f")], DELETE)
    txn = table.log.start_transaction()
    txn.read_whole_table()
    commit(table, [table.add("newer", **far)])
    with pytest.raises(ConcurrentAppendException):
        txn.commit([table.add("z")], WRITE)


# Rebase


ROW_TRACKING = Protocol(1, 7, None, ("rowTracking", "domainMetadata"))


def row_ids(table, version):
    return [
        (a.path, a.base_row_id, a.default_row_commit_version)
        for a in written(table, version)
        if type(a).KEY == "add"
    ]


def high_water_mark(table, version):
    domains = [a for a in written(table, version) if isinstance(a, DomainMetadata)]
    assert [item.domain for item in domains] == ["delta.rowTracking"]
    return json.loads(domains[0].configuration)["rowIdHighWaterMark"]


def test_row_ids_are_given_out_in_order_and_rebased_past_a_winner(make_table):
    table = make_table(protocol=ROW_TRACKING).create()
    ours = table.log.start_transaction()
    commit(table, [table.add("a"), table.add("b")])
    assert row_ids(table, 1) == [("a", 0, 1), ("b", 10, 1)]
    assert high_water_mark(table, 1) == 19
    ours.commit([table.add("c")], WRITE)
    assert row_ids(table, 2) == [("c", 20, 2)]
    assert high_water_mark(table, 2) == 29


def test_row_ids_need_a_row_count(make_table):
    table = make_table(protocol=ROW_TRACKING).create()
    with pytest.raises(SchemaError) as raised:
        commit(table, [table.add("a", stats=False)])
    assert raised.value.kind == "DELTA_ROW_ID_ASSIGNMENT_WITHOUT_STATS"


ICT = {"delta.enableInCommitTimestamps": "true"}
ICT_PROTOCOL = Protocol(1, 7, None, ("inCommitTimestamp",))


@pytest.mark.parametrize(("winner", "expected"), [(100, 101), (99, 100)])
def test_in_commit_timestamp_moves_after_the_winners(make_table, winner, expected):
    table = make_table(protocol=ICT_PROTOCOL, configuration=ICT)
    table.store.ensure_directory(table.log.log_path)
    start = CommitInfo(in_commit_timestamp=1, operation="CREATE TABLE")
    table.poke(0, [start, table.protocol, table.metadata])
    txn = table.log.start_transaction()
    ours = txn._draft([table.add("ours")], WRITE, None)
    ours = replace(ours, commit_info=replace(ours.commit_info, in_commit_timestamp=100))
    info = CommitInfo(in_commit_timestamp=winner, txn_id="other", is_blind_append=True)
    table.poke(1, [info, table.add("theirs")])
    rebased = txn.check_for_conflicts(ours).ours
    assert rebased.commit_info.in_commit_timestamp == expected


def test_enabling_timestamps_records_since_when(make_table):
    table = make_table(protocol=ICT_PROTOCOL).create()
    enabled = replace(table.metadata, configuration=ICT)
    txn = table.log.start_transaction()
    commit(table, [table.add("a")])
    txn.commit([enabled], Operation("SET TBLPROPERTIES"))
    metadata = next(a for a in written(table, 2) if isinstance(a, Metadata))
    timestamp = info_of(table, 2).in_commit_timestamp
    assert metadata.configuration == {
        **ICT,
        "delta.inCommitTimestampEnablementVersion": "2",
        "delta.inCommitTimestampEnablementTimestamp": str(timestamp),
    }


@pytest.mark.parametrize(
    ("change", "is_adopted"),
    [
        (ICT, True),
        ({"delta.enableInCommitTimestamps": "false"}, False),
        ({"delta.appendOnly": "true"}, False),
    ],
)
def test_which_property_changes_of_a_winner_are_adopted(make_table, change, is_adopted):
    table = make_table(protocol=ICT_PROTOCOL).create()
    txn = table.log.start_transaction()
    table.poke(1, [replace(table.metadata, configuration=change)])
    if is_adopted:
        assert txn.commit([table.add("a")], WRITE).version == 2
        assert info_of(table, 2).in_commit_timestamp is not None
        return
    with pytest.raises(Exception, match="it set the table property") as raised:
        txn.commit([table.add("a")], WRITE)
    assert raised.value.kind == "DELTA_METADATA_CHANGED"


# Large commits


def test_a_large_commit_lands_at_once_or_not_at_all(make_table):
    table = make_table().create()
    first, second = table.log.start_transaction(), table.log.start_transaction()
    assert first.commit_large([table.add("a")], Operation("CLONE")).version == 1
    with pytest.raises(ConcurrentWriteException, match="CLONE") as raised:
        second.commit_large([table.add("b")], Operation("RESTORE"))
    assert raised.value.conflict.winning_version == 1
    assert table.live() == ["a"]


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


def test_hooks_cannot_be_run_before_the_commit(make_table):
    table = make_table().create()
    txn = table.log.start_transaction()
    with pytest.raises(UsageError) as raised:
        txn.run_post_commit_hooks(None, None)
    assert raised.value.args[0] == "Can't call post commit hooks before committing"


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
