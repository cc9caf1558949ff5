"""A table and a source to merge."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from optimist.core import DeltaLog
from small_merges import numbers


@pytest.fixture
def table(table_path: str) -> str:
    """Ten rows in each of three files."""
    log = DeltaLog.for_path(table_path, {})
    for start in (0, 10, 20):
        log.append(numbers(start, start + 10))
    return table_path


@pytest.fixture
def source(spark: SparkSession) -> DataFrame:
    """A row of the second file, and one that is new, as `s`."""
    rows = pa.table({"id": pa.array([13, 99], pa.int64()), "v": ["a", "b"]})
    return spark.createDataFrame(rows).alias("s")
