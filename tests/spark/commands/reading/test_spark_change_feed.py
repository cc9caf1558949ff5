"""`readChangeFeed` on both planes beside what the core reads; odd values in the history."""

from __future__ import annotations

import datetime as dt
import json
import os
import shutil
from collections import Counter
from pathlib import Path

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyroaring import BitMap64

from change_histories import (
    FeedTable,
    History,
    bring_back,
    insert,
    overwrite,
    remove,
    replace_vector,
    steps,
)
from optimist.core.changes.vectors import all_but
from optimist.core.errors import SchemaError, TableError, UsageError
from optimist.core.protocol.actions import (
    AddFile,
    CommitInfo,
    Metadata,
    Protocol,
    action_to_dict,
    actions_to_bytes,
)
from optimist.spark import DeltaTable, read

DAT = os.environ.get("OPTIMIST_DAT")
FEED = {"delta.enableChangeDataFeed": "true"}
SCHEMA = json.dumps(
    {
        "type": "struct",
        "fields": [
            {"name": "id", "type": "long", "nullable": True, "metadata": {}},
            {"name": "p", "type": "string", "nullable": True, "metadata": {}},
        ],
    }
)


def commit(path, version, *actions, time_ms=None):
    """A commit by hand, at a time."""
    file = Path(path, "_delta_log", f"{version:020}.json")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(actions_to_bytes(actions))
    time_ns = (version + 1) * 3600 * 10**9 if time_ms is None else time_ms * 10**6
    os.utime(file, ns=(time_ns, time_ns))


def data_file(path, name, ids, p):
    pq.write_table(pa.table({"id": pa.array(ids, pa.int64())}), Path(path, name))
    size = Path(path, name).stat().st_size
    stats = json.dumps({"numRecords": len(ids)})
    return AddFile(name, {"p": p}, size, 1, True, stats=stats)


def under(file, *rows):
    """The file under a vector of these rows, of the ten that it has."""
    live = BitMap64(range(10)) - BitMap64(rows)
    return AddFile(
        file.path, file.partition_values, file.size, 1, True, file.stats,
        deletion_vector=all_but(live, 10),
    )  # fmt: skip


@pytest.fixture
def recorded(table_path):
    """A table that deltalake wrote, with files of changes."""
    rows = pa.table({"id": list(range(20)), "p": ["a", "b"] * 10, "x": [1.5, None] * 10})
    deltalake.write_deltalake(table_path, rows, partition_by=["p"], configuration=FEED)
    table = deltalake.DeltaTable(table_path)
    table.delete("id < 4")
    table.update({"x": "id * 2"}, predicate="id > 15")
    table.delete("p = 'b'")
    return table_path


@pytest.fixture
def vectors(table_path):
    """Ten rows in a file; version 2 deletes three, version 3 one more, and one comes back."""
    names = ("changeDataFeed", "deletionVectors")
    metadata = Metadata("id", SCHEMA, partition_columns=("p",), configuration=FEED)
    commit(table_path, 0, Protocol(3, 7, names[1:], names), metadata)
    first = data_file(table_path, "part-1.parquet", range(10), "a")
    second, third = under(first, 1, 2, 3), under(first, 2, 3, 9)
    commit(table_path, 1, first)
    commit(table_path, 2, first.remove(5), second)
    commit(table_path, 3, third, second.remove(5))
    commit(table_path, 4, third.remove(5), data_file(table_path, "part-2.parquet", [70], None))
    return table_path


def as_texts(rows):
    return sorted(map(str, rows))


def feed(spark, path, **bounds):
    return read(spark, path, readChangeFeed=True, **bounds)


def pairs(frame):
    columns = frame.select("_commit_version", "_change_type", "id").collect()
    return sorted(tuple(row) for row in columns)


@pytest.mark.again
@pytest.mark.parametrize(("first", "last"), [(0, None), (2, 3)])
def test_recorded_and_derived_changes_are_those_of_the_core(
    spark, recorded, plane, log_of, first, last
):
    frame = feed(spark, recorded, startingVersion=first, endingVersion=last)
    expected = log_of(recorded).changes(starting_version=first, ending_version=last)
    assert frame.columns == expected.schema.names
    found = frame.toArrow().cast(expected.schema)
    assert as_texts(found.to_pylist()) == as_texts(expected.to_pylist())
    assert expected.num_rows > 0


@pytest.mark.again
def test_rows_between_vectors_are_those_of_the_core(spark, vectors, plane, log_of):
    frame = feed(spark, vectors, startingVersion=0)
    expected = log_of(vectors).changes(starting_version=0)
    assert as_texts(row.asDict() for row in frame.select("id", "p").collect()) == as_texts(
        expected.select(["id", "p"]).to_pylist()
    )
    assert pairs(frame.where("_commit_version IN (2, 3)")) == [
        (2, "delete", 1),
        (2, "delete", 2),
        (2, "delete", 3),
        (3, "delete", 9),
        (3, "insert", 1),
    ]
    assert frame.where("_commit_version = 4 AND _change_type = 'delete'").count() == 7
    assert frame.where("p IS NULL").count() == 1


