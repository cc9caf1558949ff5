"""Sixty rows, the table of two commits that holds them, and what Spark says of them on its own."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from optimist.spark import write

__all__ = ["ROWS", "SCHEMA", "ids_for_which", "write_sixty_rows"]

SCHEMA = "id long, p int, x int, s string"
ROWS = [
    (i, None if i % 7 == 6 else i % 3, None if i % 5 == 4 else i % 10, f"n{i:02d}")
    for i in range(60)
]


def write_sixty_rows(spark: SparkSession, path: str) -> None:
    """Half of them with each commit, partitioned by `p`."""
    frame = spark.createDataFrame(ROWS, SCHEMA)
    write(frame.where("id < 30").coalesce(1), path, partitionBy="p")
    write(frame.where("id >= 30").coalesce(1), path, mode="append")


def ids_for_which(spark: SparkSession, conditions: Sequence[str]) -> dict[str, set[int]]:
    """The ids of a plain frame for which Spark finds each condition true, by one job for all."""
    frame = spark.createDataFrame(ROWS, SCHEMA).alias("t")
    verdicts = [sf.expr(condition).alias(f"v{n}") for n, condition in enumerate(conditions)]
    rows = frame.select("id", *verdicts).collect()
    return {
        condition: {row["id"] for row in rows if row[f"v{n}"]}
        for n, condition in enumerate(conditions)
    }
