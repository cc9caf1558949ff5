"""Streams with a log of schemas: what they write is what delta-spark writes (spec 11.5)."""

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from optimist.core import DeltaLog, NewColumn
from optimist.core.errors import OptimistError
from schema_log_story import told_by

RECORD = json.loads(Path(__file__).parents[1].joinpath("delta_spark_schema_log.json").read_text())

EVOLVED = "DELTA_STREAMING_METADATA_EVOLUTION"


@pytest.fixture(params=["native", pytest.param("arrow", marks=pytest.mark.again)])
def plane(request, conf):
    conf("spark.optimist.spark.plane", request.param)


@pytest.mark.again
def test_runs_logs_and_offsets_are_those_of_delta_spark(enabled, plane, tmp_path):
    told = told_by(enabled, tmp_path)
    assert told == RECORD["told"]


@pytest.fixture
def query(enabled, plane, tmp_path):
    """Runs a stream over a table to its end; the rows of all batches, and the kind of its error."""

    def run(table, *, checkpoint="ck", location=None, frame=None, **options):
        seen = []
        if frame is None:
            place = f"{tmp_path}/{checkpoint}/schemas" if location is None else location
            frame = tracked(enabled, table, place, **options)
        writer = frame.writeStream.foreachBatch(
            lambda batch, _: seen.extend(row.asDict() for row in batch.collect())
        )
        writer = writer.option("checkpointLocation", f"{tmp_path}/{checkpoint}")
        try:
            writer.trigger(availableNow=True).start().awaitTermination()
        except OptimistError as error:
            return seen, error.kind
        return seen, None

    return run


def tracked(spark, table, location, **options):
    reader = spark.readStream.format("delta").options(**options)
    return reader.option("schemaTrackingLocation", location).load(table.table_path)


@pytest.fixture
def table(table_path):
    """A table with mapped columns and two rows, the first by the old name of a column."""
    found = DeltaLog.for_path(table_path, {})
    properties = {"delta.columnMapping.mode": "name", "delta.enableChangeDataFeed": "true"}
    found.create(pa.schema([("id", pa.int64()), ("name", pa.string())]), properties=properties)
    found.append(pa.table({"id": [1], "name": ["one"]}))
    found.alter.rename_column("name", "title")
    found.append(pa.table({"id": [2], "title": ["two"]}))
    return found


def entries(tmp_path, checkpoint="ck"):
    return sorted(
        path.name
        for path in Path(tmp_path, checkpoint).glob("schemas/_schema_log_*/*")
        if path.name.isdigit()
    )


def test_a_log_outside_the_checkpoint_is_refused_unless_the_conf_lets_it(
    query, table, tmp_path, conf
):
    for place in ("elsewhere", "ck2", "ck/../ck2"):
        refused = query(table, location=f"{tmp_path}/{place}")
        assert refused == ([], "DELTA_STREAMING_SCHEMA_LOCATION_NOT_UNDER_CHECKPOINT")
        assert not Path(tmp_path, place).exists()
    conf("spark.databricks.delta.streaming.allowSchemaLocationOutsideCheckpointLocation", "true")
    rows, kind = query(table, location=f"{tmp_path}/elsewhere")
    assert (len(rows), kind) == (2, None)


@pytest.mark.again
@pytest.mark.parametrize("prefix", ["", "file:", "file://"])
def test_the_log_is_found_by_each_spelling_of_the_path(query, table, tmp_path, prefix):
    place = f"{prefix}{tmp_path}/of ö 100%/schemas/"
    rows, kind = query(table, checkpoint="of ö 100%", location=place)
    assert (len(rows), kind) == (2, None)
    assert entries(tmp_path, "of ö 100%") == ["0"]
    assert query(table, checkpoint="of ö 100%", location=place) == ([], None)


def test_the_conf_may_refuse_logs_of_schemas(enabled, query, table, tmp_path, conf):
    frame = tracked(enabled, table, f"{tmp_path}/ck/schemas")
    conf("spark.databricks.delta.streaming.schemaTracking.enabled", "false")
    with pytest.raises(OptimistError) as caught:
        tracked(enabled, table, f"{tmp_path}/ck/schemas")
    assert caught.value.kind == "DELTA_ILLEGAL_OPTION"
    assert query(table, frame=frame) == ([], "DELTA_ILLEGAL_OPTION")
    assert entries(tmp_path) == []


