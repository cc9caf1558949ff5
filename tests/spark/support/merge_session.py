"""MERGE in a session of Spark Connect: against the model, by columns of frames, and its files."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import functions as sf

from connect_process import tell
from merge_model import Merge, changed
from optimist.core import DeltaLog
from optimist.core.errors import OptimistError
from optimist.spark import DeltaTable
from table_contents import read_locally, values

__all__ = ["MERGES_TOLD", "tell_merges"]

VECTORS = {"spark.databricks.delta.properties.defaults.enableDeletionVectors": "true"}
CASES = [(111, ["MATCHED", "NOT MATCHED"]), (104, ["NOT MATCHED BY SOURCE", "MATCHED"])]
MERGES_TOLD = {
    "cases": [True] * len(CASES),
    "files looked at": ["1", "9"],
    "columns of frames": {"4": "V4", "13": "v13a", "99": "in"},
    "conflict": "DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE",
    "refused": "DELTA_NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED",
    "affected": [{"num_affected_rows": number} for number in (2, 1, 0, 29)],
}


def tell_merges(spark, folder: str) -> None:
    """Tell what `MERGES_TOLD` expects."""
    tell(
        "merges",
        {
            "cases": [
                _is_right(spark, f"{folder}/case{seed}", Merge.of(seed, kinds))
                for seed, kinds in CASES
            ],
            **_small_merges(spark, f"{folder}/small"),
        },
    )


def _is_right(spark, path: str, merge: Merge) -> bool:
    merge.write(path, VECTORS)
    rows, counts = merge.expected()
    told = merge.run(spark, path)
    is_counted = told["num_affected_rows"] == changed(counts, "update", "delete", "insert")
    return is_counted and values(read_locally(path)) == values(merge.table(rows))


def _small_merges(spark, path: str) -> dict[str, object]:
    log = DeltaLog.for_path(path, {})
    for start in (0, 10, 20):
        ids = range(start, start + 10)
        log.append(pa.table({"id": pa.array(ids, pa.int64()), "v": [f"v{i}" for i in ids]}))
    table, told = DeltaTable.forPath(spark, path), dict[str, object]()
    rows = pa.table({"id": pa.array([13, 99], pa.int64()), "v": ["a", "b"]})
    source = spark.createDataFrame(rows)
    upsert = table.alias("t").merge(source.alias("s"), "t.id = s.id AND s.id < 50")
    upsert.whenMatchedUpdate("s.id < 0", {"v": "s.v"}).whenNotMatchedInsertAll("id < 0").execute()
    upsert.whenMatchedUpdate(set={"v": "t.v"}).execute()
    metrics = log.history(1)[0].info.operation_metrics
    told["files looked at"] = [
        metrics["numTargetFilesRemoved"],
        metrics["numTargetRowsCopied"],
    ]
    before, new = table.toDF(), source.alias("n").where("rand() < 2")
    builder = table.merge(new, before["id"] == source["id"])
    builder = builder.whenMatchedUpdate(
        source["v"] != before["v"], {"v": sf.concat(before["v"], new["v"])}
    ).whenNotMatchedBySourceUpdate(before["id"] == 4, {"v": sf.upper(before["v"])})
    builder.whenNotMatchedInsert(values={"id": source["id"], "v": sf.lit("in")}).execute()
    found = log.to_arrow("id IN (4, 13, 99)").to_pylist()
    told["columns of frames"] = {str(row["id"]): row["v"] for row in found}
    twice = source.union(source).alias("s")
    told["conflict"] = _kind(table.alias("t").merge(twice, "t.id = s.id").whenMatchedUpdateAll())
    told["refused"] = _kind(table.merge(source.alias("s"), "rand() > s.id").whenMatchedDelete())
    answers = [
        table.delete("id IN (5, 6)"),
        table.update("id = 13", {"v": "'again'"}),
        table.update("id = 5", {"v": "'gone'"}),
        table.delete(),
    ]
    told["affected"] = [row for frame in answers for row in frame.toArrow().to_pylist()]
    return told


def _kind(builder) -> str:
    try:
        builder.execute()
    except OptimistError as error:
        return error.kind
    return "nothing"
