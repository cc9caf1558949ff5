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
from typing import Any

from rich.table import Table

from appends import AppendResult
from care import CARE_TARGETS, CareResult
from checkpoints import CheckpointResult
from columns import COLUMNS, ColumnResult
from drop_in import DropInResult
from engines import OURS, THEIRS
from frames import FrameResult
from groups import DELAY_S, GroupResult
from growth import GrowthResult
from micro_batches import DELTA_SPARK, StreamResult
from opening import OpenResult
from rows import MEASURED, RATIO_TARGETS, SECONDS_ROWS, SECONDS_TARGETS, RowResult
from scans import ScanResult
from without_spark import WITHOUT_SPARK_TARGETS, WithoutSparkResult
from writers import WritersResult

__all__ = ["HEADINGS", "Results", "Row", "machine", "results_table", "rows_by_part", "write_json"]

APPEND_TARGET = 1.5
PEAK_TARGET_MIB = 1024
TARGET_WRITERS = 32
OPEN_TARGETS = {"100,000 files": 1.0, "1,000,000 files": 0.5, "20,000 commits": 0.5}
"""Targets for the time to list all files, as fractions of deltalake's."""

PLANNED = "plan a query of 1 % of them, opened before"
PLAN_TARGET_S = 0.3
FRAME_TARGET_S = 0.1
"""Target for the time from `read` to the first task, for one partition of a version read before."""

VECTORS_TARGET = 1.3
"""Target for a scan with deletion vectors on 1 % of rows, as a multiple of the time without."""

COLUMNS_TARGET = 1.3
"""Target for a query of few of many columns on the arrow plane, as a multiple of the native one's
time."""

FIRST_ENABLE_TARGET_S = 1.0
ENABLE_TARGET_S = 0.05
STATEMENT_TARGET_S = 0.001
QUERY_TARGET_S = 0.15
"""Targets of the drop-in: CPU of `enable` on a machine's first use and later, CPU that a statement
of Spark's own takes more than before, wall time of frame and plan of a query."""

STREAM_TARGETS = {"native": {"parquet": 1.3, DELTA_SPARK: 1.0}, "arrow": {"parquet": 2.0}}
"""Targets for the time of a micro-batch, by plane, as multiples of others' times."""

CHECKPOINT_TIME_TARGET = 1.0
CHECKPOINT_PEAK_TARGET = 0.5
CHECKPOINT_TARGET_FILES = 1_000_000
"""Targets for the time and memory to write a checkpoint of at least so many files, as fractions of
deltalake's."""

GROUP_TARGET = 10.0
"""Target for the appends per second of many threads in groups, as a multiple of one thread's."""

Row = tuple[str, str, str, str, str]
HEADINGS = ("measured", OURS, THEIRS, "ratio", "target")
_NAMES = (OURS, THEIRS)


@dataclasses.dataclass(frozen=True, slots=True)
class Results:
    """What was measured; a part that was not measured is empty."""

    appends: Sequence[AppendResult] = ()
    writers: Sequence[WritersResult] = ()
    opening: Sequence[OpenResult] = ()
    growth: Sequence[GrowthResult] = ()
    frames: Sequence[FrameResult] = ()
    scans: Sequence[ScanResult] = ()
    checkpoints: Sequence[CheckpointResult] = ()
    rows: Sequence[RowResult] = ()
    care: Sequence[CareResult] = ()
    groups: Sequence[GroupResult] = ()
    columns: Sequence[ColumnResult] = ()
    drop_in: Sequence[DropInResult] = ()
    streams: Sequence[StreamResult] = ()
    without_spark: Sequence[WithoutSparkResult] = ()


def results_table(results: Results) -> Table:
    """One row per measurement: ours, theirs, ours / theirs, and the target where there is one."""
    table = Table(title="Optimist beside deltalake", title_justify="left")
    for name in HEADINGS:
        table.add_column(name, justify="right" if name in (OURS, THEIRS, "ratio") else "left")
    for rows in rows_by_part(results).values():
        for row in rows:
            table.add_row(*row)
    return table


def rows_by_part(results: Results) -> dict[str, list[Row]]:
    """Return the rows of each part that was measured: the cells of `HEADINGS`."""
    rows = {
        "appends": _append_rows(results.appends),
        "writers": _writer_rows(results.writers),
        "opening": _opening_rows(results.opening),
        "growth": _growth_rows(results.growth),
        "frames": _frame_rows(results.frames),
        "scans": _scan_rows(results.scans),
        "checkpoints": _checkpoint_rows(results.checkpoints),
        "rows": _command_rows(results.rows),
        "care": _care_rows(results.care),
        "groups": _group_rows(results.groups),
        "columns": _column_rows(results.columns),
        "drop_in": _drop_in_rows(results.drop_in),
        "streams": _stream_rows(results.streams),
        "without_spark": _without_spark_rows(results.without_spark),
    }
    return {part: found for part, given in rows.items() if (found := list(given))}


