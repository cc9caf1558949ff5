"""Streams of the change data feed: what each commit changed, in whole commits (spec 11.3)."""

import shutil
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optimist.core import DeltaLog, NewColumn
from optimist.core.errors import OptimistError
from optimist.core.log.file_table import add_files
from optimist.core.log.names import commit_path
from optimist.core.protocol.actions import RemoveFile, action_to_json
from optimist.core.snapshot.local_scan import to_arrow
from optimist.core.snapshot.one_version import load_version
from optimist.core.streams.offset import StreamOffset
from optimist.core.streams.options import StreamOptions
from optimist.core.streams.planner import StreamPlanner

FEED = {"delta.enableChangeDataFeed": "true"}
VECTORS = {"delta.enableDeletionVectors": "true"}
STEPS = ("append", "append", "delete row", "update", "delete file", "optimize", "look", "restart")


def add(log, *ids):
    log.append(pa.table({"id": pa.array(ids, pa.int64()), "n": pa.array([0] * len(ids))}))


def rows(tables):
    found = [row for table in tables for row in table.to_pylist()]
    return sorted(
        (row["_commit_version"], row["_change_type"], row["id"], row["n"]) for row in found
    )


def followed(log, position=None, **options):
    items = list(log.follow(position, changes=True, **options))
    return rows(item.to_arrow() for item in items), items[-1].position if items else position


def stream(log, **options):
    given_options = {"readChangeFeed": "true", **options}
    fresh = DeltaLog.for_path(log.table_path, {})
    return StreamPlanner.of(fresh.table, StreamOptions.parse(given_options, int), fresh.snapshot)


def batches(planner, start=None):
    """The rows of each batch to come, and where the last one ends."""
    found = []
    while (end := planner.latest_offset(start, planner.capacity())) != start:
        found.append(rows(to_arrow(view) for view in planner.views_between(start, end)))
        start = end
    return found, start


def refused(kind, ask):
    with pytest.raises(OptimistError) as caught:
        ask()
    assert caught.value.kind == kind
    return caught.value


@pytest.fixture(params=[{}, VECTORS], ids=["files", "vectors"])
def log(request, tmp_path):
    """A table of version 0 with the rows 0 and 1, and its feed on since version 1."""
    found = DeltaLog.for_path(tmp_path / "table", {})
    add(found, 0, 1)
    found.alter.set_properties({**FEED, **request.param})
    return found


# What comes


def test_the_whole_table_comes_as_inserts_and_then_each_change(log):
    first, position = followed(log)
    assert first == [(1, "insert", 0, 0), (1, "insert", 1, 0)]
    log.update(set={"n": 7}, predicate="id = 1")
    log.delete("id = 0")
    add(log, 2)
    log.optimize()
    assert followed(log, position)[0] == [
        (2, "update_postimage", 1, 7),
        (2, "update_preimage", 1, 0),
        (3, "delete", 0, 0),
        (4, "insert", 2, 0),
    ]


def test_the_rows_have_the_times_that_a_batch_read_gives_them(log):
    (whole,) = log.follow(changes=True)
    add(log, 2)
    (commit,) = log.follow(whole.position, changes=True)
    expected = log.changes(starting_version=1)["_commit_timestamp"].to_pylist()
    assert commit.to_arrow()["_commit_timestamp"].to_pylist() == expected
    moment = datetime.fromtimestamp(log.snapshot(version=1).timestamp_ms / 1000, timezone.utc)
    assert set(whole.to_arrow()["_commit_timestamp"].to_pylist()) == {moment}


@pytest.mark.parametrize("start", ["version", "time", "latest"])
def test_a_start_leaves_out_what_came_before(log, start):
    add(log, 2)
    time_ms = log.snapshot().timestamp_ms
    given_start = {
        "version": {"starting_version": 2},
        "time": {"starting_timestamp": time_ms},
        "latest": {"starting_version": "latest"},
    }[start]
    found, position = followed(log, **given_start)
    assert found == ([] if start == "latest" else [(2, "insert", 2, 0)])
    add(log, 3)
    assert followed(log, position)[0] == [(3, "insert", 3, 0)]


