"""Streams that keep a log of schemas: where they stop, what they write, how they go on (11.5)."""

import json
from dataclasses import replace

import pyarrow as pa
import pytest

from optimist.core import ColumnChange, DeltaLog, NewColumn
from optimist.core.errors import OptimistError
from optimist.core.streams.offset import AFTER_CHANGE, BASE_INDEX, CHANGE
from optimist.core.streams.options import StreamOptions
from optimist.core.streams.planner import StreamPlanner
from optimist.core.testing.faulty_store import Fault, FaultyLogStore, When
from tracked_streams import (
    BLOCKED,
    EVOLVED,
    MAPPED,
    SOURCE,
    Query,
    add,
    dropped,
    entries,
    mapped_table,
    renamed,
    rows,
    stream,
)


@pytest.fixture
def log(tmp_path):
    return mapped_table(tmp_path / "table")


def test_the_schema_of_the_start_is_the_first_entry(log):
    query = Query(log)
    assert query.run() is None
    (entry,) = entries(log)
    assert (entry.version, entry.source_path, entry.table_id) == (1, SOURCE, log.metadata.id)
    assert entry.schema.names == ("id", "name")
    assert entry.configuration["delta.columnMapping.mode"] == "name"
    assert json.loads(entry.protocol)["protocol"]["minReaderVersion"] == 2
    assert query.seen == [{"id": 1, "name": "one"}]


def test_a_change_ends_the_batch_is_recorded_and_stops_the_stream_once(log):
    query = Query(log)
    query.run()
    add(log, id=2, name="two")
    log.alter.rename_column("name", "title")
    add(log, id=3, title="three")
    assert query.run() == EVOLVED
    assert query.places == [(2, BASE_INDEX), (3, CHANGE), (3, AFTER_CHANGE)]
    assert [entry.version for entry in entries(log)] == [1, 3]
    assert query.run() is None
    assert query.places[3:] == [(5, BASE_INDEX)]
    assert query.seen == [
        {"id": 1, "name": "one"},
        {"id": 2, "name": "two"},
        {"id": 3, "title": "three"},
    ]
    assert query.run() is None


CHANGES = {
    "rename": lambda log: log.alter.rename_column("name", "title"),
    "drop": lambda log: log.alter.drop_columns(["name"]),
    "add": lambda log: log.alter.add_columns([NewColumn("more", "int")]),
    "comment": lambda log: log.alter.change_columns([ColumnChange("name", comment="of it")]),
    "property": lambda log: log.alter.set_properties({"delta.logRetentionDuration": "60 days"}),
    "vectors": lambda log: log.alter.set_properties({"delta.enableDeletionVectors": "true"}),
}


@pytest.mark.parametrize("change", CHANGES)
def test_each_change_of_schema_properties_or_protocol_stops_the_stream(log, change):
    query = Query(log)
    query.run()
    CHANGES[change](log)
    add(log, id=2)
    assert query.run() == EVOLVED
    assert query.run() is None
    assert [row["id"] for row in query.seen] == [1, 2]


def test_properties_that_are_not_delta_s_do_not_stop_it(log):
    query = Query(log)
    query.run()
    log.alter.set_properties({"owner": "somebody"})
    add(log, id=2)
    assert query.run() is None
    assert len(entries(log)) == 1


NOTES = {
    "delta.identity.highWaterMark": 7,
    "delta.identity.start": 1,
    "delta.generationExpression": "id + 1",
}


@pytest.mark.parametrize("key", NOTES)
def test_what_only_writers_note_of_a_column_does_not_stop_it(log, key):
    # A table with identity columns has other metadata after each write.
    schema = stream(log).schema
    noted = replace(
        schema.metadata,
        schema_string=schema.metadata.schema_string.replace(
            '"metadata":{', f'"metadata":{{"{key}":{json.dumps(NOTES[key])},', 1
        ),
    )
    assert noted != schema.metadata
    assert schema.after(2, noted, None) is None
    assert schema.after(2, replace(noted, partition_columns=("id",)), None) is not None


# Changes that follow each other