def write_json(path: Path, results: Results) -> Path:
    """Everything that was measured, with the facts of the machine; returns the path."""
    content = {
        "machine": machine(),
        **dataclasses.asdict(results),
        "writers": [
            {**dataclasses.asdict(item), "commits_per_s": item.commits_per_s}
            for item in results.writers
        ],
    }
    path.write_text(json.dumps(content, indent=2) + "\n")
    return path


def _append_rows(results: Sequence[AppendResult]) -> Iterator[Row]:
    by_key = {(item.engine, item.how): item for item in results}
    for how in dict.fromkeys(item.how for item in results):
        ours, theirs = by_key[OURS, how], by_key[THEIRS, how]
        ratio = ours.median_ms / theirs.median_ms
        yield (
            f"blind append, {how}: median (90 %), ms",
            f"{ours.median_ms:.1f} ({ours.p90_ms:.1f})",
            f"{theirs.median_ms:.1f} ({theirs.p90_ms:.1f})",
            f"{ratio:.2f}",
            _target(ratio <= APPEND_TARGET, f"<= {APPEND_TARGET}") if how == "by path" else "",
        )


def _writer_rows(results: Sequence[WritersResult]) -> Iterator[Row]:
    by_key = {(item.engine, item.location, item.writers): item for item in results}
    for location, count in dict.fromkeys((item.location, item.writers) for item in results):
        ours, theirs = by_key[OURS, location, count], by_key[THEIRS, location, count]
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


def _opening_rows(results: Sequence[OpenResult]) -> Iterator[Row]:
    by_key: Mapping[tuple[str, str, str], OpenResult] = {
        (item.engine, item.what, item.log): item for item in results
    }
    for what, log in dict.fromkeys((item.what, item.log) for item in results):
        ours, theirs = by_key[OURS, what, log], by_key[THEIRS, what, log]
        did = {"open": "open without files", "files": "list all", "plan": PLANNED}[what]
        target = OPEN_TARGETS.get(log) if what == "files" else None
        limit_s = None if target is None else target * theirs.seconds
        limit_s = PLAN_TARGET_S if what == "plan" else limit_s
        limit_mib = None if target is None else PEAK_TARGET_MIB
        for unit, mine, other, digits, limit in (
            ("s", ours.seconds, theirs.seconds, 2, limit_s),
            ("peak MiB", ours.peak_mib, theirs.peak_mib, 0, limit_mib),
        ):
            yield (
                f"{log}, {did}: {unit}",
                f"{mine:.{digits}f}",
                f"{other:.{digits}f}",
                f"{mine / other:.2f}",
                "" if limit is None else _target(mine <= limit, f"<= {limit:.{digits}f}"),
            )


def _growth_rows(results: Sequence[GrowthResult]) -> Iterator[Row]:
    by_key = {(item.engine, item.work, item.checkpoint, item.num_files): item for item in results}
    for work, checkpoint, num_files in dict.fromkeys(key[1:] for key in by_key):
        ours, theirs = (by_key[name, work, checkpoint, num_files] for name in _NAMES)
        what = {"find": "one partition of 1,000 files", "append": "append of one row"}[work]
        yield (
            f"{num_files:,} files, checkpoint of {checkpoint}, {what}: CPU, s (peak, MiB)",
            f"{ours.cpu_s:.2f} ({ours.peak_mib:.0f})",
            f"{theirs.cpu_s:.2f} ({theirs.peak_mib:.0f})",
            f"{ours.cpu_s / theirs.cpu_s:.2f}",
            "",
        )


def _frame_rows(results: Sequence[FrameResult]) -> Iterator[Row]:
    for item in results:
        yield (
            f"{item.num_files:,} files, frame and plan of one partition: best (median; first), s",
            f"{item.best_s:.2f} ({item.median_s:.2f}; {item.first_s:.2f})",
            "",
            "",
            _target(item.median_s <= FRAME_TARGET_S, f"<= {FRAME_TARGET_S}"),
        )


