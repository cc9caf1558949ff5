"""Optimist beside deltalake: `python benchmarks/run.py [--quick] [--only PART] [--page]`.

Prints one table with ratios and writes everything to `build/bench.json`. The writers also write to
LocalStack and Azurite, where `localstack/up.py` could bring them up.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console

from appends import AppendResult, measure_appends
from big_log import COMMITS_AFTER_CHECKPOINT, ensure_big_log, ensure_long_log
from care import CareResult, measure_care
from checkpoints import CheckpointResult, measure_checkpoints
from columns import ColumnResult, measure_columns
from drop_in import DropInResult, measure_drop_in
from engines import ENGINES
from frames import FrameResult, measure_frames
from groups import GroupResult, measure_groups
from growth import GrowthResult, measure_growth
from locations import EMULATORS, Location, emulated_location, local_location
from micro_batches import StreamResult, measure_streams
from opening import OpenResult, measure_opening
from page import write_page
from report import Results, results_table, write_json
from rows import RowResult, measure_rows
from scans import ScanResult, measure_scans
from stream_once import ROWS
from without_spark import WithoutSparkResult, measure_without_spark
from writers import WritersResult, measure_writers

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"
PAGE = ROOT / "docs" / "performance.md"
PARTS = tuple(field.name for field in dataclasses.fields(Results))
PLANNED_FILES = 100_000
CONSOLE = Console(highlight=False, width=None if sys.stdout.isatty() else 110)


def main() -> None:
    """Measure the parts that were asked for, and print and keep the results."""
    options = _parse()
    BUILD.mkdir(exist_ok=True)
    if os.getloadavg()[0] > 1:
        CONSOLE.print(
            f"The machine is busy (load {os.getloadavg()[0]:.1f}): trust no figure but failures."
        )
    with tempfile.TemporaryDirectory(dir=options.dir, prefix="optimist-bench-") as scratch:
        steps = _steps(Path(scratch), quick=options.quick)
        results = Results(**{part: steps[part]() for part in options.only or PARTS})
    CONSOLE.print(results_table(results))
    written = write_json(BUILD / "bench.json", results)
    CONSOLE.print(f"Written to {written}")
    if options.page:
        CONSOLE.print(f"Written to {write_page(PAGE, results)}")


def _steps(scratch: Path, *, quick: bool) -> dict[str, Callable[[], Any]]:
    """Return the function that measures each of `PARTS`."""
    return {
        "appends": lambda: _appends(scratch, rounds=20 if quick else 200),
        "writers": lambda: _writers(scratch, (1, 4) if quick else (1, 4, 32), 5 if quick else 20),
        "opening": lambda: [
            *_opening((10_000,) if quick else (100_000, 1_000_000)),
            *_long_log(500 if quick else 20_000),
        ],
        "growth": lambda: _growth(
            scratch, (10_000,) if quick else (100_000, 1_000_000, 10_000_000)
        ),
        "frames": lambda: _frames(10_000 if quick else 100_000, rounds=10 if quick else 50),
        "scans": lambda: _scans(scratch, 200_000 if quick else 10_000_000, 1 if quick else 7),
        "checkpoints": lambda: _checkpoints(scratch, 10_000 if quick else 1_000_000),
        "rows": lambda: _rows(scratch, 20_000 if quick else 4_000_000, rounds=1 if quick else 3),
        "care": lambda: _care(scratch, quick=quick),
        "groups": lambda: _groups(threads=8 if quick else 64, appends=3 if quick else 20),
        "columns": lambda: _columns(scratch, 20_000 if quick else 5_000_000, 1 if quick else 7),
        "drop_in": lambda: _drop_in(scratch, 10_000 if quick else 100_000, 2 if quick else 50),
        "streams": lambda: _streams(scratch, batches=3 if quick else 20),
        "without_spark": lambda: _without_spark(scratch, quick=quick),
    }


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Ours beside deltalake, with ratios.")
    parser.add_argument("--quick", action="store_true", help="a smoke run of under 30 seconds")
    parser.add_argument(
        "--only",
        action="append",
        choices=PARTS,
        type=lambda part: part.replace("-", "_"),
        help="measure this part (may be repeated)",
    )
    parser.add_argument(
        "--page",
        action="store_true",
        help="write what was measured into docs/performance.md, and leave its other parts",
    )
    parser.add_argument(
        "--dir", help="where to put the tables; a local disk (default: the system's)"
    )
    return parser.parse_args()


def _appends(scratch: Path, *, rounds: int) -> list[AppendResult]:
    CONSOLE.print(f"Blind appends: {rounds} rounds, the engines in turns ...")
    return measure_appends(scratch, rounds=rounds)


def _emulated() -> list[Location]:
    """Return the emulators that could be brought up, and print a line for each other one."""
    locations = []
    for name, called in EMULATORS.items():
        done = subprocess.run(
            [sys.executable, str(ROOT / "localstack" / "up.py"), name],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            CONSOLE.print(f"Not measured, {called}: {(done.stdout or done.stderr).strip()}")
        else:
            locations.append(emulated_location(name))
    return locations


def _writers(scratch: Path, counts: tuple[int, ...], appends: int) -> list[WritersResult]:
    """Measure writers on a local disk, and a few on each emulator, which is what limits them."""
    results = []
    wanted = [(local_location(scratch), counts), *((item, (4,)) for item in _emulated())]
    for location, some in wanted:
        for writers in some:
            for engine in ENGINES:
                what = f"{writers} writer processes, {appends} appends each"
                CONSOLE.print(f"{location.name}: {what}: {engine} ...")
                table = location.table(f"{engine}-{writers}")
                results.append(measure_writers(engine, table, writers=writers, appends=appends))
    return results


def _opening(counts: tuple[int, ...]) -> list[OpenResult]:
    results = []
    for num_files in counts:
        CONSOLE.print(f"A log of {num_files:,} live files: making it (once) and opening it ...")
        table = ensure_big_log(BUILD / "bench-cache", num_files)
        expected = num_files + COMMITS_AFTER_CHECKPOINT
        log = f"{num_files:,} files"
        results += [
            measure_opening(engine, what, table, log=log, num_files=expected)
            for what in ("open", "files", *(["plan"] if num_files <= PLANNED_FILES else []))
            for engine in ENGINES
        ]
    return results


def _growth(scratch: Path, counts: tuple[int, ...]) -> list[GrowthResult]:
    CONSOLE.print("A question about 1,000 files and an append, in tables of growing size ...")
    found = []
    for item in measure_growth(BUILD / "bench-cache", scratch, counts):
        CONSOLE.print(
            f"  {item.work} in {item.num_files:,} files, checkpoint of {item.checkpoint}, "
            f"{item.engine}: CPU {item.cpu_s:.2f} s, peak {item.peak_mib:.0f} MiB"
        )
        found.append(item)
    return found


def _frames(num_files: int, *, rounds: int) -> list[FrameResult]:
    CONSOLE.print(f"Frames of one partition of {num_files:,} live files, {rounds} rounds ...")
    table = ensure_big_log(BUILD / "bench-cache", num_files)
    expected = num_files + COMMITS_AFTER_CHECKPOINT
    return [measure_frames(table, num_files=expected, rounds=rounds)]


def _scans(scratch: Path, rows: int, rounds: int) -> list[ScanResult]:
    CONSOLE.print(
        f"Queries of {rows:,} rows with and without deletion vectors, {rounds} rounds ..."
    )
    return measure_scans(scratch, rows=rows, rounds=rounds)


def _checkpoints(scratch: Path, num_files: int) -> list[CheckpointResult]:
    CONSOLE.print(f"Checkpoints of {num_files:,} live files, of every layout ...")
    table = ensure_big_log(BUILD / "bench-cache", num_files)
    expected = num_files + COMMITS_AFTER_CHECKPOINT
    return measure_checkpoints(table, scratch, num_files=expected)


def _rows(scratch: Path, rows: int, *, rounds: int) -> list[RowResult]:
    CONSOLE.print(f"Commands on {rows:,} rows, {rounds} rounds, beside delta-spark and others ...")
    found = []
    for item in measure_rows(scratch, rows=rows, rounds=rounds):
        CONSOLE.print(
            f"  {item.what}, {item.engine}: best {item.best_s:.3f} s, median {item.median_s:.3f} s"
        )
        found.append(item)
    return found


def _care(scratch: Path, *, quick: bool) -> list[CareResult]:
    files, rows, converted = (20, 20_000, 50) if quick else (1_000, 1_000_000, 5_000)
    rounds = 1 if quick else 2
    CONSOLE.print(f"OPTIMIZE of {files:,} files, CONVERT of {converted:,}, {rounds} rounds ...")
    found = []
    for item in measure_care(scratch, files=files, rows=rows, converted=converted, rounds=rounds):
        CONSOLE.print(f"  {item.what}, {item.engine}: best {item.best_s:.3f} s")
        found.append(item)
    return found


def _columns(scratch: Path, rows: int, rounds: int) -> list[ColumnResult]:
    CONSOLE.print(f"Queries of few of 100 columns, {rows:,} rows, both planes, {rounds} rounds ...")
    return measure_columns(scratch, rows=rows, rounds=rounds)


def _drop_in(scratch: Path, num_files: int, rounds: int) -> list[DropInResult]:
    CONSOLE.print(f"The drop-in: enable, statements, {num_files:,} live files, {rounds} rounds ...")
    table = ensure_big_log(BUILD / "bench-cache", num_files)
    expected = num_files + COMMITS_AFTER_CHECKPOINT
    return [measure_drop_in(table, scratch, num_files=expected, rounds=rounds)]


def _without_spark(scratch: Path, *, quick: bool) -> list[WithoutSparkResult]:
    rows, written = (20_000, 200_000) if quick else (4_000_000, 20_000_000)
    CONSOLE.print(f"Work without Spark: {rows:,} rows, {written:,} written, each in a process ...")
    found = []
    for item in measure_without_spark(
        scratch, rows=rows, written=written, rounds=1 if quick else 3
    ):
        CONSOLE.print(f"  {item.work} {item.how}, {item.engine}: {item.seconds:.2f} s")
        found.append(item)
    return found


def _streams(scratch: Path, *, batches: int) -> list[StreamResult]:
    CONSOLE.print(f"Streams from table to table: {batches} batches of {ROWS:,} rows each ...")
    return list(measure_streams(scratch, batches=batches))


def _groups(*, threads: int, appends: int) -> list[GroupResult]:
    if not any(location.name == EMULATORS["s3"] for location in _emulated()):
        return []
    CONSOLE.print(f"Group commit: {threads} threads, {appends} appends each, a slow S3 ...")
    return measure_groups(threads=threads, appends=appends)


def _long_log(num_commits: int) -> list[OpenResult]:
    CONSOLE.print(f"A log of {num_commits:,} commits without checkpoint: making and opening it ...")
    table = ensure_long_log(BUILD / "bench-cache", num_commits)
    log = f"{num_commits:,} commits"
    return [
        measure_opening(engine, "files", table, log=log, num_files=num_commits)
        for engine in ENGINES
    ]


if __name__ == "__main__":
    main()