def test_positions_are_those_of_delta_s_streams(log):
    _, position = followed(log)
    assert position == (
        f'{{"sourceVersion":1,"reservoirId":"{log.metadata.id}","reservoirVersion":2,"index":-1,'
        '"isStartingVersion":false}'
    )


# How much a batch takes


def test_commits_that_change_rows_come_whole_and_at_least_one(log):
    _, position = batches(stream(log))
    log.update(set={"n": 7}, predicate="id < 2")
    log.optimize()  # which has no changes, and costs nothing
    add(log, 10)
    log.delete("true")
    for limit in ({"maxFilesPerTrigger": "1"}, {"maxBytesPerTrigger": "1"}):
        found, _ = batches(stream(log, **limit), position)
        versions = [sorted({row[0] for row in batch}) for batch in found if batch]
        told = dict.fromkeys(version for batch in versions for version in batch)
        assert list(told) in ([2, 4, 5], [2, 3, 4])
        assert all(len(batch) == 1 for batch in versions)
    assert len(batches(stream(log), position)[0]) == 1


@pytest.fixture
def parted(tmp_path):
    """A table of two commits with three files each, and one that removes them all."""
    found = DeltaLog.for_path(tmp_path / "parted", {})
    files = pa.table({"id": pa.array([0, 1, 2]), "n": pa.array([0, 1, 2])})
    found.create(files.schema, partition_by=["n"], properties=FEED)
    found.append(files)
    found.append(files)
    return found


@pytest.mark.parametrize("start", [{}, {"startingVersion": "1"}])
def test_commits_that_add_files_come_file_by_file(parted, start):
    planner = stream(parted, maxFilesPerTrigger="2", **start)
    found, position = batches(planner)
    assert [len(batch) for batch in found] == [2, 2, 2]
    assert len({row for batch in found for row in batch}) == (6 if start else 3)
    parted.delete("n < 9")
    found, _ = batches(stream(parted, maxFilesPerTrigger="4"), position)
    assert [len(batch) for batch in found] == [4, 2]
    assert sorted(row for batch in found for row in batch) == sorted(
        (3, "delete", number, number) for number in (0, 0, 1, 1, 2, 2)
    )


def test_places_that_delta_spark_writes_are_gone_on_from(parted):
    parted.delete("n < 9")
    table_id = parted.metadata.id
    # delta-spark 4.4.0 ends a batch with the place of the last file.
    places = ((1, 0, 2 + 3 + 6), (1, 2, 3 + 6), (2, 1, 1 + 6), (3, 0, 5), (3, 3, 2), (3, 5, 0))
    for version, index, rest in places:
        start = StreamOffset(table_id, version, index, is_initial=False)
        found, end = batches(stream(parted), start)
        assert sum(map(len, found)) == rest
        assert end == StreamOffset.before(table_id, 4)
    end = StreamOffset(table_id, 3, 5, is_initial=False)
    views = stream(parted).views_between(StreamOffset(table_id, 1, 1, is_initial=False), end)
    assert len(rows(to_arrow(view) for view in views)) == 1 + 3 + 6


def test_adds_and_removes_of_a_commit_are_counted_as_they_come_in_it(parted):
    """delta-spark counts each `add` and `remove` that changes rows, in the order of the lines."""
    last = parted.snapshot().version
    old = list(add_files(parted.files()))
    new = replace(old[0], path="n=0/more.parquet", data_change=True)
    shutil.copy(Path(parted.table_path, old[0].path), Path(parted.table_path, new.path))
    moved = [replace(old[5], data_change=False), RemoveFile(old[5].path, 0, False)]
    removes = [RemoveFile(item.path, 0, True) for item in old[:3]]
    lines = [*moved, removes[0], new, *removes[1:]]
    path = commit_path(parted.log_path, last + 1)
    parted.store.put_if_absent(path, b"\n".join(action_to_json(x).encode() for x in lines))
    table_id = parted.metadata.id
    whole = [("delete", item.partition_values["n"]) for item in old[:3]]
    whole.insert(1, ("insert", "0"))
    for index in range(4):
        start = StreamOffset(table_id, last + 1, index, is_initial=False)
        found, _ = batches(stream(parted, maxFilesPerTrigger="1"), start)
        told = [(row[1], str(row[3])) for batch in found for row in batch]
        assert told == whole[index + 1 :]
        end = StreamOffset(table_id, last + 1, index, is_initial=False)
        begin = StreamOffset.before(table_id, last + 1)
        views = stream(parted).views_between(begin, end)
        assert len(rows(to_arrow(view) for view in views)) == index + 1


