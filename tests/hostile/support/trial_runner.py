"""Runs of cases in processes of their own; one that dies or hangs is told of, and replaced."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["Tally", "place", "run_cases"]

_WORKER = Path(__file__).with_name("trial_worker.py")
_MAX_FAULTS = 20
_IN_MEMORY = Path("/dev/shm")
_ENOUGH_BYTES = 1 << 29


@dataclass
class Tally:
    """How a run of cases went.

    Attributes:
        cases: How many were tried.
        faults: What no table may bring about, each with its case.
        read: How often each thing was read.
        refused: How often each kind of error refused one.
    """

    cases: int = 0
    faults: list[str] = field(default_factory=list)
    read: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)

    def add(self, told: dict[str, Any]) -> None:
        """Count a case that has ended."""
        self.cases += 1
        self.faults += told["faults"]
        self.read.update(told["read"])
        self.refused.update(told["refused"].values())


def run_cases(first: int, count: int, *, max_faults: int = _MAX_FAULTS) -> Tally:
    """Try the cases of so many numbers, or as many as it takes to find some faults."""
    tally, end = Tally(), first + count
    while first < end and len(tally.faults) < max_faults:
        first = _run_until_death(first, end, tally, max_faults)
    return tally


def place() -> Path | None:
    """Where tables are laid out: in memory, where a disk that is slow to sync keeps nobody waiting.

    None where there is too little of it.
    """
    is_there = os.access(_IN_MEMORY, os.W_OK)
    has_room = is_there and shutil.disk_usage(_IN_MEMORY).free >= _ENOUGH_BYTES
    return _IN_MEMORY if has_room else None


def _run_until_death(first: int, end: int, tally: Tally, max_faults: int) -> int:
    """One process; the number of the first case that is left."""
    with (
        tempfile.TemporaryDirectory(dir=place()) as folder,
        tempfile.TemporaryFile("w+") as complaints,
    ):
        worker = subprocess.Popen(
            [sys.executable, str(_WORKER), str(first), str(end - first), folder],
            stdout=subprocess.PIPE,
            stderr=complaints,
            stdin=subprocess.DEVNULL,
            text=True,
            env={**os.environ, "PYTHONHASHSEED": "0"},
        )
        assert worker.stdout is not None
        begun, ended = first, first - 1
        with worker.stdout:
            for line in worker.stdout:
                told = json.loads(line)
                begun = told.get("begins", begun)
                if "ended" in told:
                    ended = told["ended"]
                    tally.add(told)
                if len(tally.faults) >= max_faults:
                    worker.kill()
                    break
        code = worker.wait()
        if ended + 1 < end and len(tally.faults) < max_faults:
            complaints.seek(0)
            tally.cases += 1
            tally.faults.append(
                f"CASE={begun}: the process ended ({code})\n{complaints.read()[-4000:]}"
            )
            return begun + 1
    return ended + 1
