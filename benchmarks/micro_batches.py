"""Seconds of a micro-batch of a stream, end to end: ours, Parquet's source and sink, delta-spark.

Each stream is in a process of its own; its first batches, in which Spark compiles, do not count.
"""

from __future__ import annotations

import inspect
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from delta_spark import run_delta_spark
from stream_once import ROWS, measure

__all__ = ["StreamResult", "measure_streams"]

SCRIPT = Path(__file__).with_name("stream_once.py")
DELTA_SPARK = "delta-spark"
_WARM_UP = 5
_ON_DELTA_SPARK = f"""
import json

ROWS = {ROWS}
{inspect.getsource(measure)}
folder, batches, answers = sys.argv[2:]
json.dump(measure(spark, "delta", folder, int(batches)), open(answers, "w"))
"""


@dataclass(frozen=True, slots=True)
class StreamResult:
    """Seconds per batch of one stream.

    Attributes:
        kind: `parquet`, `delta-spark`, or `native` or `arrow` for ours on a plane.
        batches: How many were measured.
    """

    kind: str
    batches: int
    best_s: float
    median_s: float


def measure_streams(scratch: Path, *, batches: int) -> Iterator[StreamResult]:
    """One stream of each kind.

    Raises:
        RuntimeError: A process failed.
    """
    for kind in ("parquet", "native", "arrow", DELTA_SPARK):
        folder = scratch / f"stream-{kind}"
        folder.mkdir()
        answers = folder / "answers.json"
        arguments = [str(folder), str(_WARM_UP + batches), str(answers)]
        if kind == DELTA_SPARK:
            run_delta_spark(_ON_DELTA_SPARK, arguments)
        else:
            _run([sys.executable, str(SCRIPT), kind, *arguments])
        seconds = json.loads(answers.read_text())[_WARM_UP:]
        yield StreamResult(kind, batches, min(seconds), statistics.median(seconds))


def _run(command: list[str]) -> None:
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr[-2000:]}")
