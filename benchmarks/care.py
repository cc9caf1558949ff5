"""Seconds to care for a table of many small files, beside other engines and bare Spark.

| engine | what it is |
|---|---|
| `optimist` | our commands on Spark |
| `optimist, local` | our commands without Spark |
| `delta-spark` | the same statements in SQL, in a process and an environment of its own |
| `deltalake` | its commands |
| `plain` | Spark alone reads the same files, and writes their rows |

Every engine has a copy of the table of its own for each round. The first round is on a small table,
and warms up.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import deltalake
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from delta_spark import SESSION, measure_delta_spark
from optimist.core import DeltaLog
from optimist.spark import DeltaTable

__all__ = ["CARE_TARGETS", "CareResult", "measure_care"]

OURS, LOCAL, DELTA, THEIRS, PLAIN = (
    "optimist",
    "optimist, local",
    "delta-spark",
    "deltalake",
    "plain",
)
_OPTIMIZE, _Z_ORDER, _CONVERT = "OPTIMIZE", "Z-order by two columns", "CONVERT"
_WARMING_FILES = 4
_RANGES = 100
_ARRANGED_FILES = 20
_MAX_SIZE = "spark.databricks.delta.optimize.maxFileSize"
_SEED = 2026

CARE_TARGETS: Mapping[tuple[str, str, str], float] = {
    (_OPTIMIZE, OURS, PLAIN): 1.2,
    (_OPTIMIZE, OURS, DELTA): 0.5,
    (_OPTIMIZE, LOCAL, THEIRS): 1.2,
    (_Z_ORDER, OURS, DELTA): 1.2,
    (_CONVERT, OURS, DELTA): 0.25,
}
"""By command, engine of ours and other engine: how many times the other's time is enough."""


@dataclass(frozen=True, slots=True)
class CareResult:
    """The time of one command.

    Attributes:
        engine: Who ran it.
        what: The command.
        files: How many files the table had.
        best_s: The seconds of the best round.
        read_share: For an arranged table, the share of its files that a query of a hundredth of a
            column's values reads, the mean over both columns; None for others.
    """

    engine: str
    what: str
    files: int
    best_s: float
    read_share: float | None = None


def measure_care(
    directory: Path, *, files: int, rows: int, converted: int, rounds: int
) -> Iterator[CareResult]:
    """Measure OPTIMIZE and Z-order of so many files and rows, and CONVERT of so many files.

    Raises:
        RuntimeError: delta-spark could not be run.
    """
    tables = _Tables(directory / "care")
    tables.make("small", _WARMING_FILES, _WARMING_FILES * 100)
    tables.make("large", files, rows)
    tables.make("converted", converted, converted * 10, is_table=False)
    tables.make("small-converted", _WARMING_FILES, 100, is_table=False)
    spark = SparkSession.builder.config(map=dict(SESSION)).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    sizes = {_OPTIMIZE: files, _Z_ORDER: files, _CONVERT: converted}
    for (what, engine), run in _runs(spark).items():
        if what == _Z_ORDER:
            spark.conf.set(_MAX_SIZE, str(_max_size(tables)))
        copies = tables.copies(what, engine, rounds)
        times = [_seconds(run, path) for path in copies]
        yield CareResult(engine, what, sizes[what], min(times[1:]), _share(what, copies[-1]))
    spark.stop()
    theirs = {what: tables.copies(what, DELTA, rounds) for what in sizes}
    statements = {
        what: [_STATEMENTS[what].format(path) for path in each] for what, each in theirs.items()
    }
    arranging = statements.pop(_Z_ORDER)
    arranging[0] = f"SET {_MAX_SIZE} = {_max_size(tables)}"
    told = measure_delta_spark({**statements, _Z_ORDER: arranging})
    for what, times in told.items():
        yield CareResult(DELTA, what, sizes[what], min(times[1:]), _share(what, theirs[what][-1]))


