"""Streams that keep a log of schemas: where they stop, what they write, how they go on (11.5)."""

import json
from contextlib import suppress
from dataclasses import replace

import pyarrow as pa
import pytest

from optimist.core import ColumnChange, DeltaLog, NewColumn
from optimist.core.errors import OptimistError
from optimist.core.paths import join
from optimist.core.snapshot.local_scan import to_arrow
from optimist.core.streams.offset import AFTER_CHANGE, BASE_INDEX, CHANGE, StreamOffset
from optimist.core.streams.options import StreamOptions
from optimist.core.streams.planner import StreamPlanner
from optimist.core.streams.schema_log import SchemaLog
from optimist.core.streams.unblocked import Allowed
from optimist.core.testing.faulty_store import Fault, FaultyLogStore, When

MAPPED = {"delta.columnMapping.mode": "name"}
SOURCE = "file:/ck/sources/0"
EVOLVED = "DELTA_STREAMING_METADATA_EVOLUTION"
BLOCKED = "DELTA_STREAMING_CANNOT_CONTINUE_PROCESSING_POST_SCHEMA_EVOLUTION"
ALL = {
    "spark.databricks.delta.streaming.allowSourceColumnRenameAndDrop": "always",
    "spark.databricks.delta.streaming.allowSourceColumnTypeChange": "always",
}


@pytest.fixture
def log(tmp_path):
    """A table with two columns and one row, at version 1."""
    found = DeltaLog.for_path(tmp_path / "table", {})
    found.create(pa.schema([("id", pa.int64()), ("name", pa.string())]), properties=MAPPED)
    add(found, id=1, name="one")
    return found


def add(log, **row):
    log.append(pa.table({key: pa.array([value]) for key, value in row.items()}))


def schema_log(log, tracking_id=None):
    return SchemaLog.of(log.store, join(log.table_path, "../ck"), log.metadata.id, tracking_id)


def stream(log, conf=ALL, source=SOURCE, tracking_id=None, **options):
    """A new run of a stream, as a driver that starts makes it."""
    parsed = StreamOptions.parse({key: str(value) for key, value in options.items()}, int)
    planner = StreamPlanner.of(log.table, parsed, log.snapshot, schema_log(log, tracking_id))
    planner.tracking.begin(source, Allowed(parsed, conf), checks_path=True)
    return planner


def rows(views):
    return [row for view in views for row in to_arrow(view).to_pylist()]


class Query:
    """A stream as Spark drives it, with its checkpoint."""

    def __init__(self, log, **options):
        self.log, self.options = log, options
        self.offsets, self.num_done, self.seen = [], 0, []

    def run(self, conf=ALL, **options):
        """One run to its end or its error; the kind of the error."""
        try:
            self._run(stream(self.log, conf, **{**self.options, **options}))
        except OptimistError as error:
            return error.kind
        return None

    def _run(self, planner):
        while True:
            if self.num_done == len(self.offsets):
                start = self.offsets[-1] if self.offsets else None
                end = planner.latest_offset(start, planner.capacity())
                if end == start:
                    return
                self.offsets.append(end)
                if start is not None:
                    planner.done_with(start)
            start = self.offsets[-2] if len(self.offsets) > 1 else None
            self.seen += rows(planner.views_between(start, self.offsets[-1]))
            self.num_done += 1

    @property
    def places(self):
        return [offset.place for offset in self.offsets]


def entries(log):
    found, number = [], 0
    while (entry := schema_log(log).entry(number)) is not None:
        found.append(entry)
        number += 1
    return found


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


# What has to be allowed


def renamed(log):
    log.alter.rename_column("name", "title")


def dropped(log):
    log.alter.drop_columns(["name"])


def widened(log):
    log.alter.change_columns([ColumnChange("small", data_type="bigint")])


def renamed_and_dropped(log):
    log.alter.rename_column("name", "title")
    log.alter.drop_columns(["small"])


def renamed_and_widened(log):
    renamed(log)
    widened(log)


def dropped_and_widened(log):
    dropped(log)
    widened(log)


def all_three(log):
    log.alter.rename_column("id", "number")
    dropped_and_widened(log)


RENAME, DROP, WIDEN = (
    "allowSourceColumnRename",
    "allowSourceColumnDrop",
    "allowSourceColumnTypeChange",
)


