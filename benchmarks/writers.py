"""Commits per second with many writer processes on one table, and what became of each append."""

from __future__ import annotations

import multiprocessing
import statistics
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.context import SpawnProcess
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier

import deltalake
import pyarrow as pa

from engines import load_engine
from locations import Location

__all__ = ["WritersResult", "measure_writers"]

ROWS_PER_APPEND = 100
START_TIMEOUT_S = 300.0


@dataclass(frozen=True, slots=True)
class WritersResult:
    """One engine with one number of writers at one location.

    Attributes:
        commits: Appends that the engine reported as done.
        failures: Error class -> number of appends that ended in it.
        lost: Appends reported as done whose rows are not in the table.
        doubled: Appends whose rows are in the table more than once.
        unreported: Appends that ended in an error although their rows are in the table.
        seconds: From the first append's start to the last one's end.
        p95_ms: The time within which 95 % of the successful appends were done.
    """

    location: str
    engine: str
    writers: int
    commits: int
    failures: dict[str, int]
    lost: int
    doubled: int
    unreported: int
    seconds: float
    p95_ms: float

    @property
    def commits_per_s(self) -> float:
        """Successful appends per second, all writers together."""
        return self.commits / self.seconds


@dataclass(frozen=True, slots=True)
class _Report:
    """What one writer reports; `done` has each successful append's number and milliseconds."""

    writer: int
    done: tuple[tuple[int, float], ...]
    failures: tuple[str, ...]
    started_s: float
    ended_s: float


def measure_writers(
    engine: str, location: Location, *, writers: int, appends: int
) -> WritersResult:
    """Let `writers` processes append `appends` times each to a new table at a location.

    Processes are started fresh and wait for each other, so that imports are not measured.
    """
    load_engine(engine).create(location, _batch(writer=-1, sequence=0))
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(writers)
    reports: Queue[_Report] = context.Queue()
    processes = [
        context.Process(target=_write, args=(engine, location, writer, appends, barrier, reports))
        for writer in range(writers)
    ]
    for process in processes:
        process.start()
    collected = list(_collect(processes, reports))
    for process in processes:
        process.join()
    return _judge(engine, location, collected)


def _collect(processes: list[SpawnProcess], reports: Queue[_Report]) -> Iterator[_Report]:
    for _ in processes:
        yield reports.get(timeout=START_TIMEOUT_S)


def _write(
    engine_name: str,
    location: Location,
    writer: int,
    appends: int,
    barrier: Barrier,
    reports: Queue[_Report],
) -> None:
    engine = load_engine(engine_name)
    batches = [_batch(writer=writer, sequence=sequence) for sequence in range(appends)]
    done: list[tuple[int, float]] = []
    failures: list[str] = []
    barrier.wait(START_TIMEOUT_S)
    started_s = time.perf_counter()
    for sequence, rows in enumerate(batches):
        began_s = time.perf_counter()
        try:
            engine.append(location, rows)
            done.append((sequence, (time.perf_counter() - began_s) * 1000))
        except Exception as error:  # noqa: BLE001 - whatever it is, it is a result
            failures.append(type(error).__name__)
    ended_s = time.perf_counter()
    reports.put(_Report(writer, tuple(done), tuple(failures), started_s, ended_s))


def _batch(*, writer: int, sequence: int) -> pa.Table:
    return pa.table(
        {
            "writer": pa.array([writer] * ROWS_PER_APPEND, pa.int32()),
            "sequence": pa.array([sequence] * ROWS_PER_APPEND, pa.int32()),
            "row": pa.array(range(ROWS_PER_APPEND), pa.int32()),
            "text": pa.array([f"flight {row}" for row in range(ROWS_PER_APPEND)]),
        }
    )


def _judge(engine: str, location: Location, reports: list[_Report]) -> WritersResult:
    """Compare what the writers were told with what deltalake reads from the table."""
    table = deltalake.DeltaTable(location.url, storage_options=dict(location.theirs))
    rows = pa.table(table.to_pyarrow_table(columns=["writer", "sequence"]))
    pairs = zip(rows["writer"].to_pylist(), rows["sequence"].to_pylist(), strict=True)
    found = {pair: count for pair, count in Counter(pairs).items() if pair[0] >= 0}
    told = {(report.writer, sequence) for report in reports for sequence, _ in report.done}
    times_ms = [elapsed_ms for report in reports for _, elapsed_ms in report.done]
    return WritersResult(
        location=location.name,
        engine=engine,
        writers=len(reports),
        commits=len(told),
        failures=dict(Counter(name for report in reports for name in report.failures)),
        lost=sum(found.get(pair, 0) < ROWS_PER_APPEND for pair in told),
        doubled=sum(count > ROWS_PER_APPEND for count in found.values()),
        unreported=sum(pair not in told for pair in found),
        seconds=max(item.ended_s for item in reports) - min(item.started_s for item in reports),
        p95_ms=statistics.quantiles(times_ms, n=20)[-1] if len(times_ms) > 1 else float("nan"),
    )
