"""The struct columns of checkpoints, classic and V2, as written (spec 5.8)."""

import io
import json
import logging

import pyarrow.parquet as pq
import pytest

from checkpoint_tables import Table, add, full_table
from optimist.core.protocol.actions import (
    AddFile,
)

AS_STRUCT = {"delta.checkpoint.writeStatsAsStruct": "true"}


def test_statistics_and_partition_values_also_stand_there_with_their_types():
    table = full_table(AS_STRUCT)
    table.checkpoint()
    kind = pq.read_schema(
        io.BytesIO(table.store.read_bytes(f"{table.path}/{table.checkpoints()[0]}"))
    ).field("add")
    bounds = kind.type.field("stats_parsed").type.field("minValues").type
    assert {field.name: str(field.type) for field in bounds} == {
        "x": "int64",
        "s": "string",
        "t": "timestamp[us, tz=UTC]",
        "d": "decimal128(10, 2)",
        "n": "struct<y: double>",
    }
    assert str(kind.type.field("partitionValues_parsed").type) == "struct<p: date32[day]>"
    body = table.bodies("add")[0]
    assert body["partitionValues_parsed"]["p"].isoformat() == "2026-11-20"
    parsed = body["stats_parsed"]
    assert (parsed["numRecords"], parsed["nullCount"]["n"]["y"]) == (3, 2)
    assert (parsed["minValues"]["x"], parsed["maxValues"]["n"]["y"]) == (1, 7.5)
    assert parsed["maxValues"]["t"].isoformat() == "2026-01-01T00:00:00.125000+00:00"


def test_a_file_without_statistics_has_none_in_either_form():
    table = Table(AS_STRUCT).commit(add("a"), add("b", text=""), add("c", text="no JSON"))
    table.commit(AddFile("p=2026-11-20/d", {"p": "2026-11-20"}, 10, 1, True))
    table.checkpoint()
    parsed = {body["path"][-1]: body.get("stats_parsed") for body in table.bodies("add")}
    assert parsed["a"]["numRecords"] == 3
    assert parsed["d"] is None
    assert "numRecords" not in (parsed["b"] or {})
    assert "numRecords" not in (parsed["c"] or {})


@pytest.mark.parametrize(
    ("as_json", "as_struct", "expected"),
    [
        ("true", "true", {"stats", "stats_parsed", "partitionValues_parsed"}),
        ("true", "false", {"stats"}),
        ("false", "true", {"stats_parsed", "partitionValues_parsed"}),
        ("false", "false", set()),
    ],
)
def test_the_table_decides_which_forms_of_statistics_there_are(as_json, as_struct, expected):
    configuration = {
        "delta.checkpoint.writeStatsAsJson": as_json,
        "delta.checkpoint.writeStatsAsStruct": as_struct,
    }
    table = full_table(configuration)
    table.checkpoint()
    body = table.bodies("add")[0]
    assert {"stats", "stats_parsed", "partitionValues_parsed"} & set(body) == expected


def test_a_partition_value_that_does_not_parse_costs_the_typed_column_and_no_more(caplog):
    table = Table(AS_STRUCT).commit(add("a"), add("b", p="no date"))
    with caplog.at_level(logging.WARNING):
        assert table.checkpoint().num_of_add_files == 2
    assert "partitionValues_parsed" in caplog.text
    bodies = table.bodies("add")
    assert not any("partitionValues_parsed" in body for body in bodies)
    assert {body["partitionValues"]["p"] for body in bodies} == {"2026-11-20", "no date"}


@pytest.mark.parametrize(
    "none",
    [{"delta.dataSkippingStatsColumns": "nowhere"}, {"delta.dataSkippingNumIndexedCols": "0"}],
)
def test_the_number_of_rows_is_kept_where_no_column_has_struct_statistics(none):
    only = {**AS_STRUCT, "delta.checkpoint.writeStatsAsJson": "false"}
    table = Table({**only, **none}).commit(add("a"))
    rows = json.loads(table.load().files["stats"][0].as_py())["numRecords"]
    table.checkpoint()
    assert table.bodies("add")[0]["stats_parsed"] == {"numRecords": rows}
    assert json.loads(table.load().files["stats"][0].as_py()) == {"numRecords": rows}