@pytest.fixture
def blocked(tmp_path):
    """Gives a query over a table that has changed since, blocked by the change."""

    def start(change):
        log = DeltaLog.for_path(tmp_path / change.__name__, {})
        schema = pa.schema([("id", pa.int64()), ("name", pa.string()), ("small", pa.int32())])
        log.create(schema, properties={**MAPPED, "delta.enableTypeWidening": "true"})
        log.append(pa.table({"id": [1]}))
        query = Query(log)
        assert query.run() is None
        change(log)
        assert query.run() == EVOLVED
        return query, log.snapshot().version

    return start


@pytest.mark.parametrize(
    ("change", "needed", "name"),
    [
        (renamed, [RENAME], "RENAME COLUMN"),
        (dropped, [DROP], "DROP COLUMN"),
        (widened, [WIDEN], "TYPE WIDENING"),
        (renamed_and_dropped, [RENAME, DROP], "RENAME AND DROP COLUMN"),
        (renamed_and_widened, [RENAME, WIDEN], "RENAME AND TYPE WIDENING"),
        (dropped_and_widened, [DROP, WIDEN], "DROP AND TYPE WIDENING"),
        (all_three, [RENAME, DROP, WIDEN], "RENAME, DROP AND TYPE WIDENING"),
    ],
)
def test_a_stream_goes_on_once_all_that_was_changed_is_allowed(blocked, change, needed, name):
    query, version = blocked(change)
    with pytest.raises(OptimistError) as caught:
        stream(query.log, {})
    assert (caught.value.kind, caught.value.fields["opType"]) == (BLOCKED, name)
    assert caught.value.fields["currentSchemaChangeVersion"] == version
    for left_out in needed:
        others = {key: "always" for key in (RENAME, DROP, WIDEN) if key != left_out}
        assert query.run({}, **others) == BLOCKED
        assert query.run({}, **others, **{left_out: version - 1}) == BLOCKED
    assert query.run({}, **dict.fromkeys(needed, version)) is None
    assert query.run({}) == BLOCKED  # as long as this is the last change
    assert query.run({}, **dict.fromkeys(needed, "always")) is None


# "file:/ck/sources/0".hashCode() in Java
CHECKPOINT = "ckpt_-1531015453"


@pytest.mark.parametrize(
    ("change", "keys"),
    [
        (renamed, (RENAME, "allowSourceColumnRenameAndDrop")),
        (dropped, (DROP, "allowSourceColumnRenameAndDrop")),
        (widened, (WIDEN,)),
    ],
)
def test_the_conf_allows_changes_for_all_streams_or_for_one(blocked, change, keys):
    query, version = blocked(change)
    for key in keys:
        name = f"spark.databricks.delta.streaming.{key}"
        for conf in (
            {name: "always"},
            {name: "ALWAYS"},
            {f"{name}.{CHECKPOINT}": "always"},
            {f"{name}.{CHECKPOINT}": str(version)},
        ):
            assert query.run(conf) is None
        for conf in ({name: str(version)}, {name: "true"}, {f"{name}.{CHECKPOINT}": "1"}):
            assert query.run(conf) == BLOCKED
    others = {RENAME, DROP, WIDEN, "allowSourceColumnRenameAndDrop"} - set(keys)
    assert query.run({f"spark.databricks.delta.streaming.{key}": "always" for key in others}) == (
        BLOCKED
    )


def test_a_column_of_another_type_stops_the_stream_for_good(log):
    query = Query(log)
    query.run()
    (entry,) = entries(log)
    other = replace(entry, version=2, data_schema=entry.data_schema.replace("long", "string"))
    schema_log(log).add(1, other)
    assert query.run() == "DELTA_SCHEMA_CHANGED_WITH_VERSION"


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
    query.seen, query.num_done = rows(planner.views_between(None, query.offsets[0])), 1
    dropped(log)
    assert query.run() == EVOLVED
    assert query.seen == [{"id": 1, "name": "one"}, {"id": 2, "name": "two"}]


# Where a stream begins


def test_a_start_before_a_change_is_read_by_the_schema_of_then(log):
    renamed(log)
    add(log, id=2, title="two")
    query = Query(log, startingVersion=1)
    assert query.run() == EVOLVED  # the frame had the new one
    assert query.run() == EVOLVED  # at the change
    assert query.run() is None
    assert query.seen == [{"id": 1, "name": "one"}, {"id": 2, "title": "two"}]