def test_changes_without_rows_between_them_are_taken_up_at_once(log):
    query = Query(log)
    query.run()
    renamed(log)
    log.alter.add_columns([NewColumn("more", "int")])
    log.alter.drop_columns(["title"])
    add(log, id=2)
    log.alter.set_properties({"delta.enableDeletionVectors": "true"})
    assert query.run() == EVOLVED
    assert query.run({}) == BLOCKED  # named as one change, from the first to the last
    assert query.run() == EVOLVED
    assert [(entry.version, entry.previous) for entry in entries(log)] == [
        (1, None),
        (2, None),
        (4, 0),
        (6, None),
    ]
    assert query.run() is None
    assert query.seen == [{"id": 1, "name": "one"}, {"id": 2, "more": None}]


def test_they_are_taken_up_one_by_one_where_the_conf_says_so(log):
    one_by_one = "spark.databricks.delta.streaming.schemaTracking.mergeConsecutiveSchemaChanges"
    log = DeltaLog.for_path(log.table_path, {f"{one_by_one}.enabled": "false"})
    query = Query(log)
    query.run()
    renamed(log)
    log.alter.add_columns([NewColumn("more", "int")])
    assert [query.run() for _ in range(3)] == [EVOLVED, EVOLVED, None]
    assert [entry.version for entry in entries(log)] == [1, 2, 3]


def test_a_change_while_the_whole_table_is_read_waits_for_the_rest_of_it(log):
    add(log, id=2, name="two")
    log.alter.set_properties({"delta.logRetentionDuration": "60 days"})  # the start has no rows
    query = Query(log, maxFilesPerTrigger=1)
    planner = stream(log, maxFilesPerTrigger=1)
    query.offsets = [planner.latest_offset(None, planner.capacity())]
    query.seen, query.num_done = rows(log, planner.views_between(None, query.offsets[0])), 1
    dropped(log)
    assert query.run() == EVOLVED
    assert query.seen == [{"id": 1, "name": "one"}, {"id": 2, "name": "two"}]


@pytest.mark.parametrize("options", [{}, {"readChangeFeed": "true"}])
def test_a_change_that_brings_rows_is_parted_from_those_before_it(log, options):
    log.alter.set_properties({"delta.enableChangeDataFeed": "true"})
    query = Query(log, **options)
    query.run()
    add(log, id=2, name="two")
    with log.transaction() as step:
        step.alter.rename_column("name", "title")
        step.append(pa.table({"id": [3], "title": ["three"]}))
    assert [query.run() for _ in range(3)] == [EVOLVED, None, None]
    assert query.places[-3:] == [(4, CHANGE), (4, AFTER_CHANGE), (5, BASE_INDEX)]
    assert [(row["id"], row.get("name"), row.get("title")) for row in query.seen] == [
        (1, "one", None),
        (2, "two", None),
        (3, None, "three"),
    ]


def test_changes_of_rows_come_by_the_schema_of_their_commit(log):
    feed = {"delta.enableChangeDataFeed": "true", "delta.enableDeletionVectors": "true"}
    log.alter.set_properties(feed)
    query = Query(log, readChangeFeed="true")
    query.run()
    log.update(set={"name": "'uno'"}, predicate="id = 1")
    renamed(log)
    log.update(set={"title": "'eins'"}, predicate="id = 1")
    log.alter.drop_columns(["title"])
    log.delete("id = 1")
    assert [query.run() for _ in range(3)] == [EVOLVED, EVOLVED, None]
    assert {
        (row["_commit_version"], row["_change_type"], row.get("name"), row.get("title"))
        for row in query.seen
    } == {
        (2, "insert", "one", None),
        (3, "update_preimage", "one", None),
        (3, "update_postimage", "uno", None),
        (5, "update_preimage", None, "uno"),
        (5, "update_postimage", None, "eins"),
        (7, "delete", None, None),
    }
    assert len(query.seen) == 6