def _scan_rows(results: Sequence[ScanResult]) -> Iterator[Row]:
    by_key = {(item.engine, item.query, item.what): item for item in results}
    for query in dict.fromkeys(item.query for item in results):
        for what, files in (("plain", "plain"), ("vectors", "1 % deleted by vectors")):
            ours, theirs = (by_key[name, query, what] for name in _NAMES)
            yield (
                f"{query} of {ours.rows:,} rows, {files}: best (median), s",
                f"{ours.best_s:.2f} ({ours.median_s:.2f})",
                f"{theirs.best_s:.2f} ({theirs.median_s:.2f})",
                f"{ours.best_s / theirs.best_s:.2f}",
                "",
            )
        costs = [
            by_key[name, query, "vectors"].best_s / by_key[name, query, "plain"].best_s
            for name in _NAMES
        ]
        reached = _target(costs[0] <= VECTORS_TARGET, f"<= {VECTORS_TARGET}")
        yield (
            f"{query}: with vectors / without",
            f"{costs[0]:.2f}",
            f"{costs[1]:.2f}",
            "",
            reached,
        )


def _checkpoint_rows(results: Sequence[CheckpointResult]) -> Iterator[Row]:
    """Ours in each layout, beside deltalake's classic one: it writes no other."""
    theirs = {item.num_files: item for item in results if item.engine == THEIRS}
    for ours in (item for item in results if item.engine == OURS):
        other = theirs[ours.num_files]
        # With struct columns ours writes more than deltalake ever does, so no target is set.
        is_judged = ours.num_files >= CHECKPOINT_TARGET_FILES and "struct" not in ours.layout
        for unit, mine, others, digits, target in (
            ("s", ours.seconds, other.seconds, 2, CHECKPOINT_TIME_TARGET),
            ("peak MiB", ours.peak_mib, other.peak_mib, 0, CHECKPOINT_PEAK_TARGET),
        ):
            ratio = mine / others
            yield (
                f"{ours.num_files:,} files, {ours.layout} checkpoint: {unit}",
                f"{mine:.{digits}f}",
                f"{others:.{digits}f}",
                f"{ratio:.2f}",
                _target(ratio <= target, f"<= {target}") if is_judged else "",
            )


def _command_rows(results: Sequence[RowResult]) -> Iterator[Row]:
    """One row per command, engine of ours and other engine, which stands in the second column."""
    by_key = {(item.engine, item.what, item.rows): item for item in results}
    for rows in dict.fromkeys(item.rows for item in results):
        for what, engines in MEASURED.items():
            found = [
                by_key[engine, what, rows] for engine in engines if (engine, what, rows) in by_key
            ]
            own = [item for item in found if item.engine.startswith(OURS)]
            for mine in own:
                yield from _seconds_rows(mine)
                for other in (item for item in found if item not in own):
                    yield _pair_row(mine, other)


def _seconds_rows(mine: RowResult) -> Iterator[Row]:
    limit = SECONDS_TARGETS.get((mine.what, mine.engine))
    if limit is None or mine.rows > SECONDS_ROWS:
        return
    title = f"{mine.what}, {mine.rows:,} rows, {mine.engine}: best (median), s"
    target = _target(mine.best_s <= limit, f"<= {limit}")
    yield (title, f"{mine.best_s:.2f} ({mine.median_s:.2f})", "", "", target)


def _pair_row(mine: RowResult, other: RowResult) -> Row:
    ratio = mine.best_s / other.best_s
    limit = RATIO_TARGETS.get((mine.what, mine.engine, other.engine))
    return (
        f"{mine.what}, {mine.rows:,} rows, {mine.engine} beside {other.engine}: best (median), s",
        f"{mine.best_s:.2f} ({mine.median_s:.2f})",
        f"{other.best_s:.2f} ({other.median_s:.2f})",
        f"{ratio:.2f}",
        "" if limit is None else _target(ratio <= limit, f"<= {limit}"),
    )


def _care_rows(results: Sequence[CareResult]) -> Iterator[Row]:
    """One row per pair that is compared, and one for the files that a query of it reads."""
    by_key = {(item.what, item.engine): item for item in results}
    for (what, own, other), limit in CARE_TARGETS.items():
        if (what, own) not in by_key or (what, other) not in by_key:
            continue
        mine, theirs = by_key[what, own], by_key[what, other]
        ratio = mine.best_s / theirs.best_s
        title = f"{what}, {mine.files:,} files, {own} beside {other}"
        times = f"{mine.best_s:.2f}", f"{theirs.best_s:.2f}", f"{ratio:.2f}"
        yield f"{title}: best, s", *times, _target(ratio <= limit, f"<= {limit}")
        if mine.read_share is not None and theirs.read_share is not None:
            ratio = mine.read_share / theirs.read_share
            shares = f"{mine.read_share:.1%}", f"{theirs.read_share:.1%}", f"{ratio:.2f}"
            yield f"{title}: files read by 1 %", *shares, _target(ratio <= 1.0, "<= 1.0")


