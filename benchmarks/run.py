"""Ours beside deltalake, in one go: `python benchmarks/run.py [--quick]`.

Prints one table with ratios and writes everything to `build/bench.json`.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from pathlib import Path

from rich.console import Console

from appends import AppendResult, measure_appends
from big_log import COMMITS_AFTER_CHECKPOINT, ensure_big_log
from engines import ENGINES
from opening import OpenResult, measure_opening
from report import results_table, write_json
from writers import WritersResult, measure_writers

BUILD = Path(__file__).resolve().parent.parent / "build"
CONSOLE = Console(highlight=False, width=None if sys.stdout.isatty() else 110)


def main() -> None:
    """Measure what was asked for, print it, keep it."""
    options = _parse()
    quick = options.quick
    BUILD.mkdir(exist_ok=True)
    if os.getloadavg()[0] > 1:
        CONSOLE.print(
            f"The machine is busy (load {os.getloadavg()[0]:.1f}): trust no figure but failures."
        )
    with tempfile.TemporaryDirectory(dir=options.dir, prefix="optimist-bench-") as scratch:
        appends = _appends(Path(scratch), rounds=20 if quick else 200)
        writers = _writers(Path(scratch), (1, 4) if quick else (1, 4, 16, 32), 5 if quick else 20)
    opening = _opening((10_000,) if quick else (100_000, 1_000_000))
    CONSOLE.print(results_table(appends, writers, opening))
    CONSOLE.print(f"Written to {write_json(BUILD / 'bench.json', appends, writers, opening)}")


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Ours beside deltalake, with ratios.")
    parser.add_argument("--quick", action="store_true", help="a smoke run of under 30 seconds")
    parser.add_argument(
        "--dir", help="where to put the tables; a local disk (default: the system's)"
    )
    return parser.parse_args()


def _appends(scratch: Path, *, rounds: int) -> list[AppendResult]:
    CONSOLE.print(f"Blind appends: {rounds} rounds, the engines in turns ...")
    return measure_appends(scratch, rounds=rounds)


def _writers(scratch: Path, counts: tuple[int, ...], appends: int) -> list[WritersResult]:
    results = []
    for writers in counts:
        for engine in ENGINES:
            CONSOLE.print(f"Writer processes: {writers}, {appends} appends each: {engine} ...")
            path = scratch / f"{engine}-{writers}"
            results.append(measure_writers(engine, str(path), writers=writers, appends=appends))
            shutil.rmtree(path)
    return results


def _opening(counts: tuple[int, ...]) -> list[OpenResult]:
    results = []
    for num_files in counts:
        CONSOLE.print(f"A log of {num_files:,} live files: making it (once) and opening it ...")
        table = ensure_big_log(BUILD / "bench-cache", num_files)
        expected = num_files + COMMITS_AFTER_CHECKPOINT
        results += [
            measure_opening(engine, what, table, num_files=expected)
            for what in ("open", "files")
            for engine in ENGINES
        ]
    return results


if __name__ == "__main__":
    main()
