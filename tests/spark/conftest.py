"""Tables on a local disk."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from optimist.core import DeltaLog
from optimist.spark import disable, enable, read, write
from optimist.spark.commands.dml.driver_shortcut import DriverShortcut
from optimist.spark.commands.writing.data_writer import DataWriter
from parts_of_rows import assert_parts_agree
from table_contents import read_locally

Builder = Callable[[str], object]
Copier = Callable[[str, Builder], str]
_PLANE = "spark.optimist.spark.plane"


@pytest.fixture(scope="module")
def enabled(spark: SparkSession) -> Iterator[SparkSession]:
    """The session of all tests, enabled for a module, and then as it was before."""
    enable(spark)
    yield spark
    disable(spark)


@pytest.fixture
def jobs(spark: SparkSession) -> Iterator[Callable[[], int]]:
    """How many jobs this test has started."""
    spark.sparkContext.setJobGroup("counted", "the jobs of a test")
    yield lambda: len(spark.sparkContext.statusTracker().getJobIdsForGroup("counted"))
    spark.sparkContext.setJobGroup("tests", "tests")


@pytest.fixture
def table_path(tmp_path: Path) -> str:
    return str(tmp_path / "table")


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


@pytest.fixture
def numbers(spark: SparkSession) -> DataFrame:
    """Twenty rows in one file, five for each value of `p`."""
    rows = spark.range(20).coalesce(1)
    return rows.selectExpr("id", "CAST(id % 4 AS INT) AS p", "concat('n', id) AS name")


@pytest.fixture(scope="session")
def _originals() -> dict[tuple[str, str], str]:
    return {}


@pytest.fixture
def copied(
    spark: SparkSession,
    table_path: str,
    tmp_path_factory: pytest.TempPathFactory,
    _originals: dict[tuple[str, str], str],
) -> Copier:
    """The path of a copy of the table of that name, which a function builds.

    It is built once on each plane: tables can be moved, and copies cost no jobs.
    """

    def copy(name: str, build: Builder) -> str:
        key = (name, str(spark.conf.get(_PLANE, "native")))
        if key not in _originals:
            original = str(tmp_path_factory.mktemp("original") / "table")
            build(original)
            _originals[key] = original
        shutil.copytree(_originals[key], table_path)
        return table_path

    return copy


@pytest.fixture
def table(numbers: DataFrame, copied: Copier) -> str:
    """The path of a table of these rows, partitioned by `p`."""
    return copied("numbers", lambda path: write(numbers, path, partitionBy="p"))


@pytest.fixture(params=["local", "native", pytest.param("arrow", marks=pytest.mark.again)])
def rows_at(request):
    """Reads a table on one plane: (path, version, predicate) to an Arrow table."""
    if request.param == "local":
        return read_locally
    spark = request.getfixturevalue("spark")
    conf = request.getfixturevalue("conf")
    conf("spark.optimist.spark.plane", request.param)
    # The tables are years old, and their older versions are read as well.
    conf(
        "spark.databricks.delta.vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration", "false"
    )

    def by_spark(path, version=None, predicate=None):
        frame = read(spark, str(path), versionAsOf=version)
        if predicate is not None:
            return frame.where(predicate).toArrow()
        whole = frame.toArrow()
        if request.param == "arrow":
            assert_parts_agree(frame, whole)
        return whole

    return by_spark


@pytest.fixture
def meeting(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], None]:
    """Run something between the write of a command's files and its commit, once."""
    writers = [
        (DataWriter, "write", DataWriter.write),
        (DriverShortcut, "done", DriverShortcut.done),
    ]

    def arrange(between: Callable[[], object]) -> None:
        pending = [between]

        def then_meet(real: Callable[..., object]) -> Callable[..., object]:
            def write_then_meet(*arguments: object, **more: object) -> object:
                written = real(*arguments, **more)
                if pending and written is not None:
                    pending.pop()()
                return written

            return write_then_meet

        for owner, name, real in writers:
            monkeypatch.setattr(owner, name, then_meet(real))

    return arrange
