"""Streams that read a table: batches, restarts, options, progress (spec 11.1 to 11.3)."""

import json
from datetime import datetime, timezone
from pathlib import Path

import pyarrow as pa
import pyspark
import pytest

from optimist.core import DeltaLog, NewColumn
from optimist.core.errors import OptimistError, SchemaError, TableError, UsageError
from optimist.core.streams.checkpoint_progress import read_progress
from optimist.spark.streams import source

KNOWS_STREAMS = tuple(map(int, pyspark.__version__.split(".")[:2])) >= (4, 1)


@pytest.fixture(params=["native", pytest.param("arrow", marks=pytest.mark.again)])
def log(request, enabled, conf, table_path):
    """A table of three commits with two rows each."""
    conf("spark.optimist.spark.plane", request.param)
    found = DeltaLog.for_path(table_path, {})
    for first in (0, 2, 4):
        add(found, first, first + 1)
    return found


def add(log, *ids):
    log.append(pa.table({"id": pa.array(ids, pa.int64())}))


@pytest.fixture
def run(enabled, log, tmp_path):
    """Runs a stream over the table to its end; the rows of each batch, and the query."""

    def start(*, trigger=None, frame=None, checkpoint="ck", **options):
        seen = []

        def each(batch, number):
            seen.append((number, sorted(row.id for row in batch.collect())))

        if frame is None:
            frame = enabled.readStream.format("delta").options(**options).load(log.table_path)
        writer = frame.writeStream.foreachBatch(each)
        writer = writer.option("checkpointLocation", f"{tmp_path}/{checkpoint}")
        query = writer.trigger(**(trigger or {"availableNow": True})).start()
        query.awaitTermination()
        return seen, query

    return start


@pytest.fixture(params=["native", pytest.param("arrow", marks=pytest.mark.again)])
def plane(request, conf):
    conf("spark.optimist.spark.plane", request.param)


def changing(path, *, has_vectors=False):
    """A table with two rows, and its change data feed on since version 1."""
    log = DeltaLog.for_path(path, {})
    log.create(pa.schema([("id", pa.int64())]))
    vectors = {"delta.enableDeletionVectors": "true"} if has_vectors else {}
    log.alter.set_properties({"delta.enableChangeDataFeed": "true", **vectors})
    add(log, 0, 1)
    return log


def change(log):
    log.update(set={"id": 9}, predicate="id = 1")
    log.delete("id = 0")
    add(log, 7)


def changes(enabled, log, tmp_path, **options):
    """What each batch of a stream of changes gives, run to its end."""
    seen = []

    def each(batch, number):
        rows = batch.select("_commit_version", "_change_type", "id").collect()
        seen.append(sorted(map(tuple, rows)))

    frame = enabled.readStream.format("delta").options(**options).load(log.table_path)
    writer = frame.writeStream.foreachBatch(each)
    writer = writer.option("checkpointLocation", f"{tmp_path}/changes")
    writer.trigger(availableNow=True).start().awaitTermination()
    return seen


def last_offset(tmp_path, checkpoint="ck"):
    files = [
        path for path in Path(tmp_path, checkpoint, "offsets").iterdir() if path.name.isdigit()
    ]
    newest = max(files, key=lambda path: int(path.name))
    return newest.read_text().splitlines()[-1]


def crash_in(tmp_path, number, checkpoint="ck"):
    """Leave the checkpoint as a driver does that crashes in a batch: planned, not recorded."""
    for part, first in (("commits", number), ("offsets", number + 1)):
        for file in Path(tmp_path, checkpoint, part).iterdir():
            if int(file.name.strip(".").split(".")[0]) >= first:
                file.unlink()


@pytest.mark.again
def test_the_table_comes_first_and_then_what_is_new(log, run):
    assert run(maxFilesPerTrigger=2)[0] == [(0, [0, 1, 2, 3]), (1, [4, 5])]
    assert run(maxFilesPerTrigger=2)[0] == []
    add(log, 6)
    add(log, 7)
    assert run(maxFilesPerTrigger=1)[0] == [(2, [6]), (3, [7])]


