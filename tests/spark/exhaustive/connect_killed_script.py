"""Run by test_killed_server.py in a process of its own: its server is killed within a write."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from pyspark import SparkContext
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.connect.client.retries import DefaultPolicy

from connect_process import kind_of, tell
from optimist.core import DeltaLog
from optimist.spark import DeltaTable, enable, write


def children(process: int) -> list[int]:
    """The processes below one, those below them first."""
    found: list[int] = []
    for task in Path(f"/proc/{process}/task").glob("*/children"):
        for child in map(int, task.read_text().split()):
            found += [*children(child), child]
    return found


def main(folder: str) -> None:
    spark = enable(SparkSession.builder.remote("local[1]").getOrCreate())
    spark.client.set_retry_policies([DefaultPolicy(max_retries=3, max_backoff=200)])
    path, server = f"{folder}/t", SparkContext._gateway.proc.pid
    write(spark.range(10).coalesce(1), path)
    write(spark.range(1), f"{folder}/other")
    table = DeltaTable.forPath(spark, f"{folder}/other")

    @sf.udf("long")
    def killed(value: int) -> int:
        for process in [*children(server), server]:
            if process != os.getpid():
                os.kill(process, signal.SIGKILL)
        return value

    dying = spark.range(9).select(killed("id").alias("id"))
    tell("a write", kind_of(lambda: write(dying, path, mode="append")))
    tell(
        "its table",
        [DeltaLog.for_path(path).snapshot().version, len(list(Path(path).rglob("*.parquet")))],
    )
    tell("a query", kind_of(lambda: spark.range(3).collect()))
    tell("a command", kind_of(lambda: table.delete("id = 0")))
    sys.stdout.flush()
    os._exit(0)  # the session can't be closed


main(sys.argv[1])
