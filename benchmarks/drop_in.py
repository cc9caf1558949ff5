"""Seconds that the drop-in costs: `enable`, a statement of Spark's own, a query by SQL.

There is nothing to compare with. Each session is in a process of its own, the first with an empty
directory for the compiled classes, as on a machine that never ran them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

__all__ = ["DropInResult", "measure_drop_in"]

SCRIPT = Path(__file__).with_name("drop_in_once.py")


@dataclass(frozen=True, slots=True)
class DropInResult:
    """Seconds of CPU, but for `query_wall_s`; see `drop_in_once.py`.

    `first_enable_s` is that of the machine's first session; all others are of later ones.
    """

    num_files: int
    first_enable_s: float
    enable_s: float
    statement_s: float
    query_s: float
    query_wall_s: float


def measure_drop_in(table: Path, scratch: Path, *, num_files: int, rounds: int) -> DropInResult:
    """One first session, then the best of two.

    Raises:
        RuntimeError: A process failed.
    """
    first, *later = (_run(table, scratch, count) for count in (1, rounds, rounds))
    best = {name: min(run[name] for run in later) for name in first}
    return DropInResult(num_files, first["enable_s"], **best)


def _run(table: Path, scratch: Path, rounds: int) -> dict[str, float]:
    command = [sys.executable, str(SCRIPT), str(table), str(rounds)]
    environment = {**os.environ, "XDG_CACHE_HOME": str(scratch)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr[-2000:]}")
    answer: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return answer