def test_offsets_in_the_checkpoint_are_delta_s(log, run, tmp_path):
    run()
    assert last_offset(tmp_path) == (
        f'{{"sourceVersion":1,"reservoirId":"{log.metadata.id}","reservoirVersion":3,"index":-1,'
        '"isStartingVersion":false}'
    )
    place = DeltaLog.for_path(f"{tmp_path}/ck").table
    (told,) = read_progress(place, log.metadata.id)
    assert (told.position.to_json(), told.source) == (last_offset(tmp_path), 0)
    assert (told.batch, told.running) == (0, None)
    crash_in(tmp_path, 0)
    (told,) = read_progress(place, log.metadata.id)
    assert (told.position, told.batch, told.running) == (None, None, 0)


@pytest.mark.again
def test_a_checkpoint_of_delta_spark_is_continued(log, run, tmp_path):
    run(maxFilesPerTrigger=1)
    crash_in(tmp_path, 1)
    # As delta-spark 4.4.0 leaves it in the middle of the first snapshot.
    folder = Path(tmp_path, "ck")
    for name in ("1", ".1.crc"):
        (folder / "offsets" / name).unlink(missing_ok=True)
    lines = (folder / "offsets" / "0").read_text().splitlines()
    lines[-1] = (
        f'{{"sourceVersion":1,"reservoirId":"{log.metadata.id}","reservoirVersion":2,"index":1,'
        '"isStartingVersion":true}'
    )
    (folder / "offsets" / ".0.crc").unlink(missing_ok=True)
    (folder / "offsets" / "0").write_text("\n".join(lines))
    assert run()[0] == [(1, [4, 5])]


@pytest.mark.again
def test_a_batch_that_was_not_recorded_has_the_same_rows_again(log, run, tmp_path):
    assert run(maxFilesPerTrigger=2)[0][-1] == (1, [4, 5])
    crash_in(tmp_path, 1)
    add(log, 6)
    assert run(maxFilesPerTrigger=2)[0] == [(1, [4, 5]), (2, [6])]


@pytest.mark.again
def test_a_batch_that_is_done_needs_no_commits_when_the_query_goes_on(log, run):
    run()
    add(log, 6)
    run()
    add(log, 7)
    log.checkpoint()
    for version in range(4):  # as log cleanup does, version 3 being the last that was read
        Path(log.log_path, f"{version:020}.json").unlink()
    assert run()[0] == [(2, [7])]


@pytest.mark.again
@pytest.mark.parametrize("start", ["latest", "time"])
def test_a_start_that_the_moment_decides_is_an_empty_first_batch(log, run, tmp_path, start):
    given = {"startingVersion": "latest"}
    if start == "time":
        made = datetime.fromtimestamp(log.history(1)[0].timestamp_ms / 1000, timezone.utc)
        given = {"startingTimestamp": made.isoformat()}
    before = [] if start == "latest" else [(1, [4, 5])]
    seen, _ = run(**given)
    assert seen == [(0, []), *before]
    add(log, 6)
    crash_in(tmp_path, 0)
    # What came since is not lost.
    again, _ = run(**given)
    assert again[0] == (0, [])
    assert [row for _, rows in again for row in rows] == [*(before and [4, 5]), 6]


def test_once_takes_everything_in_one_batch(log, run):
    assert run(trigger={"once": True}, maxFilesPerTrigger=1)[0] == [(0, [0, 1, 2, 3, 4, 5])]


@pytest.mark.again
def test_available_now_ends_at_the_version_that_it_began_with(enabled, log, tmp_path):
    seen = []

    def each(batch, number):
        seen.extend(row.id for row in batch.collect())
        add(log, 100 + number)

    frame = enabled.readStream.format("delta").option("maxFilesPerTrigger", 1).load(log.table_path)
    writer = frame.writeStream.foreachBatch(each).option("checkpointLocation", f"{tmp_path}/ck")
    writer.trigger(availableNow=True).start().awaitTermination()
    assert sorted(seen) == [0, 1, 2, 3, 4, 5]


def test_continuous_processing_is_refused(enabled, log, tmp_path):
    frame = enabled.readStream.format("delta").load(log.table_path)
    writer = frame.writeStream.format("noop")
    writer = writer.option("checkpointLocation", f"{tmp_path}/ck")
    with pytest.raises(Exception, match="ontinuous"):
        writer.trigger(continuous="1 second").start().awaitTermination()


