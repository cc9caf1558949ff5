"""Tables on a local disk, and a conf that is put back after each test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from optimist.core import DeltaLog


@pytest.fixture
def table_path(tmp_path: Path) -> str:
    return str(tmp_path / "table")


@pytest.fixture
def conf(spark: SparkSession) -> Iterator[Callable[[str, str], None]]:
    """Set a conf of the session for one test."""
    before: dict[str, str | None] = {}

    def change(key: str, value: str) -> None:
        before.setdefault(key, spark.conf.get(key, None))
        spark.conf.set(key, value)

    yield change
    for key, value in before.items():
        if value is None:
            spark.conf.unset(key)
        else:
            spark.conf.set(key, value)


@pytest.fixture(params=["native", "arrow"])
def plane(request: pytest.FixtureRequest, conf: Callable[[str, str], None]) -> str:
    """Run a test on either plane."""
    name = str(request.param)
    conf("spark.optimist.spark.plane", name)
    return name


@pytest.fixture
def rows_of() -> Callable[[DataFrame], list[tuple[object, ...]]]:
    """The rows of a frame as sorted tuples."""

    def collect(frame: DataFrame) -> list[tuple[object, ...]]:
        return sorted((tuple(row) for row in frame.collect()), key=repr)

    return collect


@pytest.fixture
def log_of() -> Callable[[str], DeltaLog]:
    """A handle of a table that shares nothing with the session."""
    return lambda path: DeltaLog.for_path(path, {})
