"""Mapped columns, wider types, variants and lengths of texts in a session of Spark Connect."""

from __future__ import annotations

import json

from pyspark.sql import functions as sf

from connect_process import kind_of, tell
from mapped_files import assert_files_are_mapped
from optimist.core import DeltaLog
from optimist.spark import DeltaTable, read, write

__all__ = ["MAPPED_TOLD", "tell_mapped"]

MAPPED_TOLD = {
    "mapped rows": [
        [1, "set", 1, '{"x y":1}', '{"k":1}'],
        [2, "n2", 2, '{"x y":2}', '{"k":2}'],
        [3, "n3", 2147483648, '{"x y":3}', '{"k":3}'],
        [9, "n9", 9, '{"x y":9}', '{"k":9}'],
    ],
    "mapped types": ["long"],
    "mapped columns": 9,
    "too long": "SchemaError DELTA_EXCEED_CHAR_VARCHAR_LIMIT",
}
_DECLARED = "array<varchar(3)>"


def tell_mapped(spark, path: str) -> None:
    """Tell what `MAPPED_TOLD` expects."""
    frame = _rows(spark, 1, 3).withMetadata("t", {"__CHAR_VARCHAR_TYPE_STRING": _DECLARED})
    properties = {"delta.columnMapping.mode": "id", "delta.enableTypeWidening": "true"}
    write(frame, path, partitionBy="p q", **properties)
    wide = _rows(spark, 3, 4).withColumn("i", sf.lit(2**31).cast("long"))
    write(wide, path, mode="append", mergeSchema=True)
    table = DeltaTable.forPath(spark, path)
    table.update("id = 1", {"`a.b`": "'set'"})
    source = _rows(spark, 9, 10).withColumn("new one", sf.lit(1)).alias("s")
    merge = table.alias("t").merge(source, "t.id = s.id").withSchemaEvolution()
    merge.whenNotMatchedInsertAll().execute()
    found = read(spark, path).selectExpr(
        "id", "`a.b`", "i", "to_json(l[0]) AS l", "to_json(v) AS v"
    )
    tell("mapped rows", [list(row) for row in sorted(found.collect())])
    assert_files_are_mapped(path)
    snapshot = DeltaLog.for_path(path, {}).snapshot()
    changes = json.loads(snapshot.metadata.schema_string)["fields"][2]["metadata"]
    tell("mapped types", [change["toType"] for change in changes["delta.typeChanges"]])
    tell("mapped columns", snapshot.properties.max_column_id)
    long = _rows(spark, 5, 6).withColumn("t", sf.array(sf.lit("abcd")))
    tell("too long", kind_of(lambda: write(long, path, mode="append")))


def _rows(spark, start: int, end: int):
    return spark.range(start, end, 1, 1).selectExpr(
        "id",
        "concat('n', id) AS `a.b`",
        "CAST(id AS INT) AS i",
        "array(named_struct('x y', id)) AS l",
        "parse_json(concat('{\"k\": ', id, '}')) AS v",
        "array('abc ') AS t",
        "id % 2 AS `p q`",
    )