def test_a_start_that_is_latest_begins_its_log_with_the_newest_version(log):
    query = Query(log, startingVersion="latest")
    assert query.run() is None
    renamed(log)
    add(log, id=2, title="two")
    assert query.run() == EVOLVED
    assert query.run() is None
    assert query.seen == [{"id": 2, "title": "two"}]
    assert [entry.version for entry in entries(log)] == [1, 2]


def test_a_table_that_changed_before_the_first_batch_was_planned_is_begun_anew(log):
    begun_only(log)
    dropped(log)
    query = Query(log)
    assert query.run({}) == EVOLVED
    assert query.run({}) is None  # no row was given by what is dropped
    assert [(entry.version, entry.previous) for entry in entries(log)] == [(1, None), (2, -1)]
    assert query.seen == [{"id": 1}]


def begun_only(log, **options):
    """A run whose driver dies before it has planned a batch."""
    planner = stream(log, **options)
    with suppress(OptimistError):
        planner.latest_offset(None, planner.capacity())


def test_a_start_at_latest_that_moved_past_a_change_is_begun_anew(log):
    begun_only(log, startingVersion="latest")
    renamed(log)
    query = Query(log, startingVersion="latest")
    assert query.run({}) == EVOLVED
    assert query.run({}) is None
    add(log, id=2, title="two")
    assert query.run({}) is None
    assert query.seen == [{"id": 2, "title": "two"}]


def test_a_start_that_is_moved_across_a_change_before_any_batch_is_begun_anew(log):
    renamed(log)
    add(log, id=2, title="two")
    begun_only(log, startingVersion=1)
    query = Query(log, startingVersion=3)
    assert [query.run({}) for _ in range(2)] == [EVOLVED, None]
    assert query.seen == [{"id": 2, "title": "two"}]


def test_a_start_that_is_moved_back_across_a_change_is_begun_anew(log):
    renamed(log)
    add(log, id=2, title="two")
    begun_only(log, startingVersion=3)
    query = Query(log, startingVersion=1)
    assert [query.run() for _ in range(3)] == [EVOLVED, EVOLVED, None]
    assert query.seen == [{"id": 1, "name": "one"}, {"id": 2, "title": "two"}]


def test_a_stream_that_ran_without_a_log_begins_it_where_it_is(log):
    plain = StreamPlanner.of(log.table, StreamOptions(), log.snapshot)
    start = plain.latest_offset(None, plain.capacity())
    query = Query(log)
    query.offsets, query.num_done = [start], 1
    renamed(log)
    assert query.run() == EVOLVED  # the frame had the new schema
    add(log, id=2, title="two")
    assert query.run() == EVOLVED
    assert query.run() is None
    assert query.seen == [{"id": 2, "title": "two"}]
    assert [entry.version for entry in entries(log)] == [1, 2]


def test_a_planned_batch_across_changes_begins_the_log_if_one_schema_fits_it(log):
    plain = StreamPlanner.of(log.table, StreamOptions(), log.snapshot)
    start = plain.latest_offset(None, plain.capacity())
    log.alter.add_columns([NewColumn("more", "int")])
    add(log, id=2)
    query = Query(log)
    query.offsets, query.num_done = [start, StreamOffset.before(log.metadata.id, 4)], 1
    assert query.run() is None
    assert query.seen == [{"id": 2, "name": None, "more": None}]
    assert [entry.version for entry in entries(log)] == [3]


def test_a_planned_batch_across_changes_that_no_schema_fits_is_refused(log):
    plain = StreamPlanner.of(log.table, StreamOptions(), log.snapshot)
    start = plain.latest_offset(None, plain.capacity())
    renamed(log)
    add(log, id=2)
    query = Query(log)
    query.offsets, query.num_done = [start, StreamOffset.before(log.metadata.id, 4)], 1
    assert query.run() == "DELTA_STREAMING_SCHEMA_LOG_INIT_FAILED_INCOMPATIBLE_METADATA"
    assert entries(log) == []


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


# Damage, and logs of others


def test_a_log_of_another_source_is_refused_unless_the_conf_lets_it(log):
    Query(log).run()
    with pytest.raises(OptimistError) as caught:
        stream(log, source="file:/ck/sources/1")
    assert caught.value.kind == "OPTIMIST_SCHEMA_LOG_OF_ANOTHER_STREAM"
    parsed = StreamOptions()
    planner = StreamPlanner.of(log.table, parsed, log.snapshot, schema_log(log))
    planner.tracking.begin("elsewhere", Allowed(parsed, {}), checks_path=False)


