"""Void columns, which no data file may hold, at any depth and in every command without Spark."""

from __future__ import annotations

import json

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from altered_tables import MAPPED, commit_metadata
from optimist.core import DeltaLog
from optimist.core.schema.arrow_types import from_arrow_schema
from optimist.core.schema.types import (
    ArrayType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
    schema_to_json,
)
from refusals import fails

VOID, LONG, TEXT = map(PrimitiveType, ("void", "long", "string"))
FEED = {"delta.enableChangeDataFeed": "true"}
SHAPES = {
    "beside": StructType((StructField("a", LONG), StructField("v", VOID))),
    "deep": StructType(
        (
            StructField("v", VOID),
            StructField("s", StructType((StructField("w", VOID), StructField("b", TEXT)))),
        )
    ),
}
NO_PLACE = {
    "element": ArrayType(VOID),
    "far inside an array": ArrayType(StructType((StructField("a", LONG), StructField("v", VOID)))),
    "value": MapType(TEXT, VOID),
    "all of a struct": StructType((StructField("v", VOID), StructField("w", VOID))),
    "all of an inner struct": StructType(
        (StructField("a", LONG), StructField("s", StructType((StructField("v", VOID),))))
    ),
    "in an array in a struct": StructType((StructField("l", ArrayType(VOID)),)),
}


def struct(**fields):
    return StructType(tuple(StructField(name, kind) for name, kind in fields.items()))


def files_of(path):
    return [file for file in path.rglob("*.parquet") if "_delta_log" not in file.parts]


def types_in(data_type):
    yield data_type
    for place in range(data_type.num_fields):
        yield from types_in(data_type.field(place).type)


def hold_void(path):
    schemas = [pq.read_schema(file) for file in files_of(path)]
    return [
        found
        for schema in schemas
        for item in schema
        for found in types_in(item.type)
        if pa.types.is_null(found)
    ]


@pytest.mark.parametrize("properties", [{}, MAPPED, FEED, {**MAPPED, **FEED}])
@pytest.mark.parametrize("name", SHAPES)
def test_no_command_writes_void_and_all_readers_agree(tmp_path, name, properties):
    log = DeltaLog.for_path(str(tmp_path))
    log.create(struct(id=LONG, n=VOID, s=SHAPES[name], t=TEXT), properties=properties)
    log.append(pa.table({"id": [1, 2, 3, 4], "t": ["a", "b", "c", "d"]}))
    log.append(pa.table({"id": [5], "n": pa.nulls(1), "s": pa.array([{"v": None}])}))
    log.delete("id = 1")
    log.update(set={"t": "'x'"}, predicate="id = 2")
    source = pa.table({"id": [3, 6], "t": ["m", "n"]})
    log.merge(source, ["id"]).when_matched_update({"t": "s.t"}).when_not_matched_insert(
        {"id": "s.id", "t": "s.t"}
    ).execute()
    rows = sorted(log.to_arrow().to_pylist(), key=lambda row: row["id"])
    assert [(row["id"], row["t"]) for row in rows] == [
        (2, "x"),
        (3, "m"),
        (4, "d"),
        (5, None),
        (6, "n"),
    ]
    assert all(row["n"] is None for row in rows)
    assert rows[3]["s"] is not None and not any(rows[3]["s"].values() if name == "beside" else ())
    assert files_of(tmp_path)
    assert hold_void(tmp_path) == []
    log.alter.set_properties({"mine": "1"})
    log.checkpoint()
    assert DeltaLog.for_path(str(tmp_path)).count("id > 3") == 3


def test_void_that_becomes_text_is_read_by_others(tmp_path):
    log = DeltaLog.for_path(str(tmp_path))
    log.append(pa.table({"id": [1], "n": pa.nulls(1)}))
    wider = struct(id=LONG, n=TEXT)
    commit_metadata(log, schema_string=schema_to_json(wider))
    rows = deltalake.DeltaTable(str(tmp_path)).to_pyarrow_table().to_pylist()
    assert rows == [{"id": 1, "n": None}]


@pytest.mark.parametrize("name", NO_PLACE)
def test_nothing_is_written_to_a_table_in_which_void_has_no_place_until_it_gets_another_type(
    tmp_path, name
):
    log = DeltaLog.for_path(str(tmp_path))
    log.append(pa.table({"id": [1, 2]}))
    before = files_of(tmp_path)
    schema = struct(id=LONG, c=NO_PLACE[name])
    commit_metadata(log, schema_string=schema_to_json(schema))
    log = DeltaLog.for_path(str(tmp_path))
    assert log.to_arrow().num_rows == 2
    for call, *arguments in (
        (log.append, pa.table({"id": [3]})),
        (log.delete, "id = 1"),
        (lambda: log.update(set={"id": "4"}, predicate="id = 1"),),
    ):
        error = fails("DELTA_COMPLEX_TYPE_COLUMN_CONTAINS_NULL_TYPE", call, *arguments)
        assert error.fields["column"] == "c"
    assert files_of(tmp_path) == before
    log.alter.set_properties({"mine": "1"})
    assert log.delete().num_deleted == 2  # whole files go without a new one
    mended = json.loads(schema_to_json(schema).replace('"void"', '"string"'))
    commit_metadata(log, schema_string=json.dumps(mended))
    DeltaLog.for_path(str(tmp_path)).append(pa.table({"id": [3]}))


@pytest.mark.parametrize(
    ("rows", "partition_by", "kind"),
    [
        ({"a": pa.nulls(2)}, [], "DELTA_EMPTY_DATA"),
        ({"a": pa.nulls(2), "b": pa.nulls(2)}, [], "DELTA_EMPTY_DATA"),
        ({"a": pa.nulls(2), "p": [1, 2]}, ["p"], "DELTA_NON_PARTITION_COLUMN_ABSENT"),
    ],
)
def test_rows_without_a_column_for_files_make_no_table(tmp_path, rows, partition_by, kind):
    log = DeltaLog.for_path(str(tmp_path / "t"))
    fails(kind, log.append, pa.table(rows), partition_by=partition_by)
    assert not (tmp_path / "t").exists()


EMPTY = pa.struct([])


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        (EMPTY, "s"),
        (pa.struct([("a", pa.int64()), ("e", EMPTY)]), "s.e"),
        (pa.list_(EMPTY), "s.element"),
        (pa.map_(pa.string(), pa.list_(EMPTY)), "s.value.element"),
    ],
)
def test_a_struct_without_fields_is_written_to_no_file(tmp_path, kind, path):
    no_fields = "DELTA_CANNOT_WRITE_EMPTY_SCHEMA.STRUCT_NO_FIELDS"
    log = DeltaLog.for_path(str(tmp_path / "new"))
    error = fails(no_fields, log.append, pa.table({"id": [1], "s": pa.nulls(1, kind)}))
    assert (error.fields["column"], error.fields["path"]) == ("s", path)
    assert not (tmp_path / "new").exists()

    log = DeltaLog.for_path(str(tmp_path / "t"))
    log.append(pa.table({"id": [1, 2]}))
    schema = from_arrow_schema(pa.schema([("id", pa.int64()), ("s", kind)]))
    commit_metadata(log, schema_string=schema_to_json(schema))
    log = DeltaLog.for_path(str(tmp_path / "t"))
    fails(no_fields, log.append, pa.table({"id": [3]}))
    fails(no_fields, log.delete, "id = 1")
    assert log.to_arrow().num_rows == 2
    log.delete()  # whole files go without a new one
