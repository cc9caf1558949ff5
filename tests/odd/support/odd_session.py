"""What a session of Spark, of either kind, does with odd names and odd values; told as plain data.

Few jobs: all names and all types stand in one table each, and many conditions in one query.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from odd_names import ON_SPARK, PARTITION_NAMES, quoted
from odd_tables import plain
from odd_values import COLUMNS
from optimist.core.schema.arrow_types import from_arrow_schema
from optimist.spark import DeltaTable, read, write
from optimist.spark.spark_schema import to_spark_schema
from read_back import ids
from row_model import Condition, conditions, matching

__all__ = ["NAMES_TOLD", "frame_of_rows", "odd_rows", "tell_names", "wrong_answers"]

_EVERY_SO_MANY = 61
"""Of the conditions, which are all judged without Spark."""

_STRUCT = "named_struct('y', concat('y-', id), 'z', id) AS x"
NAMES_TOLD = {
    "columns": ["id", "x", *ON_SPARK],
    "rows": True,
    "filtered": [2],
    "field": [1],
    "no field": [],
    "deleted": [2, 3],
    "updated": ["0-3!", "5-3!", "7-3!", "2-3!"],
    "updated text": "4-2?",
    "merged": [1],
    "replaced": [1, 2, 3],
    "partitioned": True,
    "partition": [2],
    "partition updated": [[20, "star/*"]],
    "partition replaced": [3, 20],
}
"""What `tell_names` must tell."""


def tell_names(spark: SparkSession, folder: str) -> dict[str, Any]:
    """Write, read, filter, delete, update, merge and replace rows by odd names."""
    told: dict[str, Any] = {}
    path = f"{folder}/names"
    columns = [f"concat('{number}-', id) AS {quoted(name)}" for number, name in enumerate(ON_SPARK)]
    rows = spark.range(0, 4, 1, 1).selectExpr("id", _STRUCT, *columns)
    write(rows.coalesce(1), path, maxRecordsPerFile=2)
    frame = read(spark, path)
    told["columns"] = frame.columns
    told["rows"] = sorted(map(str, frame.collect())) == sorted(map(str, rows.collect()))
    told["filtered"] = ids(frame.where(" AND ".join(_is(name, 2) for name in ON_SPARK)))
    told["field"] = ids(frame.where("x.y = 'y-1'"))
    told["no field"] = ids(frame.where("`x.y` = 'y-1'"))
    table = DeltaTable.forPath(spark, path)
    table.delete(_is("x.y", 0))
    table.delete((sf.col("`ti``ck`") == "5-1") & (sf.col("x.z") == 1))
    told["deleted"] = ids(read(spark, path))
    odd = ("x.y", "ti`ck", "*", ".")
    table.update(_is("A.b.c", 3), {quoted(n): sf.concat(quoted(n), sf.lit("!")) for n in odd})
    table.update("x.y = 'y-2'", {"`x.`": "concat(`x.`, '?')"})
    after = {row.id: row for row in read(spark, path).collect()}
    told["updated"] = [after[3][name] for name in odd]
    told["updated text"] = after[2]["x."]
    more = rows.where("id = 1").withColumn("new.x", sf.lit("n")).withColumn("n`y", sf.lit(1))
    write(more, path, mode="append", mergeSchema=True)
    told["merged"] = ids(read(spark, path).where("`new.x` = 'n' AND `n``y` = 1"))
    write(more, path, mode="overwrite", replaceWhere="`new.x` = 'n'")
    told["replaced"] = ids(read(spark, path))
    return {**told, **_tell_named_partitions(spark, f"{folder}/named_partitions", rows)}


def _tell_named_partitions(spark: SparkSession, path: str, rows: DataFrame) -> dict[str, Any]:
    told: dict[str, Any] = {}
    write(rows, path, partitionBy=list(PARTITION_NAMES))
    frame = read(spark, path)
    told["partitioned"] = sorted(map(str, frame.collect())) == sorted(map(str, rows.collect()))
    told["partition"] = ids(frame.where(" AND ".join(_is(name, 2) for name in PARTITION_NAMES)))
    table = DeltaTable.forPath(spark, path)
    table.delete(_is("x.y", 0))
    table.delete(sf.col("`ti``ck`") == "5-1")
    table.update(_is(".x", 2), {"`*`": sf.lit("star/*"), "id": sf.lit(20)})
    updated = read(spark, path).where("id = 20").collect()
    told["partition updated"] = [[row.id, row["*"]] for row in updated]
    write(rows.where("id = 3"), path, mode="overwrite", replaceWhere=_is("sla/sh", 3))
    told["partition replaced"] = ids(read(spark, path))
    return told


def _is(name: str, row: int) -> str:
    return f"{quoted(name)} = '{ON_SPARK.index(name)}-{row}'"


def odd_rows(columns: Mapping[str, Any] = COLUMNS) -> pa.Table:
    """As many rows as the longest column has values; the shorter ones begin anew after a null."""
    count = 1 + max(len(column.values) for column in columns.values())
    arrays = {
        name: pa.array(
            list(itertools.islice(itertools.cycle((*column.values, None)), count)),
            column.arrow_type,
        )
        for name, column in columns.items()
    }
    return pa.table({"id": pa.array(range(count), pa.int64()), **arrays})


def frame_of_rows(spark: SparkSession, rows: pa.Table) -> DataFrame:
    """Arrow rows under the types that a table of theirs has, in one task."""
    schema = to_spark_schema(from_arrow_schema(rows.schema))
    return spark.createDataFrame(rows, schema).coalesce(1)


def _found_by(frame: DataFrame, judged: Sequence[Condition], size: int = 24) -> list[list[int]]:
    """The ids that each condition finds, each as the filter of a scan of its own; few queries."""
    found: list[list[int]] = []
    for start in range(0, len(judged), size):
        part = judged[start : start + size]
        scans = [
            frame.where(condition.sql).select(sf.lit(number).alias("n"), "id")
            for number, condition in enumerate(part)
        ]
        rows = reduce(DataFrame.union, scans).collect()
        found += [sorted(row.id for row in rows if row.n == n) for n in range(len(part))]
    return found


def wrong_answers(frame: DataFrame, rows: pa.Table, columns: Mapping[str, Any]) -> list[str]:
    """Of some conditions on each column, those that find other rows than a look at each row."""
    judged = [
        condition
        for name, column in columns.items()
        for condition in list(conditions(name, column))[::_EVERY_SO_MANY]
    ]
    listed = [plain(row) for row in rows.to_pylist()]
    pairs = zip(judged, _found_by(frame, judged), strict=True)
    return [item.sql for item, found in pairs if found != matching(item, listed)]