@pytest.mark.again
@settings(
    max_examples=5,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # to shrink takes minutes
)
@given(
    commits=st.lists(steps(replace_vector), min_size=4, max_size=8),
    is_partitioned=st.booleans(),
    data=st.data(),
)
def test_the_feed_of_a_random_history_is_what_the_model_says(
    spark, tmp_path_factory, plane, commits, is_partitioned, data
):
    path = tmp_path_factory.mktemp("history") / "table"
    history = History(FeedTable(path, vectors=True, partitioned=is_partitioned))
    for steps_of_one in [[(insert, 0), (insert, 1)], *commits]:
        history.commit(steps_of_one)
    last = len(history.expected) - 1
    end = data.draw(st.integers(1, last))
    frame = feed(spark, str(path), startingVersion=0, endingVersion=end)
    rows = frame.select("_commit_version", "_change_type", "id").collect()
    assert Counter(map(tuple, rows)) == history.changes(0, end)
    kind = data.draw(st.sampled_from(["insert", "delete"]))
    version = data.draw(st.integers(0, end))
    filtered = frame.where(f"_change_type = '{kind}' AND _commit_version >= {version}")
    rows = filtered.select("_commit_version", "_change_type", "id").collect()
    wanted = history.changes(version, end).items()
    assert Counter(map(tuple, rows)) == {key: n for key, n in wanted if key[1] == kind}


@pytest.mark.again
def test_a_file_that_comes_and_goes_is_read_as_each_of_its_changes(spark, tmp_path, plane):
    history = History(FeedTable(tmp_path / "table"))
    history.commit([(insert, 0)])
    history.commit([(insert, 1)])
    history.commit([(remove, 0)])
    history.commit([(bring_back, 0)])
    history.commit([(overwrite, 0)])
    for first in range(6):
        frame = feed(spark, str(tmp_path / "table"), startingVersion=first)
        assert Counter(pairs(frame)) == history.changes(first, 5)


@pytest.mark.again
def test_two_feeds_of_one_file_are_not_mixed_up_in_one_query(spark, vectors, plane):
    one = feed(spark, vectors, startingVersion=2, endingVersion=2).select("id").distinct()
    other = feed(spark, vectors, startingVersion=3, endingVersion=3).select("id").distinct()
    assert sorted(row.id for row in one.unionAll(other).collect()) == [1, 1, 2, 3, 9]
    assert [row.id for row in one.join(other, "id").collect()] == [1]


@pytest.mark.again
def test_a_feed_and_the_table_itself_go_together_in_one_query(spark, vectors, conf):
    # The table says that it is of 1970.
    conf(
        "spark.databricks.delta.vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration", "false"
    )
    deleted = feed(spark, vectors, startingVersion=2).where("_change_type = 'delete'")
    before = read(spark, vectors, versionAsOf=1)
    assert before.join(deleted, "id").count() == 11
    assert read(spark, vectors).count() == 1


@pytest.mark.again
def test_filters_on_the_feed_s_columns_leave_files_unread(spark, vectors, conf):
    Path(vectors, "part-1.parquet").unlink()
    frame = feed(spark, vectors, startingVersion=1)
    assert pairs(frame.where("_change_type = 'insert' AND _commit_version = 4")) == [
        (4, "insert", 70)
    ]
    assert frame.where("p IS NULL").count() == 1
    with pytest.raises(Exception, match="part-1"):
        frame.collect()


def test_all_columns_of_a_feed_are_nullable(spark, vectors, plane):
    fields = feed(spark, vectors, startingVersion=0).schema.fields
    assert [(field.name, field.dataType.simpleString()) for field in fields] == [
        ("id", "bigint"),
        ("p", "string"),
        ("_change_type", "string"),
        ("_commit_version", "bigint"),
        ("_commit_timestamp", "timestamp"),
    ]
    assert all(field.nullable for field in fields)


def test_times_are_read_in_the_zone_of_the_session(spark, vectors, conf):
    conf("spark.sql.session.timeZone", "America/New_York")
    frame = feed(
        spark, vectors, startingTimestamp="1969-12-31 21:30:00", endingTimestamp="1969-12-31 22:00"
    )
    assert {row[0] for row in pairs(frame)} == {2}
    zone = dt.timezone.utc
    exact = feed(
        spark,
        vectors,
        startingTimestamp=dt.datetime(1970, 1, 1, 3, 0, tzinfo=zone),
        endingTimestamp=dt.datetime(1970, 1, 1, 4, 59, tzinfo=zone),
    )
    times = {row[0] for row in exact.selectExpr("unix_millis(_commit_timestamp)").collect()}
    assert times == {3 * 3_600_000, 4 * 3_600_000}