def test_commits_with_vectors_or_files_of_changes_are_not_parted(log):
    log.update(set={"n": 7}, predicate="id = 1")
    log.delete("id = 0")
    table_id = log.metadata.id
    for version in (2, 3):
        start = StreamOffset(table_id, version, 0, is_initial=False)
        found, _ = batches(stream(log), start)
        assert {row[0] for batch in found for row in batch} <= {version + 1}


def test_files_that_a_regular_expression_matches_are_passed_over(log):
    _, position = followed(log)
    log.update(set={"n": 7}, predicate="id = 1")
    add(log, 2)
    assert followed(log, position, excludeRegex="parquet|bin")[0] == []
    assert followed(log, excludeRegex="parquet|bin")[0] == []


def test_options_for_commits_that_remove_rows_have_no_effect(log):
    _, position = followed(log)
    log.delete("id = 0")
    for option in ("ignoreDeletes", "ignoreChanges", "skipChangeCommits"):
        found = followed(log, position, **{option: True})[0]
        assert found == [(2, "delete", 0, 0)]


# What stops it


def test_a_table_without_a_feed_is_refused(tmp_path):
    log = DeltaLog.for_path(tmp_path / "table", {})
    add(log, 0)
    assert refused("DELTA_MISSING_CHANGE_DATA", lambda: followed(log)).fields["version"] == 0
    refused("DELTA_MISSING_CHANGE_DATA", lambda: followed(log, starting_version=0))


def test_a_feed_that_is_turned_off_stops_the_stream_after_what_came_before(log):
    planner = stream(log)
    _, position = batches(planner)
    add(log, 2)
    log.alter.set_properties({"delta.enableChangeDataFeed": "false"})
    end = planner.latest_offset(position, planner.capacity())
    found = rows(to_arrow(view) for view in planner.views_between(position, end))
    assert found == [(2, "insert", 2, 0)]
    error = refused("DELTA_MISSING_CHANGE_DATA", lambda: batches(planner, end))
    assert error.fields["version"] == 3


def test_lost_commits_stop_the_stream_unless_it_may_go_on_after_them(log):
    _, position = followed(log)
    add(log, 2)
    add(log, 3)
    log.checkpoint()
    add(log, 4)
    for version in (0, 1, 2):
        Path(commit_path(log.log_path, version)).unlink()
    refused("DELTA_MISSING_FILES_UNEXPECTED_VERSION", lambda: followed(log, position))
    found = followed(log, position, failOnDataLoss=False)[0]
    assert found == [(3, "insert", 3, 0), (4, "insert", 4, 0)]
    assert batches(stream(log, failOnDataLoss="false"), StreamOffset.from_json(position))[0] == [
        found
    ]


def test_changes_to_a_table_that_cannot_be_recreated_stop_the_stream_unless_allowed(log):
    _, position = followed(log)
    for number in (2, 3):
        add(log, number)
    log.checkpoint()
    add(log, 4)
    for version in (0, 1):  # the stream goes on with version 2, and no version before 3 is whole
        Path(commit_path(log.log_path, version)).unlink()
    error = refused("DELTA_TRUNCATED_TRANSACTION_LOG", lambda: followed(log, position))
    assert error.fields["version"] == 2
    assert followed(log, position, failOnDataLoss=False)[0] == [
        (2, "insert", 2, 0),
        (3, "insert", 3, 0),
        (4, "insert", 4, 0),
    ]


