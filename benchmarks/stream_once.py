"""One stream from table to table; `micro_batches.py` runs it once per measurement.

`python benchmarks/stream_once.py KIND FOLDER BATCHES ANSWERS` writes a list of seconds, one per
batch, as JSON.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from delta_spark import SESSION
from optimist.spark import enable

__all__ = ["ROWS", "measure"]

ROWS = 1_000
"""How many rows a batch has."""


def measure(spark: SparkSession, source_format: str, folder: str, batches: int) -> list[float]:
    """Stream a table of so many files into another of the same format, a file per batch.

    Returns:
        The seconds of each batch, from its trigger to Spark's record of it.
    """
    source = f"{folder}/source"
    for start in range(0, batches * ROWS, ROWS):
        rows = spark.range(start, start + ROWS, 1, 1)
        rows.write.format(source_format).mode("append").save(source)
    reader = spark.readStream.format(source_format).option("maxFilesPerTrigger", 1)
    if source_format == "parquet":
        reader = reader.schema("id LONG")
    writer = reader.load(source).writeStream.format(source_format)
    writer = writer.option("checkpointLocation", f"{folder}/checkpoint").trigger(availableNow=True)
    query = writer.start(f"{folder}/sink")
    query.awaitTermination()
    found = [item for item in query.recentProgress if item.numInputRows]
    if [item.numInputRows for item in found] != [ROWS] * batches:
        raise RuntimeError(f"Not {batches} batches of {ROWS} rows: {found}")
    return [item.durationMs["triggerExecution"] / 1000 for item in found]


def main(kind: str, folder: str, batches: int, answers: str) -> None:
    """Measure in this process: Parquet, or a table of ours on the plane that is named."""
    builder = SparkSession.builder.config(map=dict(SESSION))
    if kind == "parquet":
        spark, source_format = builder.getOrCreate(), "parquet"
    else:
        builder = builder.config("spark.optimist.spark.plane", kind)
        spark, source_format = enable(builder.getOrCreate()), "delta"
    Path(answers).write_text(json.dumps(measure(spark, source_format, folder, batches)))
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4])