def test_two_sources_with_one_log_conflict_and_with_ids_have_two(log):
    first, second = stream(log), stream(log, source="file:/ck/sources/1")
    first.latest_offset(None, first.capacity())
    with pytest.raises(OptimistError) as caught:
        second.latest_offset(None, second.capacity())
    assert caught.value.kind == "DELTA_STREAMING_SCHEMA_LOCATION_CONFLICT"
    third = stream(log, source="file:/ck/sources/1", tracking_id="b")
    third.latest_offset(None, third.capacity())
    assert schema_log(log, "b").path == schema_log(log).path + "_b"
    assert schema_log(log, "b").entry(0).source_path == "file:/ck/sources/1"


@pytest.mark.parametrize(
    ("damage", "kind"),
    [
        (lambda text: text[: len(text) // 2], "DELTA_STREAMING_SCHEMA_LOG_DESERIALIZE_FAILED"),
        (lambda _: "", "DELTA_STREAMING_SCHEMA_LOG_DESERIALIZE_FAILED"),
        (lambda text: text.replace("v1", "v2"), "DELTA_STREAMING_SCHEMA_LOG_DESERIALIZE_FAILED"),
        (
            lambda text: text.replace('CommitVersion":1', 'CommitVersion":"1"'),
            "DELTA_STREAMING_SCHEMA_LOG_DESERIALIZE_FAILED",
        ),
        (
            lambda text: text.replace("struct", "strict"),
            "DELTA_STREAMING_SCHEMA_LOG_PARSE_SCHEMA_FAILED",
        ),
    ],
)
def test_damaged_entries_are_refused(log, damage, kind):
    Query(log).run()
    path = join(schema_log(log).path, "0")
    text = log.store.read_bytes(path).decode()
    log.store.put_overwrite(path, damage(text).encode())
    with pytest.raises(OptimistError) as caught:
        stream(log)
    assert caught.value.kind == kind


def test_the_log_of_another_table_is_refused(log, tmp_path):
    Query(log).run()
    path = join(schema_log(log).path, "0")
    text = log.store.read_bytes(path).decode()
    log.store.put_overwrite(path, text.replace(log.metadata.id, "another").encode())
    with pytest.raises(OptimistError) as caught:
        stream(log)
    assert caught.value.kind == "DELTA_STREAMING_SCHEMA_LOG_INCOMPATIBLE_DELTA_TABLE_ID"


def test_entries_of_old_writers_lack_properties_and_protocol(log):
    Query(log).run()
    path = join(schema_log(log).path, "0")
    header, _, body = log.store.read_bytes(path).decode().partition("\n")
    kept = {k: v for k, v in json.loads(body).items() if k[:5] not in ("table", "proto")}
    kept["tableId"] = log.metadata.id
    log.store.put_overwrite(path, f"{header}\n{json.dumps(kept)}".encode())
    add(log, id=2)
    query = Query(log)
    assert query.run() is None
    assert [row["id"] for row in query.seen] == [1, 2]


def test_a_log_and_failondataloss_false_are_refused_together(log):
    with pytest.raises(OptimistError) as caught:
        StreamOptions.parse({"schemaLocation": "/ck", "failOnDataLoss": "false"}, int)
    assert (caught.value.kind, caught.value.fields["key"]) == (
        "DELTA_ILLEGAL_OPTION",
        "failOnDataLoss",
    )


@pytest.mark.parametrize("name", [RENAME, DROP, WIDEN])
def test_what_is_allowed_must_be_always_or_a_version(name):
    with pytest.raises(OptimistError) as caught:
        StreamOptions.parse({name: "true"}, int)
    assert (caught.value.kind, caught.value.fields["key"]) == ("DELTA_ILLEGAL_OPTION", name)


def test_schematrackinglocation_counts_before_its_alias():
    given = {"schemaLocation": "/second", "SCHEMATRACKINGLOCATION": "/first"}
    assert StreamOptions.parse(given, int).schema_location == "/first"
    assert StreamOptions.parse({"schemalocation": "/second"}, int).schema_location == "/second"


def test_a_reader_without_spark_has_no_log_of_schemas(log):
    with pytest.raises(OptimistError) as caught:
        log.follow(schemaTrackingLocation="/ck")
    assert caught.value.kind == "OPTIMIST_NOT_BUILT_YET"