@pytest.mark.again
def test_progress_tells_rows_and_what_is_left(log, run):
    _, query = run(maxFilesPerTrigger=2)
    first, second = query.recentProgress
    assert (first["numInputRows"], second["numInputRows"]) == (4, 2)
    size = log.files()["size"][2].as_py()
    assert first["sources"][0]["metrics"]["numFilesOutstanding"] == "1"
    assert abs(int(first["sources"][0]["metrics"]["numBytesOutstanding"]) - size) < 100
    assert second["sources"][0]["metrics"]["numFilesOutstanding"] == "0"
    assert "DeltaSource[" in first["sources"][0]["description"]


def test_filters_and_columns_reach_the_files(enabled, log, run):
    frame = enabled.readStream.format("delta").load(log.table_path).where("id > 3")
    seen, query = run(frame=frame)
    assert seen == [(0, [4, 5])]
    is_native = enabled.conf.get("spark.optimist.spark.plane") == "native"
    assert query.recentProgress[0]["numInputRows"] == (2 if is_native else 6)


@pytest.mark.again
def test_deleted_rows_and_mapped_columns_are_read(enabled, table_path, conf, run, log):
    log.alter.set_properties({"delta.enableDeletionVectors": "true"})
    log.alter.set_properties({"delta.columnMapping.mode": "name"})
    log.alter.rename_column("id", "key")
    log.delete("key IN (0, 3)")
    frame = enabled.readStream.format("delta").load(table_path).selectExpr("key AS id")
    assert run(frame=frame)[0] == [(0, [1, 2, 4, 5])]


@pytest.mark.again
def test_partitioned_tables_are_read(enabled, tmp_path, run):
    path = f"{tmp_path}/parted"
    rows = enabled.range(6).selectExpr("id", "CAST(id % 2 AS INT) AS p")
    rows.write.format("delta").partitionBy("p").save(path)
    frame = enabled.readStream.format("delta").load(path).where("p = 1").select("id")
    assert run(frame=frame)[0] == [(0, [1, 3, 5])]


@pytest.mark.again
def test_a_deletion_stops_the_stream_with_delta_s_error(log, run):
    run()
    log.delete("id < 2")
    with pytest.raises(TableError) as caught:
        run()
    assert caught.value.kind == "DELTA_SOURCE_IGNORE_DELETE"
    add(log, 6)
    assert run(ignoreDeletes="true")[0][-1][1] == [6]


def test_a_new_column_stops_the_stream_until_its_frame_is_made_anew(enabled, log, run):
    frame = enabled.readStream.format("delta").load(log.table_path)
    run(frame=frame)
    log.alter.add_columns([NewColumn("x", "long")])
    with pytest.raises(TableError) as caught:
        run(frame=frame)
    assert caught.value.kind == "DELTA_SCHEMA_CHANGE_SINCE_ANALYSIS"
    log.append(pa.table({"id": [6], "x": [1]}))
    assert run()[0][-1][1] == [6]


@pytest.mark.again
def test_a_running_stream_stops_at_a_new_column(enabled, log, tmp_path):
    frame = enabled.readStream.format("delta").load(log.table_path)
    writer = frame.writeStream.format("noop")
    query = writer.option("checkpointLocation", f"{tmp_path}/ck").start()
    query.processAllAvailable()
    log.alter.add_columns([NewColumn("x", "long")])
    with pytest.raises(SchemaError) as caught:
        query.processAllAvailable()
    assert caught.value.kind == "DELTA_SCHEMA_CHANGED_WITH_VERSION"
    assert not query.isActive


@pytest.mark.again
def test_two_queries_over_one_frame_have_sources_of_their_own(enabled, log, run):
    frame = enabled.readStream.format("delta").option("maxFilesPerTrigger", 2).load(log.table_path)
    assert [len(run(frame=frame, checkpoint=name)[0]) for name in ("a", "b")] == [2, 2]


@pytest.mark.again
def test_a_table_that_the_checkpoint_is_not_of_is_refused(enabled, log, run, tmp_path):
    run()
    enabled.range(3).write.format("delta").save(f"{tmp_path}/other")
    frame = enabled.readStream.format("delta").load(f"{tmp_path}/other")
    with pytest.raises(TableError) as caught:
        run(frame=frame)
    assert caught.value.kind == "DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE"


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({"maxFilesPerTrigger": "0"}, "DELTA_ILLEGAL_OPTION"),
        ({"startingTimestamp": "sometime"}, "DELTA_TIMESTAMP_INVALID"),
        ({"versionAsOf": "1"}, "DELTA_UNSUPPORTED_TIME_TRAVEL_VIEWS"),
    ],
)
def test_wrong_options_are_refused_when_the_frame_is_made(enabled, log, options, kind):
    with pytest.raises(UsageError) as caught:
        enabled.readStream.format("delta").options(**options).load(log.table_path)
    assert caught.value.kind == kind


