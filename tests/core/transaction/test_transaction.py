"""What a single transaction writes, refuses and skips before it meets any other."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from commit_reading import DELETE, ICT, WRITE, commit, info_of, written
from optimist.core.errors import (
    LogFileNotFoundError,
    ProtocolError,
    SchemaError,
    StorageError,
    TableError,
    UsageError,
)
from optimist.core.log.names import commit_path
from optimist.core.protocol.actions import (
    AddCDCFile,
    DeletionVectorDescriptor,
    DomainMetadata,
    Protocol,
    SetTransaction,
)
from optimist.core.protocol.properties import IsolationLevel
from optimist.core.schema.types import PrimitiveType, StructField, StructType, schema_to_json
from optimist.core.testing import ManualClock
from optimist.core.transaction.conflicts.isolation import isolation_level_for
from optimist.core.transaction.conflicts.operations import Operation
from optimist.logstores import MemoryLogStore

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


def test_in_commit_timestamps_need_commit_info_whatever_the_option_says(make_table):
    options = {"spark.databricks.delta.commitInfo.enabled": "false"}
    table = make_table(options=options, configuration=ICT)
    for actions in ([table.metadata], [table.add("a")]):
        table.log.start_transaction().commit(actions, WRITE)
    assert info_of(table, 0).in_commit_timestamp is not None
    assert info_of(table, 1).in_commit_timestamp > info_of(table, 0).in_commit_timestamp


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


def test_the_domain_of_row_tracking_does_not_keep_a_commit_from_being_downgraded(make_table):
    rearranged = [make_table().add("g", data_change=False)]
    for domain, level in (("delta.rowTracking", "SNAPSHOT_ISOLATION"), ("x", "SERIALIZABLE")):
        actions = [*rearranged, DomainMetadata(domain, "{}")]
        found = isolation_level_for(actions, Operation("OPTIMIZE"), IsolationLevel.SERIALIZABLE)
        assert found is IsolationLevel[level]


def test_empty_delete_is_skipped_when_serializable_and_recorded_when_write_serializable(make_table):
    table = make_table().create()
    assert table.log.start_transaction().commit_if_needed([], DELETE) is None
    assert table.log.snapshot().version == 0
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
    assert table.log.snapshot().version == 0


VECTORS = Protocol(3, 7, ("deletionVectors",), ("deletionVectors",))
COUNTED = '{"numRecords":10,"tightBounds":false}'
ADDING = "DELTA_ADDING_DELETION_VECTORS"
TIGHT = '{"numRecords":10}'


@pytest.mark.parametrize(
    ("protocol", "is_enabled", "stats", "operation", "kind"),
    [
        (VECTORS, True, COUNTED, "DELETE", None),
        (VECTORS, True, TIGHT, "DELETE", f"{ADDING}_WITH_TIGHT_BOUNDS_DISALLOWED"),
        (VECTORS, True, TIGHT, "RESTORE", None),
        (
            VECTORS,
            True,
            '{"tightBounds":false}',
            "DELETE",
            "DELTA_DELETION_VECTOR_MISSING_NUM_RECORDS",
        ),
        (VECTORS, False, COUNTED, "DELETE", f"{ADDING}_DISALLOWED"),
        (VECTORS, False, COUNTED, "COMPUTE STATS", None),
        (Protocol(1, 2), False, COUNTED, "COMPUTE STATS", f"{ADDING}_DISALLOWED"),
    ],
)
def test_files_with_deletion_vectors(make_table, protocol, is_enabled, stats, operation, kind):
    configuration = {"delta.enableDeletionVectors": str(is_enabled).lower()}
    table = make_table(protocol=protocol, configuration=configuration).create()
    vector = DeletionVectorDescriptor("u", "ab^-aqEH.-t@S}K{vb[*k^", 34, 2, offset=1)
    add = replace(table.add("f"), stats=stats, deletion_vector=vector)
    if kind is None:
        assert commit(table, [add], Operation(operation)).version == 1
        return
    with pytest.raises(UsageError) as raised:
        commit(table, [add], Operation(operation))
    assert raised.value.kind == kind


@pytest.mark.parametrize("name", ["f", "p=a%253Ab/f"])
def test_no_file_gets_another_vector_beside_its_old_one(make_table, name):
    configuration = {"delta.enableDeletionVectors": "true"}
    table = make_table(protocol=VECTORS, configuration=configuration)
    live = table.add(name)
    table.create(live)
    vector = DeletionVectorDescriptor("u", "ab^-aqEH.-t@S}K{vb[*k^", 34, 2, offset=1)
    add = replace(live, stats=COUNTED, deletion_vector=vector)
    with pytest.raises(UsageError, match="would count twice"):
        commit(table, [add], Operation("DELETE"))
    commit(table, [table.remove(name), add], Operation("DELETE"))
    assert table.log.snapshot().num_files == 1


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


def test_a_new_table_has_a_protocol_even_where_it_may_go_without_metadata(make_table):
    key = "spark.databricks.delta.commitValidation.enabled"
    table = make_table(options={key: "false"})
    commit(table, [table.add("a")])
    assert [type(action).KEY for action in written(table, 0)] == ["commitInfo", "protocol", "add"]


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
    assert raised.value.args[0].startswith(
        "Cannot change the metadata more than once in a transaction."
    )


def test_a_new_table_gets_a_protocol_and_the_conf_defaults(make_table):
    options = {"spark.databricks.delta.properties.defaults.appendOnly": "true"}
    table = make_table(options=options)
    txn = table.log.start_transaction()
    assert txn.read_version == -1
    txn.update_metadata(table.metadata)
    assert txn.commit([], Operation("CREATE TABLE")).version == 0
    snapshot = table.log.snapshot()
    assert snapshot.metadata.configuration["delta.appendOnly"] == "true"
    assert snapshot.protocol == Protocol(1, 2)
    keys = [type(action).KEY for action in written(table, 0)]
    assert keys == ["commitInfo", "metaData", "protocol"]


def test_a_default_that_names_no_property_is_passed_over(make_table):
    defaults = "spark.databricks.delta.properties.defaults."
    table = make_table(options={f"{defaults}nobodyKnows": "1", f"{defaults}APPENDONLY": "true"})
    txn = table.log.start_transaction()
    txn.update_metadata(table.metadata)
    txn.commit([], Operation("CREATE TABLE"))
    configuration = table.log.snapshot().metadata.configuration
    assert configuration["delta.appendOnly"] == "true"
    assert not any("nobodyKnows" in key for key in configuration)


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


CLUSTERED = Protocol(1, 7, None, ("clustering", "domainMetadata"))
BY_X = DomainMetadata("delta.clustering", '{"clusteringColumns":[["x"]]}')
UNCLUSTERED = DomainMetadata("delta.clustering", "", removed=True)


def schema_of(**types):
    fields = (StructField(name, PrimitiveType(kind)) for name, kind in types.items())
    return {"schema_string": schema_to_json(StructType(tuple(fields)))}


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (
            {"partition_columns": ("p",)},
            "DELTA_CLUSTERING_TO_PARTITIONED_TABLE_WITH_NON_EMPTY_CLUSTERING_COLUMNS",
        ),
        (schema_of(p="integer"), "DELTA_UNSUPPORTED_DROP_CLUSTERING_COLUMN"),
        (schema_of(X="long"), "DELTA_UNSUPPORTED_DROP_CLUSTERING_COLUMN"),
        (schema_of(x="boolean"), "DELTA_CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED"),
        (schema_of(x="string", y="long"), None),
    ],
)
def test_a_clustered_table_keeps_what_it_is_clustered_by(make_table, change, kind):
    table = make_table(partitioned=False, protocol=CLUSTERED).create()
    commit(table, [BY_X], Operation("CLUSTER BY"))
    changed = replace(table.metadata, **change)
    if kind is not None:
        with pytest.raises(SchemaError) as raised:
            commit(table, [changed])
        assert (raised.value.kind, raised.value.fields["columns"]) == (kind, ("x",))
        assert table.log.snapshot().version == 1
        assert commit(table, [changed, UNCLUSTERED]).version == 2
    else:
        assert commit(table, [changed]).version == 2


def test_clustering_columns_must_be_there(make_table):
    table = make_table(partitioned=False, protocol=CLUSTERED).create()
    nowhere = replace(BY_X, configuration='{"clusteringColumns":[["nowhere"]]}')
    with pytest.raises(SchemaError) as raised:
        commit(table, [nowhere], Operation("CLUSTER BY"))
    assert raised.value.kind == "DELTA_UNSUPPORTED_DROP_CLUSTERING_COLUMN"


@pytest.mark.parametrize("exists", [True, False])
def test_a_table_is_not_begun_or_continued_in_other_formats_as_well(make_table, exists):
    key = "delta.universalFormat.enabledFormats"
    table = make_table()
    if exists:
        table.create()
    with pytest.raises(ProtocolError) as raised:
        commit(table, [replace(table.metadata, configuration={key: "hudi"})])
    assert raised.value.kind == "DELTA_UNIVERSAL_FORMAT_VIOLATION"
    assert table.log.start_transaction().read_version == (0 if exists else -1)

    kept = make_table(configuration={key: "iceberg"}).create()
    with pytest.raises(ProtocolError) as raised:
        commit(kept, [kept.add("a")])
    assert raised.value.kind == "DELTA_UNIVERSAL_FORMAT_VIOLATION"


# A version that the log no longer has

_MONTH_S = 31 * 24 * 60 * 60


def old_table(make_table):
    """A table of version 0, and a transaction on that, a month later."""
    clock = ManualClock()
    table = make_table(store=MemoryLogStore({}, clock=clock), clock=clock).create()
    txn = table.log.start_transaction()
    clock.advance(_MONTH_S)
    return table, txn


@pytest.mark.parametrize("how", ["commit", "commit_large"])
@pytest.mark.parametrize("newest", [3, None])
def test_a_commit_that_would_fill_the_place_of_a_removed_one_is_refused(make_table, how, newest):
    table, txn = old_table(make_table)
    for name in "abc":
        commit(table, [table.add(name)])
    for version in range(4):
        if version != newest:
            table.store.delete(commit_path(table.log.log_path, version))
    with pytest.raises(StorageError, match="Nothing was committed") as raised:
        getattr(txn, how)([table.add("d")], WRITE)
    assert raised.value.kind == "OPTIMIST_PREDECESSOR_MISSING"
    with pytest.raises(LogFileNotFoundError):
        written(table, 1)


def test_a_transaction_of_any_age_commits_on_a_log_that_still_has_its_version(make_table):
    table, txn = old_table(make_table)
    commit(table, [table.add("a")])
    assert txn.commit([table.add("b")], WRITE).version == 2
    assert table.live() == ["a", "b"]


# One use


def test_a_transaction_commits_once(make_table):
    table = make_table().create()
    txn = table.log.start_transaction()
    txn.commit([table.add("a")], WRITE)
    with pytest.raises(UsageError) as raised:
        txn.commit([table.add("b")], WRITE)
    assert raised.value.args[0].startswith(
        "Transaction already committed. Its commit is version 1."
    )
    assert table.live() == ["a"]


def test_of_two_threads_that_commit_one_transaction_at_once_one_does(make_table, monkeypatch):
    table = make_table().create()
    txn = table.log.start_transaction()
    both_look, ensure_open = threading.Barrier(2, timeout=60), txn._ensure_open

    def look_together():
        ensure_open()
        both_look.wait()

    def try_commit(path):
        try:
            return txn.commit([table.add(path)], WRITE).version
        except UsageError as error:
            return error.kind

    monkeypatch.setattr(txn, "_ensure_open", look_together)
    with ThreadPoolExecutor(2) as threads:
        first, second = threads.map(try_commit, ["a", "b"])
    assert [first, second].count(1) == 1
    assert {first, second} - {1} <= {
        "OPTIMIST_TRANSACTION_ALREADY_COMMITTED",
        "OPTIMIST_TRANSACTION_FAILED",
    }
    assert len(table.live()) == 1


def test_a_failed_transaction_cannot_be_used_again(make_table):
    table = make_table().create()
    txn = table.log.start_transaction()
    with pytest.raises(UsageError):
        txn.commit([table.add("a"), table.add("a")], WRITE)
    with pytest.raises(UsageError) as raised:
        txn.commit([table.add("a")], WRITE)
    assert raised.value.kind == "OPTIMIST_TRANSACTION_FAILED"
