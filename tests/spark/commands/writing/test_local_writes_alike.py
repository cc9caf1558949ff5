"""`DeltaLog.write` and a write from Spark leave the same history, and the same rows."""

from __future__ import annotations

from functools import partial

import pyarrow as pa
import pytest

from optimist.core import DeltaLog
from optimist.core.errors import OptimistError
from optimist.spark import write

SIZES = ("numOutputBytes", "numRemovedBytes")
FIRST = [(1, "a"), (2, "b"), (3, ""), (4, None), (5, "a")]
# The options of Spark, the arguments of `DeltaLog.write`, and the rows.
SCRIPTS = {
    "append": [({}, {}, [(6, "c")])],
    "overwrite": [({"mode": "overwrite"}, {"mode": "overwrite"}, [(6, "c"), (7, "a")])],
    "partition": [
        (
            {"mode": "overwrite", "replaceWhere": "p = 'a'"},
            {"mode": "overwrite", "predicate": "p = 'a'"},
            [(6, "a")],
        )
    ],
    "data": [
        (
            {"mode": "overwrite", "replaceWhere": "id > 1 AND p = 'a'", "userMetadata": "m"},
            {"mode": "overwrite", "predicate": "id > 1 AND p = 'a'", "user_metadata": "m"},
            [(6, "a"), (7, "a")],
        )
    ],
    "null": [
        (
            {"mode": "overwrite", "replaceWhere": "p IS NULL"},
            {"mode": "overwrite", "predicate": "p IS NULL"},
            [(6, None), (7, "")],
        )
    ],
    "mismatch": [
        (
            {"mode": "overwrite", "replaceWhere": "p <> 'b'"},
            {"mode": "overwrite", "predicate": "p <> 'b'"},
            [(6, None)],
        )
    ],
    "dynamic": [
        (
            {"mode": "overwrite", "partitionOverwriteMode": "dynamic", "partitionBy": ["p"]},
            {"mode": "overwrite", "partition_overwrite": "dynamic", "partition_by": ["p"]},
            [(6, ""), (7, "z")],
        )
    ],
    "replay": [
        ({"txnAppId": "j", "txnVersion": 3}, {"txn": ("j", 3)}, [(6, "c")]),
        ({"txnAppId": "j", "txnVersion": 3}, {"txn": ("j", 3)}, [(7, "c")]),
    ],
    "ignore": [({"mode": "ignore"}, {"mode": "ignore"}, [(6, "c")])],
    "error": [({"mode": "error"}, {"mode": "error"}, [(6, "c")])],
}
TABLES = {
    "plain": {},
    "feed": {"delta.enableChangeDataFeed": "true"},
    "vectors": {"delta.enableDeletionVectors": "true", "delta.enableRowTracking": "true"},
}


def outcomes(log, do):
    """The kind of an error, or what the history tells, but for sizes and times."""
    try:
        result = do()
    except OptimistError as error:
        return error.kind
    if result is None:
        return None
    info = log.history(1)[0].info
    metrics = {
        name: value
        for name, value in info.operation_metrics.items()
        if name not in SIZES and not name.endswith("TimeMs")
    }
    return (
        (info.operation, dict(info.operation_parameters), metrics, info.is_blind_append),
        info.user_metadata,
        log.version(),
    )


@pytest.mark.sample(3)
@pytest.mark.parametrize("properties", list(TABLES))
def test_both_leave_the_same_history_and_rows(spark, tmp_path, properties):
    for name, script in SCRIPTS.items():
        on_spark, here = (made(tmp_path / f"{name}-{side}", properties) for side in "sp")
        for options, arguments, rows in script:
            frame = spark.createDataFrame(rows, "id bigint, p string").coalesce(1)
            given = {"mode": "append", **options}
            found = outcomes(on_spark, partial(write, frame, on_spark.table_path, **given))
            assert outcomes(here, partial(here.write, rows_of(rows), **arguments)) == found, name
        assert contents(on_spark) == contents(here), name
        assert changes(on_spark, properties) == changes(here, properties), name


def made(path, properties):
    log = DeltaLog.for_path(str(path))
    columns = {"id": "bigint", "p": "string"}
    log.create(columns, partition_by=["p"], properties=TABLES[properties])
    log.append(rows_of(FIRST))
    return log


def rows_of(rows):
    ids, parts = zip(*rows, strict=True)
    return pa.table({"id": pa.array(ids, pa.int64()), "p": pa.array(parts, pa.string())})


def contents(log):
    return sorted(map(str, log.to_arrow().to_pylist()))


def changes(log, properties):
    if properties != "feed":
        return None
    names = ["id", "p", "_change_type", "_commit_version"]
    return sorted(map(str, log.changes(columns=names, starting_version=0).to_pylist()))