def test_a_hole_in_the_log_stops_the_stream_unless_it_may_go_on_after_it(log):
    _, position = followed(log)
    for number in (2, 3, 4):
        add(log, number)
    log.update(set={"n": 7}, predicate="id = 4")
    log.checkpoint()
    add(log, 5)
    Path(commit_path(log.log_path, 3)).unlink()
    expected = [
        (2, "insert", 2, 0),
        (4, "insert", 4, 0),
        (5, "update_postimage", 4, 7),
        (5, "update_preimage", 4, 0),
        (6, "insert", 5, 0),
    ]
    start = StreamOffset.from_json(position)
    for limit in ("1", "1000"):
        planner = stream(log, maxFilesPerTrigger=limit, failOnDataLoss="false")
        found, end = batches(planner, start)
        assert [row for batch in found for row in batch] == expected
        again = stream(log, failOnDataLoss="false").views_between(start, end)
        assert rows(to_arrow(view) for view in again) == expected
    assert followed(log, position, failOnDataLoss=False)[0] == expected
    # What is before the hole comes, and then the stream stops.
    kind = "DELTA_MISSING_FILES_UNEXPECTED_VERSION"
    planner = stream(log)
    end = planner.latest_offset(start, planner.capacity())
    before = rows(to_arrow(view) for view in planner.views_between(start, end))
    assert before == expected[:1]
    assert refused(kind, lambda: batches(planner, end)).fields["startVersion"] == 3
    refused(kind, lambda: followed(log, position))


def test_what_waits_is_read_without_loading_the_table_for_each_batch(log, monkeypatch):
    _, position = followed(log)
    for number in range(2, 8):
        add(log, number)
    log.alter.add_columns([NewColumn("more", "string")])
    log.update(set={"n": 7}, predicate="id = 7")
    loaded = []

    def load(table, version, *, latest=None):
        loaded.append(version)
        return load_version(table, version, latest=latest)

    monkeypatch.setattr("optimist.core.changes.feed.load_version", load)
    planner = stream(log, maxFilesPerTrigger="1")
    found, _ = batches(planner, StreamOffset.from_json(position))
    assert [row[:3] for batch in found for row in batch] == [
        *[(version, "insert", version) for version in range(2, 8)],
        (9, "update_postimage", 7),
        (9, "update_preimage", 7),
    ]
    assert loaded == [2]


def test_mapped_partitions_with_vectors_are_read_until_a_column_is_renamed(tmp_path):
    log = DeltaLog.for_path(tmp_path / "mapped", {})
    data = pa.table({"id": pa.array([0, 1, 2], pa.int64()), "p": ["a", "a", None]})
    log.append(data, partition_by=["p"])
    log.alter.set_properties({**FEED, **VECTORS, "delta.columnMapping.mode": "name"})
    log.delete("id = 1")
    (first,) = log.follow(changes=True)
    found = {(row["id"], row["p"]) for row in first.to_arrow().to_pylist()}
    assert found == {(0, "a"), (2, None)}
    log.delete("id = 0")
    (gone,) = log.follow(first.position, changes=True)
    assert [(row["id"], row["p"]) for row in gone.to_arrow().to_pylist()] == [(0, "a")]
    log.alter.rename_column("p", "q")
    refused(
        "DELTA_SCHEMA_CHANGED_WITH_VERSION",
        lambda: list(log.follow(first.position, changes=True)),
    )


def test_a_changed_schema_stops_the_stream_and_a_restart_reads_by_it(log):
    planner = stream(log)
    _, position = batches(planner)
    log.alter.add_columns([NewColumn("more", "string")])
    add(log, 2)
    error = refused("DELTA_SCHEMA_CHANGED_WITH_VERSION", lambda: batches(planner, position))
    assert error.fields["retryable"]
    assert batches(stream(log), position)[0] == [[(3, "insert", 2, 0)]]


