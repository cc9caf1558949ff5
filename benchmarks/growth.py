"""What a question about a thousand files and an append of one row cost, by the size of the table.

Each is done in a process of its own that opens the table by its path. The partitions of the table
have a thousand files each, so the answer is as long at any size: what grows is the price of the
rest of the log. Both engines read the same bytes: first the checkpoint of another writer, then
ours, which is sorted (docs/checkpoints.md).
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from big_log import FILES_OF_A_BATCH, ensure_even_log
from engines import ENGINES
from opening import run_once
from optimist.core import DeltaLog

__all__ = ["GrowthResult", "measure_growth"]

QUESTION = "find"


@dataclass(frozen=True, slots=True)
class GrowthResult:
    """One piece of work on a log of one size: CPU time and peak memory of the whole process.

    With its imports, which ours does when they are needed, and deltalake at the start.

    Attributes:
        work: `find` or `append` (see `open_once.py`).
        checkpoint: Whose checkpoint the log begins with.
        num_files: How many files the table has.
    """

    engine: str
    work: str
    checkpoint: str
    num_files: int
    cpu_s: float
    peak_mib: float


def measure_growth(cache: Path, scratch: Path, counts: Sequence[int]) -> Iterator[GrowthResult]:
    """Yield each measurement as soon as it is made; the best of two runs.

    Raises:
        RuntimeError: A process failed, or found another number of files than there are.
    """
    for num_files in counts:
        table = scratch / f"even-{num_files}"
        shutil.copytree(ensure_even_log(cache, num_files), table)
        yield from _measure(table, "another writer", num_files)
        DeltaLog.for_path(table).checkpoint()
        yield from _measure(table, "ours", num_files)
        shutil.rmtree(table)


def _measure(table: Path, checkpoint: str, num_files: int) -> Iterator[GrowthResult]:
    for work in (QUESTION, "append"):
        for engine in ENGINES:
            runs = [run_once(engine, work, table) for _ in range(2)]
            if work == QUESTION and runs[0]["answer"] != FILES_OF_A_BATCH:
                raise RuntimeError(f"{engine} found {runs[0]['answer']} files of a partition.")
            yield GrowthResult(
                engine=engine,
                work=work,
                checkpoint=checkpoint,
                num_files=num_files,
                cpu_s=min(run["cpu_s"] for run in runs),
                peak_mib=min(run["peak_mib"] for run in runs),
            )
