"""Seconds and peak memory of work without Spark beside deltalake, each in a process of its own.

The commands change a table of 100 files, with deletion vectors and by rewriting, as deltalake does.
The scans read it with a filter, to Arrow and by two libraries, beside deltalake's dataset. The
writes take rows from a reader. The memory is that of the whole process.
"""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from engines import OURS, THEIRS
from row_tables import RowTables
from without_spark_once import WORKS

__all__ = ["WITHOUT_SPARK_TARGETS", "WithoutSparkResult", "measure_without_spark"]

SCRIPT = Path(__file__).with_name("without_spark_once.py")
VECTORS, REWRITING, AS_IS = "with vectors", "rewriting", ""
WITHOUT_SPARK_TARGETS: Mapping[tuple[str, str], float] = {
    ("DELETE of a key range", VECTORS): 0.5,
    ("DELETE of a key range", REWRITING): 1.0,
    ("DELETE of 0.1 %, scattered", VECTORS): 0.5,
    ("DELETE of 0.1 %, scattered", REWRITING): 1.0,
    ("UPDATE of 1 %, scattered", VECTORS): 0.7,
    ("UPDATE of 1 %, scattered", REWRITING): 1.0,
    ("MERGE, 90 % matched", VECTORS): 0.7,
    ("MERGE, 90 % matched", REWRITING): 1.0,
    ("scan with a filter, to Arrow", AS_IS): 0.8,
    ("scan with a filter, by Polars", AS_IS): 0.8,
    ("scan with a filter, by DuckDB", AS_IS): 0.8,
    ("write by a reader", AS_IS): 0.8,
    ("write by a reader, 50 partitions", AS_IS): 0.8,
}
"""By work and how: how many times deltalake's time is enough, with no more memory than it takes."""

_KINDS = {VECTORS: "vectors", REWRITING: "plain", AS_IS: "plain"}


@dataclass(frozen=True, slots=True)
class WithoutSparkResult:
    """One piece of work: the median time of some runs, and the least peak of their processes."""

    engine: str
    work: str
    how: str
    rows: int
    seconds: float
    peak_mib: float


def measure_without_spark(
    directory: Path, *, rows: int, written: int, rounds: int
) -> Iterator[WithoutSparkResult]:
    """Do every piece of work `rounds` times on a fresh copy, the engines in turns.

    Args:
        directory: Where the tables are made.
        rows: The rows of the table that is changed and scanned.
        written: The rows that are written.
        rounds: How often each is done.

    Raises:
        RuntimeError: A process failed.
    """
    tables = RowTables(directory / f"without-spark-{rows}", rows)
    source = str(tables.merge_source(min(100_000, rows // 4), 0))
    for work, how in WITHOUT_SPARK_TARGETS:
        count = written if work.startswith("write") else rows
        engines = (OURS,) if how == VECTORS else (OURS, THEIRS)
        runs: dict[str, list[dict[str, float]]] = {engine: [] for engine in engines}
        for _ in range(rounds):
            for engine in engines:
                path = _fresh(tables, work, how)
                runs[engine].append(_run(engine, work, path, count, source))
                shutil.rmtree(path)
        for engine, found in runs.items():
            seconds = statistics.median(run["seconds"] for run in found)
            peak_mib = min(run["peak_mib"] for run in found)
            yield WithoutSparkResult(engine, work, how, count, seconds, peak_mib)


def _fresh(tables: RowTables, work: str, how: str) -> Path:
    if work.startswith("write"):
        return tables.directory / "written"
    return Path(tables.copy(_KINDS[how], "without-spark"))


def _run(engine: str, work: str, path: Path, rows: int, source: str) -> dict[str, float]:
    if work not in WORKS:
        raise RuntimeError(f"There is no work {work}.")
    command = [sys.executable, str(SCRIPT), engine, work, str(path), str(rows), source]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr[-2000:]}")
    answer: dict[str, float] = json.loads(done.stdout)
    return answer