def test_rows_that_the_newest_schema_does_not_fit_are_refused(log):
    log.alter.set_properties({"delta.columnMapping.mode": "name"})
    add(log, 2)
    version = log.snapshot().version
    log.alter.rename_column("n", "m")
    begin = {"startingVersion": str(version)}
    kind = "DELTA_SCHEMA_CHANGED_WITH_VERSION"
    refused(kind, lambda: batches(stream(log, **begin)))
    log.alter.rename_column("m", "n")
    assert batches(stream(log, startingVersion=str(version + 2)))[0] == [[]]


def test_a_table_with_columns_of_the_feed_s_names_is_refused(tmp_path):
    log = DeltaLog.for_path(tmp_path / "table", {})
    log.append(pa.table({"_change_type": ["insert"]}))
    kind = "DELTA_TABLE_ALREADY_CONTAINS_CDC_COLUMNS"
    assert "_change_type" in refused(kind, lambda: stream(log).stream_schema).fields["columns"]


@pytest.mark.parametrize("name", ["readChangeFeed", "readChangeData"])
def test_the_option_is_true_or_false(log, name):
    refused("DELTA_ILLEGAL_OPTION", lambda: StreamOptions.parse({name: "perhaps"}, int))
    assert StreamOptions.parse({name: "TRUE"}, int).read_changes
    assert not StreamOptions.parse({name: "false"}, int).read_changes


# All of it together


@given(
    steps=st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 9)), max_size=12),
    max_files=st.sampled_from(["1", "2", "1000"]),
    vectors=st.sampled_from([{}, VECTORS]),
    partition_by=st.sampled_from([[], ["id"]]),
    crashes=st.booleans(),
)
def test_a_stream_gives_every_change_once(
    tmp_path_factory, steps, max_files, vectors, partition_by, crashes
):
    log = DeltaLog.for_path(tmp_path_factory.mktemp("t") / "table", {})
    schema = pa.schema([("id", pa.int64()), ("n", pa.int64())])
    log.create(schema, partition_by=partition_by, properties={**FEED, **vectors})
    add(log, 0, 1)
    planner = stream(log, maxFilesPerTrigger=max_files)
    table, coming, next_id = {0: 0, 1: 0}, [], 2
    expected, found, position = [], [], None
    for step, number in [*steps, ("look", 0)]:
        version = log.snapshot().version + 1
        picked = sorted(table)[number % len(table)] if table else None
        if step == "append":
            add(log, next_id, next_id + 1)
            table |= {next_id: 0, next_id + 1: 0}
            coming += [(version, "insert", next_id + more, 0) for more in (0, 1)]
            next_id += 2
        elif step == "delete row" and table:
            log.delete(f"id = {picked}")
            coming.append((version, "delete", picked, table.pop(picked)))
        elif step == "delete file" and table:
            log.delete(f"id <= {picked}")
            gone = [key for key in table if key <= picked]
            coming += [(version, "delete", key, table.pop(key)) for key in gone]
        elif step == "update" and table:
            log.update(set={"n": version}, predicate=f"id = {picked}")
            coming.append((version, "update_preimage", picked, table[picked]))
            table[picked] = version
            coming.append((version, "update_postimage", picked, table[picked]))
        elif step == "optimize":
            log.optimize()
        elif step == "restart":
            planner = stream(log, maxFilesPerTrigger=max_files)
        elif step == "look":
            if position is None:
                coming = [(version - 1, "insert", key, n) for key, n in table.items()]
            expected, coming = expected + coming, []
            while (end := planner.latest_offset(position, planner.capacity())) != position:
                batch = rows(to_arrow(view) for view in planner.views_between(position, end))
                if crashes:
                    planner = stream(log, maxFilesPerTrigger=max_files)
                    again = planner.views_between(position, StreamOffset.from_json(end.to_json()))
                    assert rows(to_arrow(view) for view in again) == batch
                found, position = found + batch, end
    assert sorted(found) == sorted(expected)