def test_no_commit_between_two_times_is_a_frame_without_rows(spark, vectors, plane):
    frame = feed(
        spark, vectors, startingTimestamp="1970-01-01 02:10", endingTimestamp="1970-01-01 02:20"
    )
    assert frame.collect() == []
    assert frame.columns[-3:] == ["_change_type", "_commit_version", "_commit_timestamp"]


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("DELTA_NO_START_FOR_CDC_READ", {"readChangeFeed": True}),
        ("DELTA_NO_START_FOR_CDC_READ", {"readChangeFeed": "TRUE", "endingVersion": 1}),
        ("OPTIMIST_INVALID_ARGUMENT", {"readChangeFeed": "yes", "startingVersion": 0}),
        ("DELTA_VERSION_INVALID", {"readChangeFeed": True, "startingVersion": "latest"}),
        ("OPTIMIST_UNKNOWN_OPTION", {"startingVersion": 0}),
        ("OPTIMIST_UNKNOWN_OPTION", {"readChangeFeed": False, "endingTimestamp": "2026-01-01"}),
        ("OPTIMIST_UNKNOWN_OPTION", {"readChangeFeed": True, "startVersion": 0}),
        (
            "DELTA_MULTIPLE_CDC_BOUNDARY",
            {"readChangeFeed": True, "startingVersion": 0, "startingTimestamp": "1970-01-01"},
        ),
        (
            "DELTA_ONEOF_IN_TIMETRAVEL",
            {"readChangeFeed": True, "startingVersion": 0, "versionAsOf": 1},
        ),
        (
            "DELTA_TIMESTAMP_INVALID",
            {"readChangeFeed": True, "startingTimestamp": "the day before"},
        ),
        (
            "DELTA_INVALID_CDC_RANGE",
            {"readChangeFeed": True, "startingVersion": "3", "endingVersion": "2"},
        ),
    ],
)
def test_options_that_make_no_range_are_refused(spark, vectors, kind, options):
    with pytest.raises(UsageError) as raised:
        read(spark, vectors, **options)
    assert raised.value.kind == kind


def test_ranges_outside_the_log_and_without_the_feed_are_refused(spark, vectors, conf):
    with pytest.raises(TableError) as raised:
        feed(spark, vectors, startingVersion=5)
    assert raised.value.kind == "DELTA_CDC_START_VERSION_AFTER_LATEST"
    conf("spark.databricks.delta.changeDataFeed.timestampOutOfRange.enabled", "true")
    assert feed(spark, vectors, startingVersion=5).count() == 0
    commit(vectors, 5, Metadata("id", SCHEMA, partition_columns=("p",)))
    with pytest.raises(TableError) as raised:
        feed(spark, vectors, startingVersion=1)
    assert (raised.value.kind, raised.value.fields["version"]) == ("DELTA_MISSING_CHANGE_DATA", 5)
    assert feed(spark, vectors, startingVersion=4, endingVersion=4).count() == 8


def test_a_schema_that_changed_too_much_is_refused(spark, vectors):
    other = SCHEMA.replace('"long"', '"string"')
    commit(vectors, 5, Metadata("id", other, partition_columns=("p",), configuration=FEED))
    with pytest.raises(SchemaError) as raised:
        feed(spark, vectors, startingVersion=1)
    assert raised.value.kind == "DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_SCHEMA_CHANGE"


@pytest.mark.skipif(DAT is None, reason="OPTIMIST_DAT names no folder of real tables")
def test_vectors_that_delta_spark_wrote_are_told_apart(spark, table_path, plane):
    shutil.copytree(Path(DAT or "", "deletion_vectors", "delta"), table_path)
    first = Path(table_path, "_delta_log", f"{0:020}.json")
    text = first.read_text()
    on = '"configuration":{"delta.enableChangeDataFeed":"true",'
    text = text.replace('"configuration":{', on)
    text = text.replace('"writerFeatures":[', '"writerFeatures":["changeDataFeed",')
    first.write_text(text)
    frame = feed(spark, table_path, startingVersion=2)
    deleted = frame.select("letter", "_change_type").collect()
    assert [tuple(row) for row in deleted] == [("a", "delete")] * 4


def test_odd_values_of_other_writers_do_not_break_the_history(spark, vectors):
    odd = CommitInfo(operation="WRITE", extra={"isBlindAppend": "yes", "clusterId": 7, "job": "x"})
    body = action_to_dict(odd)["commitInfo"] | {"operationMetrics": "3", "readVersion": 1.5}
    path = Path(vectors, "_delta_log", f"{5:020}.json")
    path.write_text(json.dumps({"commitInfo": body}) + "\n")
    newest, before = DeltaTable.forPath(spark, vectors).history(2).collect()
    assert (newest.operation, newest.clusterId, newest.job) == ("WRITE", "7", None)
    assert (newest.isBlindAppend, newest.operationMetrics, newest.readVersion) == (None, None, None)
    assert (before.version, before.operation, before.operationParameters) == (4, None, None)
