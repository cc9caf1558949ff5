"""Logs of schemas that are damaged, or that others have written (spec 11.5)."""

import json

import pytest

from optimist.core.errors import OptimistError
from optimist.core.paths import join
from optimist.core.streams.options import StreamOptions
from optimist.core.streams.planner import StreamPlanner
from optimist.core.streams.schema_log import SchemaLog
from optimist.core.streams.unblocked import Allowed
from tracked_streams import (
    Query,
    add,
    log_of,
    mapped_table,
    schema_log,
    stream,
)


@pytest.fixture
def log(tmp_path):
    return mapped_table(tmp_path / "table")


def test_a_log_of_another_source_is_refused_unless_the_conf_lets_it(log):
    Query(log).run()
    with pytest.raises(OptimistError) as caught:
        stream(log, source="file:/ck/sources/1")
    assert caught.value.kind == "OPTIMIST_SCHEMA_LOG_OF_ANOTHER_STREAM"
    parsed = StreamOptions()
    planner = StreamPlanner.of(log.table, parsed, log.snapshot, log_of(log))
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


def test_schematrackinglocation_counts_before_its_alias():
    given = {"schemaLocation": "/second", "SCHEMATRACKINGLOCATION": "/first"}
    assert StreamOptions.parse(given, int).schema_location == "/first"
    assert StreamOptions.parse({"schemalocation": "/second"}, int).schema_location == "/second"


@pytest.mark.parametrize("ids", [("../../evil", None), ("a\\..\\b", None), ("id", "../x")])
def test_no_id_leads_out_of_the_location(log, tmp_path, ids):
    with pytest.raises(OptimistError) as caught:
        SchemaLog.of(log.table.store, str(tmp_path / "schemas"), *ids)
    assert caught.value.kind == "OPTIMIST_MALFORMED_ACTION"


def test_the_log_is_that_of_the_very_table_whose_newest_version_is_read(log):
    """A second look could find another table there."""
    looks, asked = [], []

    def newest():
        looks.append(log.snapshot())
        return looks[-1]

    def told(table_id):
        asked.append(table_id)
        return log_of(log)(table_id)

    StreamPlanner.of(log.table, StreamOptions(), newest, told)
    assert asked == [snapshot.metadata.id for snapshot in looks]
    assert len(looks) == 1
