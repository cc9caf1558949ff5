"""Milliseconds per blind append of a small batch, the engines taking turns."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from engines import ENGINES, load_engine
from locations import local_location

__all__ = ["AppendResult", "measure_appends"]

WARM_UP = 5
ROWS = 100


@dataclass(frozen=True, slots=True)
class AppendResult:
    """The time of one blind append; `how` is `by path` or `kept open`."""

    engine: str
    how: str
    median_ms: float
    p90_ms: float
    rounds: int


def measure_appends(directory: Path, *, rounds: int) -> list[AppendResult]:
    """Append `rounds` times to a table per engine and way, in turns, so noise hits all alike."""
    rows = pa.table({"id": pa.array(range(ROWS)), "text": pa.array(["a flight"] * ROWS)})
    appends = {
        (engine, how): _append(engine, how, directory, rows)
        for engine in ENGINES
        for how in ("by path", "kept open")
    }
    times: dict[tuple[str, str], list[float]] = {key: [] for key in appends}
    for _ in range(WARM_UP + rounds):
        for key, append in appends.items():
            started_s = time.perf_counter()
            append(rows)
            times[key].append((time.perf_counter() - started_s) * 1000)
    return [_result(*key, times_ms[WARM_UP:]) for key, times_ms in times.items()]


def _append(name: str, how: str, directory: Path, rows: pa.Table) -> Callable[[pa.Table], object]:
    engine = load_engine(name)
    location = local_location(directory).table(f"{name} {how}".replace(" ", "-"))
    engine.create(location, rows)
    if how == "kept open":
        return engine.appender(location)
    return lambda batch: engine.append(location, batch)


def _result(engine: str, how: str, times_ms: list[float]) -> AppendResult:
    p90_ms = statistics.quantiles(times_ms, n=10)[-1]
    return AppendResult(engine, how, statistics.median(times_ms), p90_ms, len(times_ms))
