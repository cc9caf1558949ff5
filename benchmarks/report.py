"""The results as one table for people and one JSON file for programs."""

from __future__ import annotations

import dataclasses
import json
import os
import platform
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timezone
from importlib.metadata import version
from pathlib import Path

from rich.table import Table

from appends import AppendResult
from engines import OURS, THEIRS
from opening import OpenResult
from writers import WritersResult

__all__ = ["results_table", "write_json"]

APPEND_TARGET = 1.5
OPEN_TARGET = 1.0
PEAK_TARGET_MIB = 1536
TARGET_WRITERS = 32
TARGET_FILES = 1_000_000

_Row = tuple[str, str, str, str, str]


def results_table(
    appends: Sequence[AppendResult],
    writers: Sequence[WritersResult],
    opening: Sequence[OpenResult],
) -> Table:
    """One row per measurement: ours, theirs, ours / theirs, and the target where there is one."""
    table = Table(title="Optimist beside deltalake", title_justify="left")
    table.add_column("measured")
    for name in (OURS.name, THEIRS.name, "ratio"):
        table.add_column(name, justify="right")
    table.add_column("target")
    for row in (*_append_rows(appends), *_writer_rows(writers), *_opening_rows(opening)):
        table.add_row(*row)
    return table


def write_json(
    path: Path,
    appends: Sequence[AppendResult],
    writers: Sequence[WritersResult],
    opening: Sequence[OpenResult],
) -> Path:
    """Everything that was measured, with the facts of the machine; returns the path."""
    content = {
        "machine": _machine(),
        "appends": [dataclasses.asdict(item) for item in appends],
        "writers": [
            {**dataclasses.asdict(item), "commits_per_s": item.commits_per_s} for item in writers
        ],
        "opening": [dataclasses.asdict(item) for item in opening],
    }
    path.write_text(json.dumps(content, indent=2) + "\n")
    return path


def _append_rows(results: Sequence[AppendResult]) -> Iterator[_Row]:
    by_key = {(item.engine, item.how): item for item in results}
    for how in dict.fromkeys(item.how for item in results):
        ours, theirs = by_key[OURS.name, how], by_key[THEIRS.name, how]
        ratio = ours.median_ms / theirs.median_ms
        yield (
            f"blind append, {how}: median (90 %), ms",
            f"{ours.median_ms:.1f} ({ours.p90_ms:.1f})",
            f"{theirs.median_ms:.1f} ({theirs.p90_ms:.1f})",
            f"{ratio:.2f}",
            _target(ratio <= APPEND_TARGET, f"<= {APPEND_TARGET}") if how == "by path" else "",
        )


def _writer_rows(results: Sequence[WritersResult]) -> Iterator[_Row]:
    by_key = {(item.engine, item.location, item.writers): item for item in results}
    for location, count in dict.fromkeys((item.location, item.writers) for item in results):
        ours, theirs = by_key[OURS.name, location, count], by_key[THEIRS.name, location, count]
        writers = f"{location}, {count} writer" + ("s" if count > 1 else "")
        yield (
            f"{writers}: commits / s (95 %, ms)",
            f"{ours.commits_per_s:.1f} ({ours.p95_ms:.0f})",
            f"{theirs.commits_per_s:.1f} ({theirs.p95_ms:.0f})",
            f"{ours.commits_per_s / theirs.commits_per_s:.2f}",
            "",
        )
        target = _target(_wrong(ours) == 0, "0 failures") if count == TARGET_WRITERS else ""
        yield (f"{writers}: failed, lost, doubled", _outcome(ours), _outcome(theirs), "", target)


def _opening_rows(results: Sequence[OpenResult]) -> Iterator[_Row]:
    by_key: Mapping[tuple[str, str, int], OpenResult] = {
        (item.engine, item.what, item.num_files): item for item in results
    }
    for what, count in dict.fromkeys((item.what, item.num_files) for item in results):
        ours, theirs = by_key[OURS.name, what, count], by_key[THEIRS.name, what, count]
        did = "open without files" if what == "open" else "list all"
        judged = what == "files" and count >= TARGET_FILES
        pairs = (
            ("s", ours.seconds, theirs.seconds, 2, OPEN_TARGET * theirs.seconds),
            ("peak MiB", ours.peak_mib, theirs.peak_mib, 0, PEAK_TARGET_MIB),
        )
        for unit, mine, other, digits, limit in pairs:
            yield (
                f"{count:,} files, {did}: {unit}",
                f"{mine:.{digits}f}",
                f"{other:.{digits}f}",
                f"{mine / other:.2f}",
                _target(mine <= limit, f"<= {limit:.{digits}f}") if judged else "",
            )


def _wrong(result: WritersResult) -> int:
    failed = sum(result.failures.values())
    return failed + result.lost + result.doubled + result.unreported


def _outcome(result: WritersResult) -> str:
    return f"{sum(result.failures.values())}, {result.lost}, {result.doubled}"


def _target(reached: bool, text: str) -> str:
    return f"{text}: {'reached' if reached else 'MISSED'}"


def _machine() -> dict[str, object]:
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {
        "measured_at": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "system": platform.platform(),
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "load_average": os.getloadavg(),
        "memory_gib": round(pages / 2**30, 1),
        "versions": {name: version(name) for name in ("optimist", "deltalake", "pyarrow")},
    }