def test_an_older_version_in_the_path_is_refused(enabled, log):
    for path in (f"{log.table_path}@v1", f"{log.table_path}@20261120103000000"):
        with pytest.raises(UsageError) as caught:
            enabled.readStream.format("delta").load(path)
        assert caught.value.kind == "DELTA_UNSUPPORTED_TIME_TRAVEL_VIEWS"


@pytest.mark.again
def test_a_query_of_one_batch_from_a_time_has_its_rows(log, run):
    time = datetime.fromtimestamp(log.snapshot(version=1).timestamp_ms / 1000, timezone.utc)
    options = {"startingTimestamp": time.isoformat(), "trigger": {"once": True}}
    assert run(**options)[0] == [(0, [2, 3, 4, 5])]
    add(log, 6)
    assert run(**options)[0] == [(1, [6])]


def test_a_start_that_is_yet_to_come_has_no_batch_before(log, run, conf):
    conf("spark.databricks.delta.changeDataFeed.timestampOutOfRange.enabled", "true")
    assert run(startingVersion=4)[0] == []
    add(log, 6)
    assert run(startingVersion=4)[0] == []
    add(log, 7)
    assert run(startingVersion=4)[0] == [(0, [7])]


@pytest.mark.again
def test_rows_from_before_their_columns_were_made_anew_are_refused(log, run, enabled):
    log.alter.set_properties({"delta.columnMapping.mode": "name"})
    log.alter.add_columns([NewColumn("x", "string")])
    first = log.append(pa.table({"id": [6], "x": ["six"]})).version
    assert run(startingVersion=first)[0] == [(0, [6])]
    log.append(pa.table({"id": [7], "x": ["seven"]}))
    log.alter.drop_columns(["x"])
    log.alter.add_columns([NewColumn("x", "string")])
    for options in ({"checkpoint": "ck"}, {"checkpoint": "other", "startingVersion": first}):
        with pytest.raises(SchemaError) as caught:
            run(**options)
        assert caught.value.kind == "DELTA_SCHEMA_CHANGED_WITH_VERSION"


def test_a_query_that_has_ended_is_forgotten(log, run):
    _, query = run()
    assert query.id not in source._READ_BY
    assert not source.is_read_by(query.id, log.table_path)


CHANGES = [
    (2, "insert", 0),
    (2, "insert", 1),
    (3, "update_postimage", 9),
    (3, "update_preimage", 1),
    (4, "delete", 0),
    (5, "insert", 7),
]


@pytest.mark.again
@pytest.mark.parametrize("has_vectors", [False, True])
@pytest.mark.parametrize("option", ["readChangeFeed", "readChangeData"])
def test_a_stream_of_changes_gives_each_once(enabled, plane, tmp_path, option, has_vectors):
    log = changing(f"{tmp_path}/t", has_vectors=has_vectors)
    assert changes(enabled, log, tmp_path, **{option: "true"}) == [CHANGES[:2]]
    change(log)
    limited = {option: "true", "maxFilesPerTrigger": 1}
    assert changes(enabled, log, tmp_path, **limited) == [CHANGES[2:4], CHANGES[4:5], CHANGES[5:]]
    assert changes(enabled, log, tmp_path, **limited) == []
    assert last_offset(tmp_path, "changes").endswith(
        '"reservoirVersion":6,"index":-1,"isStartingVersion":false}'
    )
    crash_in(tmp_path, 3, "changes")
    assert changes(enabled, log, tmp_path, **limited) == [CHANGES[5:]]


@pytest.mark.again
def test_a_stream_of_changes_begins_where_it_is_told(enabled, plane, tmp_path):
    log = changing(f"{tmp_path}/t")
    change(log)
    options = {"readChangeFeed": "true", "startingVersion": 4}
    assert changes(enabled, log, tmp_path, **options) == [CHANGES[4:]]
    with pytest.raises(UsageError) as caught:
        changes(enabled, log, tmp_path, readChangeFeed="perhaps")
    assert caught.value.kind == "DELTA_ILLEGAL_OPTION"


