"""Small MERGEs of a table `t` (id, v) and a source `s`, joined by id."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from optimist.core import DeltaLog
from optimist.spark import DeltaMergeBuilder, DeltaTable

VECTORS = {"spark.databricks.delta.properties.defaults.enableDeletionVectors": "true"}
FEED = {"spark.databricks.delta.properties.defaults.enableChangeDataFeed": "true"}


def numbers(start: int, stop: int, **more: Any) -> pa.Table:
    """Rows with the ids from `start` on, and other columns."""
    ids = pa.array(range(start, stop), pa.int64())
    return pa.table({"id": ids, "v": [f"v{i}" for i in range(start, stop)], **more})


def target(spark: SparkSession, path: str) -> DeltaTable:
    """The table as `t`."""
    return DeltaTable.forPath(spark, path).alias("t")


def upsert(spark: SparkSession, path: str, source: DataFrame) -> DeltaMergeBuilder:
    """Rows of the source replace those with their ids, or are new."""
    builder = target(spark, path).merge(source, "t.id = s.id")
    return builder.whenMatchedUpdateAll().whenNotMatchedInsertAll()


def metrics_of(path: str) -> dict[str, str]:
    """The operation metrics of the newest version."""
    metrics = DeltaLog.for_path(path, {}).history(1)[0].info.operation_metrics
    assert metrics is not None
    return metrics