def test_two_sources_of_a_query_need_ids_for_their_logs(enabled, query, table, tmp_path):
    def joined(checkpoint, *ids):
        place = f"{tmp_path}/{checkpoint}/schemas"
        left, right = (tracked(enabled, table, place, **options) for options in ids)
        return query(table, checkpoint=checkpoint, frame=left.union(right))

    rows, kind = joined("one", {}, {})
    assert (rows, kind) == ([], "DELTA_STREAMING_SCHEMA_LOCATION_CONFLICT")
    assert joined("one", {}, {})[1] == "OPTIMIST_SCHEMA_LOG_OF_ANOTHER_STREAM"
    first, second = ({"streamingSourceTrackingId": name} for name in "ab")
    rows, kind = joined("two", first, second)
    assert (len(rows), kind) == (4, None)
    assert {path.name[-2:] for path in Path(tmp_path, "two", "schemas").iterdir()} == {"_a", "_b"}


@pytest.mark.again
def test_the_log_of_another_checkpoint_is_refused_unless_the_conf_lets_it(
    query, table, tmp_path, conf
):
    query(table)
    shutil.copytree(tmp_path / "ck" / "schemas", tmp_path / "copy" / "schemas")
    assert query(table, checkpoint="copy")[1] == "OPTIMIST_SCHEMA_LOG_OF_ANOTHER_STREAM"
    conf("spark.databricks.delta.streaming.schemaTracking.metadataPathCheck.enabled", "false")
    assert query(table, checkpoint="copy")[1] is None


def test_a_start_before_a_change_gives_each_row_by_the_schema_of_then(query, table, conf):
    unblock(conf)
    found = [query(table, startingVersion=1) for _ in range(4)]
    assert found == [
        ([], EVOLVED),
        ([{"id": 1, "name": "one"}], EVOLVED),
        ([{"id": 2, "title": "two"}], None),
        ([], None),
    ]


@pytest.mark.again
def test_changes_of_each_commit_come_by_the_schema_of_then(query, table, conf):
    unblock(conf)
    table.update(set={"title": "'uno'"}, predicate="id = 1")
    table.alter.drop_columns(["title"])
    table.append(pa.table({"id": [3]}))
    found = [query(table, startingVersion=1, readChangeFeed="true") for _ in range(5)]
    assert [kind for _, kind in found] == [EVOLVED, EVOLVED, EVOLVED, None, None]
    shown = [
        sorted(
            (row["_commit_version"], row["_change_type"], row["id"], row.get("title"))
            for row in rows
        )
        for rows, _ in found
    ]
    assert shown == [
        [],
        [(1, "insert", 1, None)],
        [
            (3, "insert", 2, "two"),
            (4, "update_postimage", 1, "uno"),
            (4, "update_preimage", 1, "one"),
        ],
        [(6, "insert", 3, None)],
        [],
    ]
    assert found[1][0][0]["name"] == "one"


@pytest.mark.again
def test_a_frame_from_before_a_recorded_change_has_to_be_made_anew(enabled, query, table, tmp_path):
    frame = tracked(enabled, table, f"{tmp_path}/ck/schemas")
    assert query(table, frame=frame)[1] is None
    table.alter.add_columns([NewColumn("more", "int")])
    assert query(table, frame=frame)[1] == EVOLVED
    assert query(table, frame=frame)[1] == "DELTA_SCHEMA_CHANGE_SINCE_ANALYSIS"
    assert query(table) == ([], None)


@pytest.mark.again
def test_making_a_frame_writes_nothing(enabled, query, table, tmp_path, conf):
    unblock(conf)
    query(table)
    table.alter.rename_column("title", "name")
    assert query(table)[1] == EVOLVED
    table.alter.rename_column("name", "title")
    frame = tracked(enabled, table, f"{tmp_path}/ck/schemas")
    assert frame.columns == ["id", "title"]  # what is yet to be written
    assert entries(tmp_path) == ["0", "1"]
    assert query(table, frame=frame) == ([], None)
    assert entries(tmp_path) == ["0", "1", "2"]


@pytest.mark.again
def test_a_stream_into_another_table_takes_the_new_columns_by_mergeschema(
    enabled, query, table, tmp_path
):
    def copy():
        frame = tracked(enabled, table, f"{tmp_path}/ck/schemas")
        writer = frame.writeStream.format("delta").option("mergeSchema", "true")
        writer = writer.option("checkpointLocation", f"{tmp_path}/ck")
        writer.trigger(availableNow=True).start(f"{tmp_path}/copy").awaitTermination()

    copy()
    table.alter.add_columns([NewColumn("more", "int")])
    table.append(pa.table({"id": [3], "more": pa.array([7], pa.int32())}))
    with pytest.raises(OptimistError) as caught:
        copy()
    assert caught.value.kind == EVOLVED
    copy()
    found = DeltaLog.for_path(f"{tmp_path}/copy", {}).to_arrow().sort_by("id").to_pylist()
    assert found == [
        {"id": 1, "title": "one", "more": None},
        {"id": 2, "title": "two", "more": None},
        {"id": 3, "title": None, "more": 7},
    ]


def unblock(conf):
    conf("spark.databricks.delta.streaming.allowSourceColumnRenameAndDrop", "always")
