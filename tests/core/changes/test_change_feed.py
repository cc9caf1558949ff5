"""The change data feed without Spark: which rows, of which versions, and what is refused."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest

from optimist.core import DeltaLog
from optimist.core.changes.bounds import ChangeBounds
from optimist.core.changes.feed import change_feed
from optimist.core.changes.schemas import ensure_reads_as
from optimist.core.errors import OptimistError, ProtocolError, SchemaError, TableError, UsageError
from optimist.core.protocol.actions import CommitInfo, Metadata, Protocol, RemoveFile

DAT = os.environ.get("OPTIMIST_DAT")
FEED = {"delta.enableChangeDataFeed": "true"}
LENIENT = {"spark.databricks.delta.changeDataFeed.timestampOutOfRange.enabled": "true"}
HOUR_MS = 3_600_000


def changes(table, first=0, last=None, *columns):
    """Sorted (version, kind, columns...)."""
    wanted = ["_commit_version", "_change_type", *(columns or ("id",))]
    found = table.log.changes(starting_version=first, ending_version=last, columns=wanted)
    return sorted((tuple(row.values()) for row in found.to_pylist()), key=repr)


def refused(expected, call, **arguments):
    with pytest.raises(OptimistError) as raised:
        call(**arguments)
    assert raised.value.kind == expected
    return raised.value


# Which rows


def test_added_and_removed_files_are_inserts_and_deletes(feed_table):
    table = feed_table()
    first, second = table.file([1, 2]), table.file([3])
    table.commit(first)
    table.commit(second, table.removal(first))
    expected = [(1, "insert", 1), (1, "insert", 2)]
    expected += [(2, "delete", 1), (2, "delete", 2), (2, "insert", 3)]
    assert changes(table) == expected
    assert changes(table, 1, 1) == expected[:2]
    assert changes(table, 2) == expected[2:]


def test_the_columns_are_the_table_s_and_then_the_feed_s(feed_table):
    table = feed_table()
    table.commit(table.file([1]))
    found = table.log.changes(starting_version=0)
    assert found.schema.names == ["id", "_change_type", "_commit_version", "_commit_timestamp"]
    assert found.schema.types[1:] == [pa.string(), pa.int64(), pa.timestamp("us", tz="UTC")]


def test_files_of_changes_speak_alone_for_their_version(feed_table):
    table = feed_table()
    before = table.file([1, 2])
    table.commit(before)
    recorded = table.changes([(2, "update_preimage"), (20, "update_postimage")])
    table.commit(recorded, table.removal(before), table.file([1, 20]))
    assert changes(table, 2) == [(2, "update_postimage", 20), (2, "update_preimage", 2)]


def test_a_commit_that_only_moves_rows_has_no_changes(feed_table):
    table = feed_table()
    first = table.file([1])
    table.commit(first)
    moved = replace(table.file([1]), data_change=False)
    table.commit(table.removal(first, data_change=False), moved)
    assert changes(table, 2) == []


def test_a_merge_that_changed_nothing_has_no_changes(feed_table):
    table = feed_table()
    first = table.file([1])
    table.commit(first)
    names = ("numTargetRowsInserted", "numTargetRowsUpdated", "numTargetRowsDeleted")
    info = CommitInfo(operation="MERGE", operation_metrics=dict.fromkeys(names, "0"))
    table.commit(info, table.removal(first), table.file([1]))
    assert changes(table, 2) == []
    table.commit(replace(info, operation="WRITE"), table.file([2]))
    assert changes(table, 3) == [(3, "insert", 2)]


def test_rows_between_two_deletion_vectors_were_deleted_or_came_back(feed_table):
    table = feed_table(vectors=True)
    first = table.file([10, 11, 12, 13])
    table.commit(first)
    some = table.deleting(first, 0, 3)
    table.commit(table.removal(first), some)
    others = table.deleting(first, 3, 1)
    table.commit(table.removal(some), others)
    table.commit(table.removal(others), first)
    table.commit(table.removal(first))
    assert changes(table, 2) == [
        (2, "delete", 10),
        (2, "delete", 13),
        (3, "delete", 11),
        (3, "insert", 10),
        (4, "insert", 11),
        (4, "insert", 13),
        *((5, "delete", number) for number in (10, 11, 12, 13)),
    ]


def test_a_file_removed_under_its_vector_loses_only_the_rows_it_still_had(feed_table):
    table = feed_table(vectors=True)
    some = table.deleting(table.file([1, 2, 3]), 1)
    table.commit(some)
    table.commit(table.removal(some))
    assert changes(table) == [
        (1, "insert", 1),
        (1, "insert", 3),
        (2, "delete", 1),
        (2, "delete", 3),
    ]


def test_a_file_without_statistics_is_counted_by_its_footer(feed_table):
    table = feed_table(vectors=True)
    first = replace(table.file([1, 2, 3]), stats=None)
    table.commit(first)
    table.commit(table.removal(first), table.deleting(first, 1))
    assert changes(table, 2) == [(2, "delete", 2)]
    assert table.remove_data_files() == 1
    error = refused("OPTIMIST_UNREADABLE_DATA_FILE", table.log.changes, starting_version=2)
    assert isinstance(error, TableError)


def test_a_vector_whose_file_is_gone_is_an_error(feed_table):
    table = feed_table(vectors=True)
    first = table.file([1, 2])
    table.commit(first)
    vector = table.deleting(first, 1).deletion_vector
    gone = replace(vector, storage_type="p", path_or_inline_dv=str(table.path / "x.bin"), offset=1)
    table.commit(table.removal(first), replace(first, deletion_vector=gone))
    refused("DELTA_FILE_NOT_FOUND_DETAILED", table.log.changes, starting_version=1)


def test_partition_values_and_the_feed_s_columns_may_be_filtered_by(feed_table):
    table = feed_table(partitioned=True)
    first = table.file([1, 2], p="a")
    table.commit(first, table.file([3], p=None))
    table.commit(table.removal(first))

    def found(predicate):
        rows = table.log.changes(predicate, ["id", "p"], starting_version=0)
        return sorted(map(tuple, (row.values() for row in rows.to_pylist())), key=repr)

    assert found("p = 'a' AND _change_type = 'insert'") == [(1, "a"), (2, "a")]
    assert found("p IS NULL") == [(3, None)]
    assert found("_commit_version >= 2 AND id > 1") == [(2, "a")]
    assert found("_commit_timestamp < '2000-01-01'") == []


def test_a_remove_that_does_not_repeat_its_add_is_looked_up(feed_table):
    table = feed_table(partitioned=True)
    first = table.file([1], p="a")
    table.commit(first)
    table.commit(RemoveFile(first.path, 5))
    assert changes(table, 2, None, "id", "p") == [(2, "delete", 1, "a")]


def test_the_files_of_a_feed_are_one_row_for_each_kind_of_change(feed_table):
    table = feed_table()
    first = table.file([1])
    table.commit(first)
    table.commit(table.changes([(1, "delete")]), table.removal(first))
    feed = change_feed(table.log.table, table.log.snapshot(), ChangeBounds(0))
    kinds = [
        dict(values).get("_change_type") for values in feed.files["partitionValues"].to_pylist()
    ]
    assert (feed.versions, kinds) == (range(3), ["insert", None])


def test_what_deltalake_records_and_what_it_reads_are_what_we_read(tmp_path):
    rows = pa.table({"id": list(range(20)), "p": ["a", "b"] * 10, "x": [1.5, None] * 10})
    path = str(tmp_path / "table")
    deltalake.write_deltalake(path, rows, partition_by=["p"], configuration=FEED)
    theirs = deltalake.DeltaTable(path)
    theirs.delete("id < 4")
    theirs.update({"x": "id * 2"}, predicate="id > 15")
    deltalake.write_deltalake(path, rows.slice(0, 3), mode="append")
    theirs = deltalake.DeltaTable(path)
    source = pa.table({"id": [5, 99], "p": ["b", "c"], "x": [0.0, 1.0]})
    merge = theirs.merge(source, "t.id = s.id", source_alias="s", target_alias="t")
    merge.when_matched_update_all().when_not_matched_insert_all().execute()
    theirs.delete("p = 'b'")
    log, last = DeltaLog.for_path(path), theirs.version()
    names = ["id", "p", "x", "_change_type", "_commit_version"]
    for first in range(last + 1):
        for end in range(first, last + 1):
            ours = log.changes(columns=names, starting_version=first, ending_version=end)
            found = theirs.load_cdf(starting_version=first, ending_version=end).read_all()
            expected = pa.table(found).select(names).cast(ours.schema)
            assert sorted(map(str, ours.to_pylist())) == sorted(map(str, expected.to_pylist()))
    assert last == 5


@pytest.mark.skipif(DAT is None, reason="OPTIMIST_DAT names no folder of real tables")
def test_the_changes_of_a_table_written_by_delta_spark():
    log = DeltaLog.for_path(str(Path(DAT or "", "cdf", "delta")))
    found = log.changes(starting_version=0)
    versions = found["_commit_version"].to_pylist()
    assert (versions.count(1), versions.count(2)) == (5, 4)
    deleted = log.changes("_change_type = 'delete'", ["letter"], starting_version=2)
    assert deleted["letter"].to_pylist() == ["a"] * 4


# Which versions


@pytest.fixture
def three(feed_table):
    """Versions 0 to 3, an hour apart, each but the first with the row of its number."""
    table = feed_table()
    for number in (1, 2, 3):
        table.commit(table.file([number]))
    for version in range(4):
        table.set_time(version, version * HOUR_MS)
    return table


@pytest.mark.parametrize(
    ("start_ms", "end_ms", "expected"),
    [
        (0, None, [1, 2, 3]),
        (-5, HOUR_MS, [1]),
        (HOUR_MS, 2 * HOUR_MS, [1, 2]),
        (HOUR_MS + 1, 3 * HOUR_MS, [2, 3]),
        (HOUR_MS + 1, 3 * HOUR_MS - 1, [2]),
        (HOUR_MS + 1, HOUR_MS + 2, []),
        (3 * HOUR_MS, None, [3]),
    ],
)
def test_bounds_in_time_take_the_commits_between_them(three, start_ms, end_ms, expected):
    found = three.log.changes(starting_timestamp=start_ms, ending_timestamp=end_ms)
    assert sorted(found["_commit_version"].to_pylist()) == expected


def test_times_may_be_text_and_stand_beside_a_version(three):
    found = three.log.changes(starting_version=2, ending_timestamp="1970-01-01 02:30:00")
    assert found["id"].to_pylist() == [2]
    assert [str(time) for time in found["_commit_timestamp"].to_pylist()] == [
        "1970-01-01 02:00:00+00:00"
    ]


def test_an_end_above_the_newest_version_is_the_newest_version(three):
    assert changes(three, 3, 1000) == [(3, "insert", 3)]


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        ("DELTA_NO_START_FOR_CDC_READ", {}),
        ("DELTA_NO_START_FOR_CDC_READ", {"ending_version": 2}),
        ("DELTA_MULTIPLE_CDC_BOUNDARY", {"starting_version": 1, "starting_timestamp": 1}),
        (
            "DELTA_MULTIPLE_CDC_BOUNDARY",
            {"starting_version": 1, "ending_version": 2, "ending_timestamp": 1},
        ),
        ("DELTA_INVALID_CDC_RANGE", {"starting_version": 2, "ending_version": 1}),
        (
            "DELTA_INVALID_CDC_RANGE",
            {"starting_timestamp": 2 * HOUR_MS, "ending_timestamp": HOUR_MS},
        ),
        (
            "DELTA_INVALID_CDC_RANGE",
            {"starting_timestamp": HOUR_MS + 2, "ending_timestamp": HOUR_MS + 1},
        ),
        ("DELTA_TIMESTAMP_INVALID", {"starting_timestamp": "yesterday"}),
    ],
)
def test_bounds_that_make_no_range_are_refused(three, kind, arguments):
    assert isinstance(refused(kind, three.log.changes, **arguments), UsageError)


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        ("DELTA_CDC_START_VERSION_AFTER_LATEST", {"starting_version": 4}),
        ("DELTA_TIMESTAMP_GREATER_THAN_COMMIT", {"starting_timestamp": 3 * HOUR_MS + 1}),
        (
            "DELTA_TIMESTAMP_GREATER_THAN_COMMIT",
            {"starting_version": 1, "ending_timestamp": 3 * HOUR_MS + 1},
        ),
        (
            "DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION",
            {"starting_version": 0, "ending_timestamp": -1},
        ),
        ("DELTA_VERSION_NOT_FOUND", {"starting_version": -1}),
    ],
)
def test_bounds_outside_the_log_are_refused(three, kind, arguments):
    assert isinstance(refused(kind, three.log.changes, **arguments), TableError)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"starting_version": 4}, []),
        ({"starting_timestamp": 3 * HOUR_MS + 1}, []),
        ({"starting_version": 2, "ending_timestamp": 9 * HOUR_MS}, [2, 3]),
    ],
)
def test_bounds_after_the_newest_commit_are_no_error_where_the_option_says_so(
    three, arguments, expected
):
    found = three.handle(LENIENT).changes(**arguments)
    assert sorted(found["id"].to_pylist()) == expected
    assert found.schema.names[-3:] == ["_change_type", "_commit_version", "_commit_timestamp"]


def test_a_start_whose_table_can_not_be_loaded_is_refused_and_not_moved(three):
    three.log.checkpoint()
    three.commit(three.file([4]))
    three.commit_file(0).unlink()
    log = three.handle()
    for start in ({"starting_version": 1}, {"starting_timestamp": 0}):
        error = refused("DELTA_TRUNCATED_TRANSACTION_LOG", log.changes, **start)
        assert (error.fields["version"], error.fields["earliest"]) == (1, 3)
    assert [row[0] for row in changes(three, 3)] == [3, 4]


def test_a_commit_that_was_cleaned_up_is_an_error_that_names_what_is_left(three):
    three.log.checkpoint()
    for version in range(3):
        three.commit_file(version).unlink()
    three.commit(three.file([4]))
    error = refused("DELTA_VERSION_NOT_FOUND", three.handle().changes, starting_version=1)
    assert (error.fields["earliest"], error.fields["latest"]) == (3, 4)
    found = three.handle().changes(starting_version=3)
    assert sorted(found["id"].to_pylist()) == [3, 4]


def test_in_commit_timestamps_are_the_times_of_the_commits_that_have_them(feed_table):
    names = {
        "delta.enableInCommitTimestamps": "true",
        "delta.inCommitTimestampEnablementVersion": "2",
        "delta.inCommitTimestampEnablementTimestamp": "5000",
    }
    table = feed_table()
    table.commit(table.file([1]))
    info = CommitInfo(operation="WRITE", in_commit_timestamp=5000)
    protocol = Protocol(1, 7, None, ("changeDataFeed", "inCommitTimestamp"))
    on = replace(table.metadata, configuration={**FEED, **names})
    table.commit(info, protocol, on, table.file([2]))
    table.set_time(0, 1000)
    table.set_time(1, 1000)
    found = table.log.changes(columns=["id", "_commit_timestamp"], starting_version=0)
    times = {row["id"]: row["_commit_timestamp"].timestamp() for row in found.to_pylist()}
    assert times == {1: 1.001, 2: 5.0}
    table.commit(table.file([3]))
    refused("DELTA_MISSING_COMMIT_TIMESTAMP", table.handle().changes, starting_version=3)


# What is refused


@pytest.mark.parametrize(("first", "last", "off_at"), [(0, 1, 0), (1, 1, 1), (1, 3, 1), (2, 4, 4)])
def test_versions_without_the_feed_are_named(feed_table, first, last, off_at):
    table = feed_table(configuration={})
    off = table.metadata
    table.commit(table.file([1]))
    table.commit(replace(off, configuration=FEED), table.file([2]))
    table.commit(table.file([3]))
    table.commit(off)
    assert changes(table, 2, 3) == [(2, "insert", 2), (3, "insert", 3)]
    error = refused(
        "DELTA_MISSING_CHANGE_DATA",
        table.log.changes,
        starting_version=first,
        ending_version=last,
    )
    assert (error.fields["version"], error.fields["start"]) == (off_at, first)


def schema_of(**types):
    fields = [
        {"name": name, "type": kind, "nullable": True, "metadata": {}}
        for name, kind in types.items()
    ]
    return json.dumps({"type": "struct", "fields": fields})


def test_a_column_added_on_the_way_is_null_before(feed_table):
    table = feed_table()
    table.commit(table.file([1]))
    table.commit(replace(table.metadata, schema_string=schema_of(id="long", x="string")))
    assert changes(table, 0, None, "id", "x") == [(1, "insert", 1, None)]
    assert table.log.changes(starting_version=0, ending_version=1).schema.names[:2] == [
        "id",
        "_change_type",
    ]


@pytest.mark.parametrize(
    ("schema", "partitions", "column"),
    [
        (schema_of(other="long"), (), "id"),
        (schema_of(id="string"), (), "id"),
        (schema_of(id="integer"), (), "id"),
        (schema_of(id={"type": "struct", "fields": []}), (), "id"),
        (schema_of(id="long", p="string"), ("p",), ""),
    ],
)
def test_a_schema_that_changed_too_much_is_refused(feed_table, schema, partitions, column):
    table = feed_table()
    table.commit(table.file([1]))
    changed = replace(table.metadata, schema_string=schema, partition_columns=partitions)
    table.commit(changed)
    error = refused(
        "DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_SCHEMA_CHANGE", table.log.changes, starting_version=0
    )
    assert isinstance(error, SchemaError)
    assert (error.fields["version"], error.fields["final_version"]) == (1, 2)
    assert error.fields["column"] == column
    assert changes(table, 0, 1) == [(1, "insert", 1)]
    assert table.log.changes(starting_version=2).num_rows == 0


def mapped(name, physical):
    metadata = {"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": physical}
    return {"name": name, "type": "long", "nullable": True, "metadata": metadata}


def mapped_table(feed_table, mode):
    """Columns are mapped from version 1 on; the files' column `id` is the table's `key`."""
    table = feed_table()
    on = {**FEED, "delta.columnMapping.mode": mode, "delta.columnMapping.maxColumnId": "1"}
    schema = json.dumps({"type": "struct", "fields": [mapped("key", "id")]})
    features = ("columnMapping", "changeDataFeed")
    metadata = replace(table.metadata, schema_string=schema, configuration=on)
    table.commit(Protocol(2, 7, None, features), metadata)
    return table, metadata


def test_mapped_columns_are_found_in_files_of_both_kinds(feed_table):
    table, _ = mapped_table(feed_table, "name")
    first = table.file([1, 2])
    table.commit(first)
    table.commit(table.removal(first), table.changes([(1, "delete"), (2, "delete")]))
    found = table.log.changes(starting_version=2)
    assert found.schema.names[:2] == ["key", "_change_type"]
    assert sorted(found["key"].to_pylist()) == [1, 1, 2, 2]


def test_a_renamed_column_is_refused_although_its_files_are_the_same(feed_table):
    table, metadata = mapped_table(feed_table, "name")
    table.commit(table.file([1]))
    schema = json.dumps({"type": "struct", "fields": [mapped("code", "id")]})
    table.commit(replace(metadata, schema_string=schema))
    error = refused(
        "DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_SCHEMA_CHANGE", table.log.changes, starting_version=1
    )
    assert error.fields["column"] == "key"
    assert "renamed to code" in str(error)
    assert changes(table, 1, 2, "key") == [(2, "insert", 1)]


def test_widened_columns_are_read_as_they_are_at_the_end(feed_table):
    table = feed_table()
    narrow = replace(table.metadata, schema_string=schema_of(id="long", n="integer"))
    wide = replace(table.metadata, schema_string=schema_of(id="long", n="long"))
    table.commit(narrow)
    file = table.file([1], n=pa.array([7], pa.int32()))
    table.commit(file)
    features = ("typeWidening",)
    table.commit(Protocol(3, 7, features, (*features, "changeDataFeed")), wide)
    found = table.log.changes(starting_version=1)
    assert (found["n"].to_pylist(), found.schema.field("n").type) == ([7], pa.int64())


@pytest.mark.parametrize(
    ("before", "after", "is_readable"),
    [
        ("byte", "short", True),
        ("short", "double", True),
        ("float", "double", True),
        ("long", "double", False),
        ("long", "integer", False),
        ("integer", "decimal(10,0)", True),
        ("integer", "decimal(10,1)", False),
        ("long", "decimal(20,0)", True),
        ("decimal(5,2)", "decimal(7,3)", True),
        ("decimal(5,2)", "decimal(5,3)", False),
        ("date", "timestamp_ntz", True),
        ("date", "timestamp", False),
        ("void", "string", True),
        ({"type": "array", "elementType": "integer", "containsNull": True}, "integer", False),
        (
            {"type": "array", "elementType": "integer", "containsNull": True},
            {"type": "array", "elementType": "long", "containsNull": False},
            True,
        ),
        (
            {"type": "map", "keyType": "date", "valueType": "long", "valueContainsNull": True},
            {"type": "map", "keyType": "date", "valueType": "byte", "valueContainsNull": True},
            False,
        ),
        (json.loads(schema_of(a="long", b="date")), json.loads(schema_of(a="long")), False),
        (json.loads(schema_of(a="long")), json.loads(schema_of(B="date", A="long")), True),
    ],
)
def test_types_that_may_follow_one_another(before, after, is_readable):
    earlier = Metadata("id", schema_of(x=before))
    final = Metadata("id", schema_of(x=after, y="long"))
    told = []
    try:
        ensure_reads_as(earlier, final, version=3, final_version=7)
    except SchemaError as error:
        told.append(error.fields["column"].partition(".")[0])
    assert told == ([] if is_readable else ["x"])


def test_columns_with_the_feed_s_names_are_refused(feed_table):
    table = feed_table()
    table.commit(
        replace(table.metadata, schema_string=schema_of(id="long", _commit_version="long"))
    )
    error = refused(
        "DELTA_TABLE_ALREADY_CONTAINS_CDC_COLUMNS", table.log.changes, starting_version=0
    )
    assert error.fields["columns"] == ("_commit_version",)


def test_a_feature_unknown_to_us_in_the_middle_is_refused_by_name(feed_table):
    table = feed_table()
    table.commit(Protocol(3, 7, ("novel",), ("novel", "changeDataFeed")))
    table.commit(Protocol(1, 4), table.file([1]))
    assert changes(table, 2) == [(2, "insert", 1)]
    error = refused("DELTA_UNSUPPORTED_FEATURES_FOR_READ", table.log.changes, starting_version=0)
    assert isinstance(error, ProtocolError)
    assert (error.fields["unsupported"], error.fields["version"]) == (("novel",), 1)


def test_a_data_file_that_vacuum_took_is_named(feed_table):
    table = feed_table()
    table.commit(table.file([1]))
    assert table.remove_data_files() == 1
    error = refused("DELTA_FILE_NOT_FOUND_DETAILED", table.log.changes, starting_version=0)
    assert "part-" in str(error.fields["path"])


def test_a_commit_torn_in_the_middle_of_the_range_is_an_error(feed_table):
    table = feed_table()
    table.commit(table.file([1]))
    feed = table.handle()
    feed.snapshot()
    table.commit_file(1).write_bytes(b'{"add":{"path":"x')
    refused("OPTIMIST_MALFORMED_COMMIT", feed.changes, starting_version=0)
