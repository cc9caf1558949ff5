"""`DeltaLog.write` changes a table's schema as a write from Spark does, and refuses the same."""

from __future__ import annotations

from functools import partial

import pytest
from pyspark.sql import functions as sf

from optimist.core import DeltaLog
from optimist.core.errors import OptimistError
from optimist.spark import write

MERGE = ({"mergeSchema": True}, {"schema_mode": "merge"})
REPLACE = ({"overwriteSchema": True}, {"schema_mode": "overwrite"})
NEITHER: tuple[dict, dict] = ({}, {})
COLUMNS = {
    "id": "int",
    "p": "string",
    "s": "struct<a: int, b: array<struct<c: int>>>",
    "m": "map<string, struct<d: int>>",
}
# The rows of a write as SQL, and how it may change the schema.
WRITES = {
    "new column": ("1 AS id, 'x' AS p, true AS z", MERGE),
    "new column, not allowed": ("1 AS id, 'x' AS p, true AS z", NEITHER),
    "in other case and order": ("'x' AS P, 1 AS ID", MERGE),
    "new fields": (
        "named_struct('a', 1, 'b', array(named_struct('c', 1, 'e', 2L)), 'f', 'y') AS s, 2 AS id",
        MERGE,
    ),
    "new field in a map": ("map('k', named_struct('d', 1, 'g', 2.5BD)) AS m", MERGE),
    "fewer fields": ("named_struct('a', 1) AS s", MERGE),
    "fewer fields, not allowed": ("named_struct('a', 1) AS s", NEITHER),
    "wider": ("3L AS id, 'x' AS p", MERGE),
    "wider, nested": ("named_struct('a', 5L) AS s", MERGE),
    "other type": ("'t' AS id", MERGE),
    "other shape": ("1 AS s", MERGE),
    "twice": ("1 AS id, 2 AS ID", MERGE),
    "void": ("1 AS id, NULL AS z", MERGE),
    "void within": ("array(NULL) AS z", MERGE),
    "repartitioned": ("1 AS id, 'x' AS p", ({"partitionBy": ["id"]}, {"partition_by": ["id"]})),
    "replaced": (
        "1 AS id, 'x' AS q",
        ({"mode": "overwrite", **REPLACE[0]}, {"mode": "overwrite", **REPLACE[1]}),
    ),
    "replaced, other partitions": (
        "1L AS id, 'x' AS q",
        (
            {"mode": "overwrite", "partitionBy": "q", **REPLACE[0]},
            {"mode": "overwrite", "partition_by": ["q"], **REPLACE[1]},
        ),
    ),
    "overwrite that merges": (
        "1 AS id, 'x' AS p, 3 AS z",
        ({"mode": "overwrite", **MERGE[0]}, {"mode": "overwrite", **MERGE[1]}),
    ),
    "some rows, and a new column": (
        "1 AS id, 'x' AS p, 3 AS z",
        (
            {"mode": "overwrite", "replaceWhere": "id = 1", **MERGE[0]},
            {"mode": "overwrite", "predicate": "id = 1", **MERGE[1]},
        ),
    ),
    "some rows, wider": (
        "'x' AS p, 3L AS id",
        (
            {"mode": "overwrite", "replaceWhere": "id = 3", **MERGE[0]},
            {"mode": "overwrite", "predicate": "id = 3", **MERGE[1]},
        ),
    ),
    "partitions, and a new column": (
        "1 AS id, 'x' AS p, 3 AS z",
        (
            {"mode": "overwrite", "partitionOverwriteMode": "dynamic", **MERGE[0]},
            {"mode": "overwrite", "partition_overwrite": "dynamic", **MERGE[1]},
        ),
    ),
}
TABLES = {
    "plain": {},
    "mapped": {"delta.columnMapping.mode": "name", "delta.enableChangeDataFeed": "true"},
    "widening": {"delta.enableTypeWidening": "true", "delta.enableDeletionVectors": "true"},
}
CAST_HERE = ("wider", "wider, nested", "some rows, wider")
"""Writes whose values are cast to the table's types here, as by INSERT on Spark."""
FIRST = (
    "id AS id, IF(id = 3, NULL, 'x') AS p, named_struct('a', id, 'b', array(named_struct('c', id)))"
    " AS s, map('k', named_struct('d', id)) AS m"
)


def made(spark, path, properties):
    log = DeltaLog.for_path(str(path))
    log.create(COLUMNS, partition_by=["p"], properties=TABLES[properties])
    log.write(
        spark.range(1, 5).select(sf.col("id").cast("int")).selectExpr(*split(FIRST)).toArrow()
    )
    return log


def split(columns: str) -> list[str]:
    """The columns of a SELECT, at the commas outside of parentheses."""
    found, depth = [""], 0
    for letter in columns:
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if letter == "," and not depth:
            found.append("")
        else:
            found[-1] += letter
    return found


def outcome(log, do):
    try:
        do()
    except OptimistError as error:
        return error.kind, log.version()
    parameters = log.history(1)[0].info.operation_parameters
    schema = [(item.name, str(item.data_type), item.nullable) for item in log.schema()]
    ids = [item.metadata.get("delta.columnMapping.id") for item in log.schema()]
    widened = [item.metadata.get("delta.typeChanges") for item in log.schema()]
    rows = sorted(map(str, log.to_arrow().to_pylist()))
    parts = log.snapshot().partition_columns
    return parameters, schema, ids, widened, parts, rows


@pytest.mark.sample(3)
@pytest.mark.parametrize("properties", list(TABLES))
def test_both_change_the_schema_alike(spark, tmp_path, properties):
    for number, (name, (columns, (options, arguments))) in enumerate(WRITES.items()):
        if name in CAST_HERE and properties != "widening":
            continue
        on_spark, here = (made(spark, tmp_path / f"{number}{side}", properties) for side in "sp")
        frame = spark.range(1).selectExpr(*split(columns))
        given = {"mode": "append", **options}
        found = outcome(on_spark, partial(write, frame, on_spark.table_path, **given))
        assert outcome(here, partial(here.write, frame.toArrow(), **arguments)) == found, name
