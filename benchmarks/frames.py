"""Seconds from `read` to the first task, for one partition of a large table that was read before.

There is nothing to compare with: deltalake makes no DataFrames. The table has no data files, and no
task runs.
"""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from optimist.spark import read

__all__ = ["FrameResult", "measure_frames"]

_MONTHS, _DAYS = 12, 28


@dataclass(frozen=True, slots=True)
class FrameResult:
    """Seconds of a session's first frame, which lists the version, and of the frames after it."""

    num_files: int
    first_s: float
    best_s: float
    median_s: float


def measure_frames(table: Path, *, num_files: int, rounds: int) -> FrameResult:
    """Make the frame of another partition of the big log `rounds` times, and plan it.

    Raises:
        RuntimeError: Nothing was left to read.
    """
    spark = (
        SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    )
    spark.range(1).where("id = 1").collect()  # Spark's own start
    times = []
    for number in range(rounds + 1):
        started = time.perf_counter()
        where = f"month = {number % _MONTHS + 1} AND day = {number % _DAYS + 1}"
        frame = read(spark, str(table)).where(where)
        # Asking for the splits makes Spark do all that it does before tasks start.
        splits = frame._jdf.queryExecution().toRdd().getNumPartitions()
        times.append(time.perf_counter() - started)
        if splits == 0:
            raise RuntimeError(f"No file of {table} is left where {where}.")
    spark.stop()
    first, *rest = times
    return FrameResult(num_files, first, min(rest), statistics.median(rest))
