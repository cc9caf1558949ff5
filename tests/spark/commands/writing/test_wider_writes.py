"""Writes of Spark that make types wider, into tables that have wider types, and of variants."""

from __future__ import annotations

import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as sf

from optimist.core import DeltaLog
from optimist.core.errors import SchemaError
from optimist.core.schema.type_widening import TYPE_CHANGES
from optimist.core.schema.types import walk_fields
from optimist.spark import DeltaTable, read, write
from table_contents import read_locally, values

pytestmark = pytest.mark.usefixtures("plane")

WIDENING = {"delta.enableTypeWidening": "true"}
NARROW = "id long, i int, f float, d decimal(5,2), s struct<x: int>, l array<smallint>"
WIDE = "id long, i bigint, f double, d decimal(38,4), s struct<x: bigint>, l array<int>"


def rows(spark, schema, *numbers):
    """Rows of which every column can be told by the number."""
    frame = spark.createDataFrame([(n,) for n in numbers], "id long")
    made = frame.selectExpr(
        "id", "id AS i", "id / 2 AS f", "id / 4 AS d", "named_struct('x', id) AS s",
        "array(id % 100, null) AS l",
    )  # fmt: skip
    types = spark.createDataFrame([], schema).schema
    return made.select(*(sf.col(item.name).cast(item.dataType) for item in types))


def recorded(path):
    schema = DeltaLog.for_path(path, {}).snapshot().schema
    return {
        ".".join(name): [change["toType"] for change in item.metadata[TYPE_CHANGES]]
        for name, item in walk_fields(schema)
        if TYPE_CHANGES in item.metadata
    }


EVERY_CHANGE = {
    "i": ["long"],
    "f": ["double"],
    "d": ["decimal(38,4)"],
    "s.x": ["long"],
    "l": ["integer"],
}


@pytest.fixture
def table(spark, copied):
    """The path of a table with narrow types, which may be widened."""
    return copied(
        "narrow",
        lambda path: write(rows(spark, NARROW, 1, 2, 3), path, partitionBy="i", **WIDENING),
    )


def assert_has(spark, path, *numbers):
    wanted = values(rows(spark, WIDE, *numbers).toArrow())
    assert values(read_locally(path)) == wanted
    assert values(read(spark, path).toArrow()) == wanted


@pytest.mark.again
def test_merging_schemas_makes_types_wider_and_narrow_rows_still_fit(spark, table):
    wide = rows(spark, WIDE, 2**31)
    with pytest.raises(SchemaError, match="mergeSchema"):
        write(wide, table, mode="append")
    write(wide, table, mode="append", mergeSchema=True)
    assert recorded(table) == EVERY_CHANGE
    write(rows(spark, NARROW, 5), table, mode="append")
    assert_has(spark, table, 1, 2, 3, 5, 2**31)
    DeltaTable.forPath(spark, table).delete("s.x = 2")
    DeltaTable.forPath(spark, table).update("d = 0.75", {"id": "id"})
    assert_has(spark, table, 1, 3, 5, 2**31)
    assert recorded(table) == EVERY_CHANGE


@pytest.mark.again
def test_a_merge_that_takes_all_columns_makes_types_wider(spark, table):
    source = rows(spark, WIDE, 3, 2**31).alias("s")
    merge = DeltaTable.forPath(spark, table).alias("t").merge(source, "t.id = s.id")
    merge.withSchemaEvolution().whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    assert recorded(table) == EVERY_CHANGE
    assert_has(spark, table, 1, 2, 3, 2**31)


@pytest.mark.again
def test_without_the_property_types_stay_as_they_are(spark, table_path):
    write(rows(spark, NARROW, 1), table_path)
    with pytest.raises(SchemaError) as caught:
        write(rows(spark, WIDE, 2), table_path, mode="append", mergeSchema=True)
    assert caught.value.kind == "DELTA_FAILED_TO_MERGE_FIELDS"


@pytest.mark.again
def test_integers_do_not_become_fractions_by_the_way(spark, table):
    fractions = rows(spark, NARROW, 1).withColumn("i", sf.lit(0.5))
    with pytest.raises(SchemaError) as caught:
        write(fractions, table, mode="append", mergeSchema=True)
    assert caught.value.kind == "DELTA_FAILED_TO_MERGE_FIELDS"


# Variants


def variants(spark, *numbers):
    frame = spark.createDataFrame([(n,) for n in numbers], "id long")
    text = 'CASE WHEN id % 3 = 0 THEN null ELSE concat(\'{"k": \', id, \', "t": ["x"]}\') END'
    value = f"parse_json({text})"
    return frame.selectExpr("id", f"{value} AS v", f"array(named_struct('a b', {value})) AS n")


def shown(frame):
    found = frame.selectExpr("id", "to_json(v) AS v", "to_json(n) AS n").orderBy("id").collect()
    return [tuple(row) for row in found]


@pytest.mark.again
@pytest.mark.parametrize("mode", ["none", "name"])
def test_variants_are_written_whole_by_every_command(spark, table_path, conf, mode):
    conf("spark.sql.variant.writeShredding.enabled", "true")
    conf("spark.sql.variant.forceShreddingSchemaForTest", "k int")
    properties = {"delta.columnMapping.mode": mode}
    first = variants(spark, 1, 2, 3, 4)
    if mode == "none":
        first = first.withColumn("n", sf.expr("transform(n, x -> named_struct('a_b', x.`a b`))"))
    write(first, table_path, **properties)
    table = DeltaTable.forPath(spark, table_path)
    table.delete("id = 2")
    table.update("id = 3", {"v": "parse_json('[1]')"})
    more = first.where("id = 4").withColumn("id", sf.lit(9).cast("long"))
    table.alias("t").merge(more.alias("s"), "t.id = s.id").whenNotMatchedInsertAll().execute()
    log = DeltaLog.for_path(table_path, {})
    log.append(log.to_arrow("id = 9"))
    assert "variantType" in log.snapshot().protocol.reader_features
    kept = {row[0]: row[1:] for row in shown(first)}
    wanted = [(1, *kept[1]), (3, "[1]", kept[3][1]), (4, *kept[4]), (9, *kept[4]), (9, *kept[4])]
    assert shown(read(spark, table_path)) == wanted
    for file in log.snapshot().files["path"].to_pylist():
        assert "typed_value" not in str(pq.read_schema(f"{table_path}/{file}"))