def test_a_schema_and_a_missing_table_are_refused(enabled, log, tmp_path):
    reader = enabled.readStream.format("delta")
    with pytest.raises(OptimistError) as caught:
        reader.load(f"{tmp_path}/nothing")
    assert caught.value.kind == "PATH_NOT_FOUND"
    with pytest.raises(UsageError) as caught:
        reader.schema("id LONG").load(log.table_path)
    assert caught.value.kind == "DELTA_UNSUPPORTED_SCHEMA_DURING_READ"


@pytest.mark.again
def test_tables_are_read_by_name(enabled, log, run):
    enabled.sql("CREATE DATABASE IF NOT EXISTS streams")
    try:
        enabled.sql(f"CREATE TABLE streams.t USING delta LOCATION '{log.table_path}'")
        frame = enabled.readStream.option("maxFilesPerTrigger", 2).table("streams.t")
        assert run(frame=frame)[0] == [(0, [0, 1, 2, 3]), (1, [4, 5])]
        if KNOWS_STREAMS:
            frame = enabled.sql("SELECT id FROM STREAM streams.t WHERE id > 3")
            assert run(frame=frame, checkpoint="sql")[0] == [(0, [4, 5])]
        with pytest.raises(UsageError) as caught:
            enabled.readStream.table(f"delta.`{log.table_path}`")
        assert caught.value.kind == "DELTA_INVALID_V1_TABLE_CALL"
    finally:
        enabled.sql("DROP DATABASE streams CASCADE")


@pytest.mark.again
def test_rows_go_from_table_to_table_each_once(enabled, log, tmp_path):
    target = f"{tmp_path}/target"
    for number in (6, 7):
        frame = enabled.readStream.format("delta").option("maxFilesPerTrigger", 1)
        writer = frame.load(log.table_path).writeStream.format("delta")
        writer = writer.option("checkpointLocation", f"{tmp_path}/ck").trigger(availableNow=True)
        writer.start(target).awaitTermination()
        add(log, number)
    found = DeltaLog.for_path(target, {}).to_arrow()["id"].to_pylist()
    assert sorted(found) == [0, 1, 2, 3, 4, 5, 6]


@pytest.mark.again
def test_a_query_that_reads_the_table_it_writes_has_read_all_of_it(enabled, log, meeting, tmp_path):
    frame = enabled.readStream.format("delta").load(log.table_path).selectExpr("id + 100 AS id")
    writer = frame.writeStream.format("delta").option("checkpointLocation", f"{tmp_path}/ck")
    meeting(lambda: DeltaLog.for_path(log.table_path, {}).delete("id = 0"))
    with pytest.raises(OptimistError) as caught:
        writer.trigger(availableNow=True).start(log.table_path).awaitTermination()
    assert caught.value.kind in ("DELTA_CONCURRENT_DELETE_READ", "DELTA_CONCURRENT_APPEND")
    infos = [json.dumps(record.info.operation) for record in log.history()]
    assert '"STREAMING UPDATE"' not in infos


@pytest.mark.again
def test_a_watermark_drops_no_row_of_the_first_snapshot_where_event_times_count(enabled, tmp_path):
    log = DeltaLog.for_path(f"{tmp_path}/timed")
    for second in (2000, 1000, 3000, 1500):
        at = pa.array([second * 1_000_000], pa.timestamp("us", tz="UTC"))
        log.append(pa.table({"id": [second], "at": at}))

    def given(**options):
        target, checkpoint = (f"{tmp_path}/{name}{len(options)}" for name in ("to", "ck"))
        frame = enabled.readStream.format("delta").option("maxFilesPerTrigger", 1)
        frame = frame.options(**options).load(log.table_path).withWatermark("at", "1 second")
        writer = frame.dropDuplicates(["id", "at"]).writeStream.format("delta")
        writer = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True)
        writer.start(target).awaitTermination()
        return sorted(DeltaLog.for_path(target).to_arrow()["id"].to_pylist())

    assert 1500 not in given()
    assert given(withEventTimeOrder=True) == [1000, 1500, 2000, 3000]
