"""Memory of a stream from table to table, every so many batches: of Python, and of the JVM's heap.

`python benchmarks/stream_memory.py [PLANE] [BATCHES]` prints a line per tenth of the batches. Both
are to stay as they are; the heap is looked at after a collection.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from delta_spark import SESSION
from optimist.core import DeltaLog
from optimist.spark import enable

_MIB = 1 << 20


def main(plane: str, batches: int) -> None:
    """Stream so many commits, one a batch, and print what is held meanwhile."""
    builder = SparkSession.builder.config(map=dict(SESSION))
    spark = enable(builder.config("spark.optimist.spark.plane", plane).getOrCreate())
    spark.sparkContext.setLogLevel("ERROR")
    with tempfile.TemporaryDirectory() as folder:
        log = DeltaLog.for_path(f"{folder}/source")
        for number in range(batches):
            log.append(pa.table({"id": pa.array([number], pa.int64())}))
        reader = spark.readStream.format("delta").option("maxFilesPerTrigger", 1)
        reader = reader.option("startingVersion", 0)
        writer = reader.load(f"{folder}/source").writeStream.format("delta")
        writer = writer.option("checkpointLocation", f"{folder}/checkpoint")
        query = writer.trigger(availableNow=True).start(f"{folder}/sink")
        wanted = range(batches // 10 - 1, batches, batches // 10)
        for number in wanted:
            while query.isActive and (query.lastProgress or {"batchId": -1})["batchId"] < number:
                time.sleep(0.05)
            print(f"batch {number + 1:5}: {_told(spark)}", flush=True)
        query.awaitTermination()
        rows = DeltaLog.for_path(f"{folder}/sink").count()
        print(f"{rows} rows in the sink")
    spark.stop()


def _told(spark: SparkSession) -> str:
    """Python's resident memory, and what the JVM's heap holds after a collection."""
    resident = int(Path("/proc/self/statm").read_text().split()[1]) * 4096
    jvm: Any = spark._jvm
    runtime = jvm.java.lang.Runtime.getRuntime()
    runtime.gc()
    heap = runtime.totalMemory() - runtime.freeMemory()
    return f"Python {resident / _MIB:.0f} MiB, heap {heap / _MIB:.0f} MiB"


if __name__ == "__main__":
    given = sys.argv[1:]
    main(given[0] if given else "native", int(given[1]) if given[1:] else 1000)
