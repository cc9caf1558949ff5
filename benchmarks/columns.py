"""Seconds to query a few of 100 columns, on the arrow plane and on the native one.

There is nothing of deltalake's to compare with: what counts is that a plane decodes no column that
a query does not name.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from optimist.core import DeltaLog
from optimist.spark import read

__all__ = ["ColumnResult", "measure_columns"]

COLUMNS = 100
FILES = 4
PLANES = ("native", "arrow")
QUERIES = {
    "count of rows": "count(*) AS rows",
    "sum of 1 column": "sum(c50), count(*) AS rows",
    "sums of 3 columns": "sum(c1), sum(c50), sum(c99), count(*) AS rows",
}
"""What each query computes over all rows; its column `rows` checks the answer."""


@dataclass(frozen=True, slots=True)
class ColumnResult:
    """The time of one of `QUERIES` over all rows of a table of `COLUMNS` columns."""

    plane: str
    query: str
    rows: int
    best_s: float
    median_s: float


def measure_columns(directory: Path, *, rows: int, rounds: int) -> list[ColumnResult]:
    """Query a table `rounds` times on either plane, in turns, so that noise hits all alike.

    Raises:
        RuntimeError: A plane counted the wrong number of rows.
    """
    os.environ["PYSPARK_PYTHON"] = sys.executable
    path = _table(directory / "columns", rows)
    spark = (
        SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    )
    times: dict[tuple[str, str], list[float]] = {}
    for number, query, plane in product(range(rounds + 2), QUERIES, PLANES):
        spark.conf.set("spark.optimist.spark.plane", plane)
        started = time.perf_counter()
        (row,) = read(spark, path).selectExpr(*QUERIES[query].split(", ")).collect()
        if number >= 2:  # the first turns warm up
            times.setdefault((plane, query), []).append(time.perf_counter() - started)
        if row["rows"] != rows:
            raise RuntimeError(f"The {plane} plane counted {row['rows']} rows, not {rows}.")
    spark.stop()
    return [
        ColumnResult(*key, rows, min(taken), statistics.median(taken))
        for key, taken in times.items()
    ]


def _table(path: Path, rows: int) -> str:
    """Columns of longs, none like another, a quarter of the rows in each file."""
    log = DeltaLog.for_path(str(path))
    each = rows // FILES
    for start in range(0, rows, each):
        values = np.arange(start, start + each)
        columns = {f"c{number}": (values * (number + 1)) % 1009 for number in range(COLUMNS)}
        log.append(pa.table(columns))
    return str(path)
