"""History, details, files, metadata and protocol: what they tell, and what they read for it."""

from __future__ import annotations

import json

import deltalake
import pyarrow as pa
import pytest

from optimist.core import DeltaLog
from optimist.core.errors import ProtocolError
from optimist.core.protocol.actions import CommitInfo, DomainMetadata, Protocol
from optimist.core.testing import FaultyLogStore
from optimist.core.transaction.conflicts.operations import Operation
from optimist.logstores import MemoryLogStore

WRITE = Operation.write("Append")


@pytest.fixture
def counted(make_table):
    """Twenty commits behind a store that counts; the handle has seen the newest version."""
    table = make_table(store=FaultyLogStore(MemoryLogStore({}))).create()
    for number in range(1, 21):
        table.poke(number, [CommitInfo(operation=f"OP {number}"), table.add(f"f{number}", number)])
    table.log.snapshot()
    table.store.clear()
    return table


# History


def test_a_short_history_reads_one_commit_per_line(counted):
    assert [record.version for record in counted.log.history(3)] == [20, 19, 18]
    assert dict(counted.store.counts) == {"list_from": 2, "open_read": 3}


def test_a_history_of_nothing_reads_nothing(counted):
    assert counted.log.history(0) == []
    assert counted.store.counts["open_read"] == 0


def test_the_whole_history_is_in_order_however_it_is_read(counted):
    records = counted.log.history()
    assert [record.version for record in records] == list(range(20, -1, -1))
    assert [record.info.operation for record in records[:-1]] == [
        f"OP {number}" for number in range(20, 0, -1)
    ]
    assert records[-1].info is None


ODD = {
    "timestamp": "yesterday",
    "inCommitTimestamp": "1",
    "operation": 7,
    "operationParameters": "none",
    "operationMetrics": ["1"],
    "readVersion": "3",
    "isBlindAppend": "false",
    "txnId": {"id": 1},
    "tags": 1.5,
    "userMetadata": "kept",
}


def test_odd_values_in_a_commit_s_own_words_are_kept_beside_and_mislead_nobody(make_table):
    table = make_table().create()
    table.poke(1, [table.add("a")])
    path = f"{table.log.log_path}/{2:020}.json"
    table.store.put_if_absent(path, json.dumps({"commitInfo": ODD}).encode())
    (record,) = table.log.history(1)
    info = record.info
    known = (info.operation, info.operation_parameters, info.operation_metrics, info.txn_id)
    assert known == (None, None, None, None)
    assert (info.read_version, info.is_blind_append, info.user_metadata) == (None, None, "kept")
    assert info.extra == {key: value for key, value in ODD.items() if key != "userMetadata"}
    assert record.timestamp_ms > 1


# Details


def test_the_details_are_plain_values(make_table):
    table = make_table(configuration={"delta.appendOnly": "true"})
    table.create(table.add("a"), table.add("b", 2))
    detail = table.log.detail()
    assert (detail.format, detail.id, detail.location) == ("delta", "table-id", table.path)
    assert (detail.num_files, detail.size_in_bytes) == (2, 200)
    assert (detail.created_at_ms, detail.partition_columns) == (1, ("p",))
    assert (detail.min_reader_version, detail.min_writer_version) == (1, 2)
    assert detail.table_features == ("appendOnly", "invariants")
    assert detail.properties == {"delta.appendOnly": "true"}
    assert detail.last_modified_ms == table.log.snapshot().timestamp_ms


@pytest.mark.parametrize(
    ("configuration", "expected"),
    [
        ('{"clusteringColumns":[["x"],["s","f"]]}', ("x", "s.f")),
        ('{"clusteringColumns":["x"],"domainName":"delta.clustering"}', ("x",)),
        ('{"clusteringColumns":null}', ()),
        ("", ()),
        ("no json", ()),
        ("[]", ()),
    ],
)
def test_clustering_columns_are_told_where_the_domain_names_them(
    make_table, configuration, expected
):
    names = ("clustering", "domainMetadata")
    table = make_table(partitioned=False, protocol=Protocol(1, 7, None, names)).create()
    table.poke(1, [DomainMetadata("delta.clustering", configuration)])
    assert table.log.detail().clustering_columns == expected