def test_partition_columns_are_renamed_like_others(tmp_path):
    log = DeltaLog.for_path(tmp_path / "table", {})
    schema = pa.schema([("id", pa.int64()), ("day", pa.string())])
    log.create(schema, partition_by=["day"], properties=MAPPED)
    add(log, id=1, day="monday")
    query = Query(log)
    query.run()
    add(log, id=2, day="tuesday")
    log.alter.rename_column("day", "weekday")
    add(log, id=3, weekday="friday")
    assert [query.run() for _ in range(2)] == [EVOLVED, None]
    assert query.seen == [
        {"id": 1, "day": "monday"},
        {"id": 2, "day": "tuesday"},
        {"id": 3, "weekday": "friday"},
    ]
    columns = [json.loads(entry.partition_schema)["fields"][0]["name"] for entry in entries(log)]
    assert columns == ["day", "weekday"]


def test_column_mapping_may_be_turned_on_under_a_stream(tmp_path):
    log = DeltaLog.for_path(tmp_path / "table", {})
    add(log, id=1, name="one")
    query = Query(log)
    query.run()
    add(log, id=2, name="two")
    log.alter.set_properties(MAPPED)
    add(log, id=3, name="three")
    renamed(log)
    add(log, id=4, title="four")
    assert [query.run() for _ in range(3)] == [EVOLVED, EVOLVED, None]
    assert query.seen == [
        {"id": 1, "name": "one"},
        {"id": 2, "name": "two"},
        {"id": 3, "name": "three"},
        {"id": 4, "title": "four"},
    ]


# Crashes


def test_a_crash_before_the_entry_comes_to_the_change_again(log):
    query = Query(log)
    query.run()
    renamed(log)
    add(log, id=2, title="two")
    log.alter.rename_column("title", "name")
    add(log, id=3, name="three")
    planner = stream(log)
    at_change = planner.latest_offset(query.offsets[-1], planner.capacity())
    after = planner.latest_offset(at_change, planner.capacity())
    assert [at_change.index, after.index] == [CHANGE, AFTER_CHANGE]
    query.offsets += [at_change, after]
    query.num_done = 2  # both are planned, and one is done; the entry is not written
    assert [query.run() for _ in range(3)] == [EVOLVED, EVOLVED, None]
    assert [entry.version for entry in entries(log)] == [1, 2, 4]
    assert query.seen[1:] == [{"id": 2, "title": "two"}, {"id": 3, "name": "three"}]


def test_a_run_that_sees_a_change_which_another_has_recorded_stops_alike(log):
    query = Query(log)
    query.run()
    renamed(log)
    add(log, id=2, title="two")
    twin = stream(log)
    assert query.run() == EVOLVED
    with pytest.raises(OptimistError) as caught:
        twin.done_with(query.offsets[1])
    assert caught.value.kind == EVOLVED
    assert len(entries(log)) == 2


@pytest.mark.parametrize("when", [When.BEFORE, When.AFTER])
def test_a_write_whose_answer_is_lost_is_sent_again(log, when):
    planner = stream(log)
    lost = FaultyLogStore(log.store, Fault("put_if_absent", when))
    planner.tracking.log = replace(planner.tracking.log, store=lost)
    planner.latest_offset(None, planner.capacity())
    assert lost.counts["put_if_absent"] == 2
    assert len(entries(log)) == 1


def test_a_stream_stops_where_it_is_unknown_whether_an_entry_is_written(log):
    planner = stream(log)
    lost = FaultyLogStore(log.store, Fault("put_if_absent", When.BEFORE, times=2))
    planner.tracking.log = replace(planner.tracking.log, store=lost)
    with pytest.raises(OptimistError) as caught:
        planner.latest_offset(None, planner.capacity())
    assert caught.value.kind == "OPTIMIST_WRITE_OUTCOME_UNKNOWN"
    assert Query(log).run() is None


def test_a_stream_that_has_read_nothing_yet_takes_up_a_log(log):
    """Its position is before version 0, which has no version before it."""
    options = {"startingTimestamp": 0}
    query = Query(log, **options)
    parsed = StreamOptions.parse({"startingTimestamp": "0"}, int)
    untracked = StreamPlanner.of(log.table, parsed, log.snapshot)
    begin = untracked.latest_offset(None, untracked.capacity())
    assert begin.sort_key == (0, BASE_INDEX)
    query.offsets, query.num_done = [begin], 1
    assert query.run() is None
    assert query.seen == [{"id": 1, "name": "one"}]
    assert [entry.version for entry in entries(log)] == [0]