def _max_size(tables: _Tables) -> int:
    """How large files are to be, so that a Z-order makes so many of them."""
    return tables.size_of("large") // _ARRANGED_FILES


_STATEMENTS: Mapping[str, str] = {
    _OPTIMIZE: "OPTIMIZE delta.`{}`",
    _Z_ORDER: "OPTIMIZE delta.`{}` ZORDER BY (a, b)",
    _CONVERT: "CONVERT TO DELTA parquet.`{}`",
}
Run = Callable[[str], object]


def _runs(spark: SparkSession) -> dict[tuple[str, str], Run]:
    def optimize(path: str) -> object:
        return DeltaTable.forPath(spark, path).optimize().executeCompaction()

    def z_order(path: str) -> object:
        return DeltaTable.forPath(spark, path).optimize().executeZOrderBy("a", "b")

    def plain(path: str) -> None:
        spark.read.parquet(path).write.parquet(f"{path}-written")

    return {
        (_OPTIMIZE, OURS): optimize,
        (_OPTIMIZE, LOCAL): lambda path: DeltaLog.for_path(path).optimize(),
        (_OPTIMIZE, THEIRS): lambda path: deltalake.DeltaTable(path).optimize.compact(),
        (_OPTIMIZE, PLAIN): plain,
        (_CONVERT, OURS): lambda path: DeltaTable.convertToDelta(spark, f"parquet.`{path}`"),
        (_Z_ORDER, OURS): z_order,
    }


class _Tables:
    """Tables of random rows, and copies of them.

    A copy shares the data files, which no engine changes, and has a log of its own.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def make(self, name: str, files: int, rows: int, *, is_table: bool = True) -> None:
        """Write the files of a table, or of a directory that is none."""
        path = self._directory / name
        path.mkdir(parents=True)
        random = np.random.default_rng(_SEED)
        size = rows // files
        for number in range(files):
            columns = {
                "id": np.arange(number * size, (number + 1) * size),
                "a": random.integers(0, 1 << 31, size),
                "b": random.integers(0, 1 << 31, size),
                "x": random.random(size),
                "s": pa.array(random.integers(0, 997, size)).cast(pa.string()),
            }
            pq.write_table(pa.table(columns), path / f"part-{number:05}.parquet")
        if is_table:
            DeltaLog.for_path(str(path)).convert()

    def size_of(self, name: str) -> int:
        """Return the bytes of its files."""
        return sum(file.stat().st_size for file in (self._directory / name).glob("*.parquet"))

    def copies(self, what: str, engine: str, rounds: int) -> list[str]:
        """Make copies for each round, the first one of the small table."""
        large = "converted" if what == _CONVERT else "large"
        small = "small-converted" if what == _CONVERT else "small"
        found = []
        for number in range(rounds + 1):
            target = self._directory / f"{what}-{engine}-{number}".replace(" ", "-")
            source = self._directory / (large if number else small)
            shutil.copytree(source, target, copy_function=_link_or_copy)
            found.append(str(target))
        return found


def _link_or_copy(source: str, target: str) -> None:
    if "_delta_log" in Path(source).parts:
        shutil.copy2(source, target)
    else:
        os.link(source, target)


def _share(what: str, path: str) -> float | None:
    """See `CareResult.read_share`."""
    if what != _Z_ORDER:
        return None
    live = DeltaLog.for_path(path).snapshot().files["stats"].to_pylist()
    stats = [json.loads(text) for text in live]
    width = (1 << 31) // _RANGES
    hits: list[bool] = [
        each["minValues"][column] < low + width and each["maxValues"][column] >= low
        for column in ("a", "b")
        for low in range(0, width * _RANGES, width)
        for each in stats
    ]
    return sum(hits) / len(hits)


def _seconds(run: Run, path: str) -> float:
    started_s = time.perf_counter()
    run(path)
    return time.perf_counter() - started_s
