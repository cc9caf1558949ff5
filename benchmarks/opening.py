"""Seconds and peak memory to open a table, each measurement in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

__all__ = ["OpenResult", "measure_opening", "run_once"]

SCRIPT = Path(__file__).with_name("open_once.py")


@dataclass(frozen=True, slots=True)
class OpenResult:
    """One way to open one table: wall time, and the peak memory of the whole process.

    `what` is `open`, `files` or `plan` (see `open_once.py`), and `log` says what the log is like.
    """

    engine: str
    what: str
    log: str
    num_files: int
    seconds: float
    peak_mib: float


def measure_opening(engine: str, what: str, table: Path, *, log: str, num_files: int) -> OpenResult:
    """Best of two runs, each in a fresh process; imports are outside the time, inside the memory.

    Raises:
        RuntimeError: A process failed, or found the wrong number of files.
    """
    runs = [run_once(engine, what, table) for _ in range(2)]
    if what == "files" and any(run["answer"] != num_files for run in runs):
        raise RuntimeError(f"{engine} found {runs[0]['answer']} files in {table}, not {num_files}.")
    return OpenResult(
        engine=engine,
        what=what,
        log=log,
        num_files=num_files,
        seconds=min(run["seconds"] for run in runs),
        peak_mib=min(run["peak_mib"] for run in runs),
    )


def run_once(engine: str, what: str, table: Path) -> dict[str, float]:
    """Run `open_once.py` in a process of its own, and return what it prints.

    Raises:
        RuntimeError: The process failed.
    """
    command = [sys.executable, str(SCRIPT), engine, what, str(table)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr[-2000:]}")
    answer: dict[str, float] = json.loads(done.stdout)
    return answer
