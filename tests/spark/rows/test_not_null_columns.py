"""NOT NULL is told as Delta tells it; what commands read may hold nulls all the same."""

from __future__ import annotations

import pyarrow as pa
import pytest

from hand_made_tables import data_file, make_table
from optimist.core import ColumnChange
from optimist.core.errors import SchemaError, TableError
from optimist.spark import DeltaTable, disable, enable, read


def required(name, kind):
    return {"name": name, "type": kind, "nullable": False, "metadata": {}}


def optional(name, kind):
    return {**required(name, kind), "nullable": True}


STRUCT = {"type": "struct", "fields": [required("a", "integer"), optional("b", "integer")]}
LIST = {"type": "array", "elementType": "integer", "containsNull": False}
FIELDS = [
    required("id", "integer"),
    required("s", STRUCT),
    optional("l", LIST),
    optional("t", "string"),
]
TOLD = ["id", "s", "s.a", "l[]"]


@pytest.fixture
def foreign(tmp_path):
    """Three rows; in the second everything is null that may not be."""
    struct = pa.struct([("a", pa.int32()), ("b", pa.int32())])
    rows = pa.table(
        {
            "id": pa.array([1, None, 3], pa.int32()),
            "s": pa.array([{"a": 1, "b": 1}, {"a": None, "b": 2}, {"a": 3, "b": 3}], struct),
            "l": pa.array([[1], [None], [3]], pa.list_(pa.int32())),
            "t": ["x", "y", "z"],
        }
    )
    root = tmp_path / "foreign"
    adds = [data_file(root, "one.parquet", rows)]
    return str(make_table(root, FIELDS, adds, features=["appendOnly", "invariants"]))


def told(schema):
    """What a schema says is never null."""
    found = []
    for field in schema.fields:
        found += [] if field.nullable else [field.name]
        kind = field.dataType
        if kind.typeName() == "struct":
            found += [f"{field.name}.{inner}" for inner in told(kind)]
        if kind.typeName() == "array" and not kind.containsNull:
            found.append(f"{field.name}[]")
    return found


def test_every_frame_of_a_table_tells_it(spark, foreign, every_plane):
    frames = {
        "read": lambda: read(spark, foreign),
        "version": lambda: read(spark, foreign, versionAsOf=0),
        "table": lambda: DeltaTable.forPath(spark, foreign).toDF(),
        "format": lambda: spark.read.format("delta").load(foreign),
        "format version": lambda: spark.read.format("delta").load(f"{foreign}@v0"),
        "sql": lambda: spark.sql(f"SELECT * FROM delta.`{foreign}`"),
        "sql version": lambda: spark.sql(f"SELECT * FROM delta.`{foreign}` VERSION AS OF 0"),
    }
    plain = {name: told(frames[name]().schema) for name in ("read", "version", "table")}
    enable(spark)
    enabled = {name: told(frame().schema) for name, frame in frames.items()}
    disable(spark)
    assert plain == dict.fromkeys(plain, TOLD)
    assert enabled == dict.fromkeys(enabled, TOLD)


@pytest.mark.again
@pytest.mark.parametrize("condition", ["id IS NULL", "s.a IS NULL", "exists(l, x -> x IS NULL)"])
def test_commands_find_the_nulls_that_another_engine_wrote(
    spark, foreign, every_plane, rows_of, condition
):
    table = DeltaTable.forPath(spark, foreign)
    if "exists" not in condition:
        with pytest.raises(SchemaError) as caught:
            table.alter.add_constraint("filled", f"NOT ({condition})")
        assert caught.value.kind == "DELTA_NEW_CHECK_CONSTRAINT_VIOLATION"
    if condition == "id IS NULL":
        whole = "named_struct('a', 2, 'b', 2)"
        table.update(condition, {"id": "2", "s": whole, "l": "array(2)", "t": "'mended'"})
        assert rows_of(read(spark, foreign).select("id", "s.a", "t")) == [
            (1, 1, "x"),
            (2, 2, "mended"),
            (3, 3, "z"),
        ]
    else:
        table.delete(condition)
        assert rows_of(read(spark, foreign).select("id", "l")) == [(1, [1]), (3, [3])]


def test_merge_finds_the_nulls_that_another_engine_wrote(spark, foreign, every_plane, rows_of):
    table = DeltaTable.forPath(spark, foreign).alias("t")
    source = spark.createDataFrame([("y", 2)], "t string, v int").alias("u")
    merge = table.merge(source, "t.t = u.t AND t.id IS NULL")
    merge.whenMatchedDelete("t.s.a IS NULL").execute()
    assert rows_of(read(spark, foreign).select("id")) == [(1,), (3,)]


def test_a_frame_does_not_follow_a_table_to_nulls_that_it_ruled_out(spark, foreign, rows_of):
    enable(spark)
    table = DeltaTable.forPath(spark, foreign)
    table.delete("id IS NULL")
    frame = spark.read.format("delta").load(foreign)
    missing = frame.where("id IS NULL")
    table.alter.change_columns([ColumnChange("t", "string", comment="still the same columns")])
    assert rows_of(frame.select("id")) == [(1,), (3,)]
    table.alter.change_columns([ColumnChange("id", "int", nullable=True)])
    spark.sql(f"INSERT INTO delta.`{foreign}` VALUES (NULL, struct(1, 1), array(1), 'n')")
    assert missing.collect() == [], "Spark has ruled them out when the frame was made"
    with pytest.raises(TableError) as caught:
        frame.collect()
    assert caught.value.kind == "DELTA_SCHEMA_CHANGE_SINCE_ANALYSIS"
    assert rows_of(spark.read.format("delta").load(foreign).where("id IS NULL").select("t")) == [
        ("n",)
    ]
    disable(spark)
