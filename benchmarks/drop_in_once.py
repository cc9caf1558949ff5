"""What the drop-in costs in one new session; `drop_in.py` runs it once per measurement.

`python benchmarks/drop_in_once.py PATH ROUNDS` prints one line of JSON: seconds of CPU, best of the
rounds, and for queries of the table seconds of wall time, too. CPU is that of this process and of
the thread of the JVM that serves it.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable

from pyspark.sql import SparkSession

from optimist.spark import disable, enable

_STATEMENT = "SELECT 1"
_STATEMENTS = 10
_MONTHS, _DAYS = 12, 28


def main(path: str, rounds: int) -> None:
    """Measure in this process and print the results."""
    spark = (
        SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    )
    spark.sql(_STATEMENT).collect()
    cpu_s = _clock(spark)
    enabled_s = _seconds(cpu_s, lambda: enable(spark))
    without, with_ours, cpus, walls = [], [], [], []
    for number in range(rounds + 1):
        disable(spark)
        without.append(_seconds(cpu_s, lambda: _statements(spark)))
        enable(spark)
        with_ours.append(_seconds(cpu_s, lambda: _statements(spark)))
        started_s = time.perf_counter()
        cpus.append(_seconds(cpu_s, lambda: _plan(spark, path, number)))  # noqa: B023 - at once
        walls.append(time.perf_counter() - started_s)
    found = {
        "enable_s": enabled_s,
        "statement_s": (min(with_ours[1:]) - min(without[1:])) / _STATEMENTS,
        "query_s": min(cpus[1:]),
        "query_wall_s": min(walls[1:]),
    }
    print(json.dumps(found))
    spark.stop()


def _clock(spark: SparkSession) -> Callable[[], float]:
    jvm = spark._jvm
    assert jvm is not None
    threads = jvm.java.lang.management.ManagementFactory.getThreadMXBean()
    return lambda: time.process_time() + threads.getCurrentThreadCpuTime() / 1e9


def _seconds(cpu_s: Callable[[], float], work: Callable[[], object]) -> float:
    started_s = cpu_s()
    work()
    return cpu_s() - started_s


def _statements(spark: SparkSession) -> None:
    for _ in range(_STATEMENTS):
        spark.sql(_STATEMENT)


def _plan(spark: SparkSession, path: str, number: int) -> None:
    """All that Spark does of a query of another partition before tasks start."""
    where = f"month = {number % _MONTHS + 1} AND day = {number % _DAYS + 1}"
    frame = spark.sql(f"SELECT * FROM delta.`{path}` WHERE {where}")
    if frame._jdf.queryExecution().toRdd().getNumPartitions() == 0:
        raise RuntimeError(f"No file of {path} is left where {where}.")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