def test_files_metadata_and_protocol_are_those_of_the_newest_version(make_table):
    table = make_table().create(table_file := make_table().add("a", 1, low=0, high=5))
    log = table.log
    assert log.files()["path"].to_pylist() == [table_file.path]
    table.poke(1, [table.add("b", 2, low=50, high=60)])
    assert log.files("p = 2")["path"].to_pylist() == ["b"]
    assert log.files("x < 10")["path"].to_pylist() == ["a"]
    assert log.metadata == table.metadata
    assert log.protocol == Protocol(1, 2)


# The gates, through the handle


def closed(table, protocol):
    """What each call says to a table whose newest commit demands something unknown."""
    table.create(table.add("a"))
    table.poke(1, [protocol])
    return table.log


@pytest.mark.parametrize("name", ["catalogManaged", "novel", "redirectReaderWriter-preview"])
@pytest.mark.parametrize(
    "call",
    [
        lambda log: log.snapshot(),
        lambda log: log.history(),
        lambda log: log.detail(),
        lambda log: log.files(),
        lambda log: log.metadata,
        lambda log: log.protocol,
        lambda log: log.changes(starting_version=0),
        lambda log: log.to_arrow(),
        lambda log: log.start_transaction(),
        lambda log: log.checkpoint(),
    ],
)
def test_a_table_that_may_not_be_read_is_refused_by_name_and_version(make_table, name, call):
    log = closed(make_table(), Protocol(3, 7, (name,), (name,)))
    with pytest.raises(ProtocolError) as raised:
        call(log)
    assert raised.value.kind == "DELTA_UNSUPPORTED_FEATURES_FOR_READ"
    assert raised.value.fields["unsupported"] == (name,)
    assert f"{log.table_path} at version 1 (reader version 3, writer version 7" in str(raised.value)


@pytest.mark.parametrize("name", ["catalogManaged", "catalogOwned-preview"])
def test_who_opens_a_table_of_a_catalog_by_its_path_is_sent_to_the_catalog(make_table, name):
    log = closed(make_table(), Protocol(3, 7, (name,), (name,)))
    with pytest.raises(ProtocolError, match="Read the table through its catalog"):
        log.snapshot()


@pytest.mark.parametrize("name", ["novel", "identityColumns-preview", "icebergCompatV2"])
def test_what_can_not_be_honoured_refuses_a_write_before_anything_is_written(make_table, name):
    table = make_table()
    log = closed(table, Protocol(1, 7, None, (name,)))
    before = [status.name for status in table.store.list_from(f"{log.log_path}/")]
    with pytest.raises(ProtocolError) as raised:
        log.start_transaction().commit([table.add("b")], WRITE)
    assert raised.value.kind == "DELTA_UNSUPPORTED_FEATURES_FOR_WRITE"
    assert raised.value.fields["unsupported"] == (name,)
    assert "at version 1 (reader version 1, writer version 7" in str(raised.value)
    assert [status.name for status in table.store.list_from(f"{log.log_path}/")] == before
    assert log.files().num_rows == 1


def test_a_table_whose_protocol_forgot_a_feature_for_writers_is_read_and_not_written(tmp_path):
    fields = [pa.field("id", pa.int64(), nullable=False), pa.field("t", pa.timestamp("us"))]
    rows = pa.table({"id": [1], "t": [None]}, schema=pa.schema(fields))
    deltalake.write_deltalake(str(tmp_path), rows)
    log = DeltaLog.for_path(str(tmp_path))
    assert log.to_arrow()["id"].to_pylist() == [1]
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(ProtocolError, match=r"version 0 .*invariants") as raised:
        log.append(rows)
    assert raised.value.kind == "DELTA_FEATURES_PROTOCOL_METADATA_MISMATCH"
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("protocol", [Protocol(4, 7, ("x",), ("x",)), Protocol(99, 99)])
def test_a_newer_reader_version_is_refused_with_what_we_know(make_table, protocol):
    log = closed(make_table(), protocol)
    with pytest.raises(
        ProtocolError, match="reader versions 1 to 3 and writer versions 1 to 7"
    ) as e:
        log.snapshot()
    assert e.value.kind == "DELTA_INVALID_PROTOCOL_VERSION"
    assert e.value.fields["reader_version"] == protocol.min_reader_version