def _group_rows(results: Sequence[GroupResult]) -> Iterator[Row]:
    """Ours only: there is nothing to compare with."""
    alone = next((item for item in results if item.threads == 1), None)
    for item in results:
        threads = f"{item.threads} thread" + ("s" if item.threads > 1 else "")
        how = ", in groups" if item.is_grouped else ""
        ratio = item.appends_per_s / alone.appends_per_s if alone is not None else None
        bad = sum(item.failures.values()) + item.wrong
        shares = item.versions < item.appends
        reached = bad == 0 and shares and ratio is not None and ratio >= GROUP_TARGET
        yield (
            f"S3 at {DELAY_S * 1000:.0f} ms a request, {threads}{how}: "
            "appends / s (versions; failed, wrong)",
            f"{item.appends_per_s:.1f} ({item.versions}; {sum(item.failures.values())}, "
            f"{item.wrong})",
            "",
            "" if ratio is None else f"x {ratio:.1f}",
            _target(reached, f">= x {GROUP_TARGET:.0f}, 0 wrong, < 1 version each")
            if item.is_grouped
            else "",
        )


def _column_rows(results: Sequence[ColumnResult]) -> Iterator[Row]:
    """Show the arrow plane in the first column, the native one in the second."""
    by_key = {(item.plane, item.query): item for item in results}
    for query in dict.fromkeys(item.query for item in results):
        arrow, native = by_key["arrow", query], by_key["native", query]
        ratio = arrow.best_s / native.best_s
        yield (
            f"{query} of {COLUMNS}, {arrow.rows:,} rows, arrow beside native: best (median), s",
            f"{arrow.best_s:.2f} ({arrow.median_s:.2f})",
            f"{native.best_s:.2f} ({native.median_s:.2f})",
            f"{ratio:.2f}",
            _target(ratio <= COLUMNS_TARGET, f"<= {COLUMNS_TARGET}"),
        )


def _drop_in_rows(results: Sequence[DropInResult]) -> Iterator[Row]:
    """Ours only: there is nothing to compare with."""
    for item in results:
        query = f"SQL over {item.num_files:,} files, frame and plan"
        for title, seconds, limit in (
            ("enable, first on a machine: CPU, s", item.first_enable_s, FIRST_ENABLE_TARGET_S),
            ("enable: CPU, s", item.enable_s, ENABLE_TARGET_S),
            ("SELECT 1, more than without: CPU, s", item.statement_s, STATEMENT_TARGET_S),
            (f"{query}: CPU, s", item.query_s, None),
            (f"{query}: best, s", item.query_wall_s, QUERY_TARGET_S),
        ):
            target = "" if limit is None else _target(seconds <= limit, f"<= {limit}")
            yield title, f"{seconds:.4f}", "", "", target


def _stream_rows(results: Sequence[StreamResult]) -> Iterator[Row]:
    """Show a plane of ours in the first column, its reference in the second."""
    by_kind = {item.kind: item for item in results}
    for plane, targets in STREAM_TARGETS.items() if results else ():
        for other, limit in targets.items():
            ours, theirs = by_kind[plane], by_kind[other]
            ratio = ours.median_s / theirs.median_s
            yield (
                f"micro-batch of a stream, {plane} beside {other}: best (median), s",
                f"{ours.best_s:.3f} ({ours.median_s:.3f})",
                f"{theirs.best_s:.3f} ({theirs.median_s:.3f})",
                f"{ratio:.2f}",
                _target(ratio <= limit, f"<= {limit}"),
            )


def _wrong(result: WritersResult) -> int:
    failed = sum(result.failures.values())
    return failed + result.lost + result.doubled + result.unreported


def _outcome(result: WritersResult) -> str:
    return f"{sum(result.failures.values())}, {result.lost}, {result.doubled}"


def _without_spark_rows(results: Sequence[WithoutSparkResult]) -> Iterator[Row]:
    theirs = {item.work: item for item in results if item.engine == THEIRS}
    for item in results:
        if item.engine != OURS:
            continue
        other = theirs.get(item.work)
        how = f", {item.how}" if item.how else ""
        name = f"{item.work}{how}, {item.rows:,} rows: s (peak, MiB)"
        shown = f"{item.seconds:.2f} ({item.peak_mib:.0f})"
        if other is None:
            yield name, shown, "", "", ""
            continue
        ratio, most = item.seconds / other.seconds, WITHOUT_SPARK_TARGETS[item.work, item.how]
        is_met = ratio <= most and item.peak_mib <= other.peak_mib
        yield (
            name,
            shown,
            f"{other.seconds:.2f} ({other.peak_mib:.0f})",
            f"{ratio:.2f}",
            _target(is_met, f"<= {most}, no more memory"),
        )


def _target(reached: bool, text: str) -> str:
    return f"{text}: {'reached' if reached else 'MISSED'}"


def machine() -> dict[str, Any]:
    """Return when and where this is measured, and with what."""
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
