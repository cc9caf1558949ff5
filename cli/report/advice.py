"""What to do next with a table, and what that brings, computed from its log.

Each advice is what the command itself would do: compaction counts the groups that OPTIMIZE would
write, and vacuum the files that VACUUM would delete.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from optimist.cli.report.layout import Layout
from optimist.cli.report.texts import bytes_text, number_text, plural
from optimist.core import CheckedTable, Vacuumed
from optimist.core.errors.foreign_text import shown
from optimist.core.maintenance.optimize.arrangements import Rearrangement
from optimist.core.options.engine import EngineOptions
from optimist.core.predicates.text import quote_path
from optimist.core.schema.stats_property import ColumnPath
from optimist.core.secrets import without_secrets
from optimist.core.snapshot import Snapshot
from optimist.core.values.exact_sums import exact_sum

__all__ = ["Advice", "advice_rows", "advise"]

_FEWEST_FILES_SAVED = 10
_SHARE_OF_FILES_SAVED = 4
_FEWEST_FILES_TO_ARRANGE = 8
_FILES_WHEN_ARRANGED = 2
_LEAST_GAIN = 2
_SHARE_WITHOUT_ROWS = 10
_MOST_KINDS = 5
_LEFTOVERS = ("orphan", "stale-intent")
"""What fsck finds that is no damage: VACUUM removes it."""


@dataclass(frozen=True, slots=True)
class Advice:
    """One thing to do.

    Attributes:
        title: What to do.
        why: What is the case.
        gain: What it brings.
        command: The line to type.
        is_urgent: Whether the table is damaged.
    """

    title: str
    why: str
    gain: str
    command: str
    is_urgent: bool = False


def advise(
    snapshot: Snapshot,
    options: EngineOptions,
    layout: Layout,
    *,
    wanted: Sequence[ColumnPath],
    checked: CheckedTable | None,
    dead: Vacuumed | None,
) -> list[Advice]:
    """Return what to do, the most important first.

    Args:
        snapshot: The newest version.
        options: The engine's options.
        layout: How its files lie.
        wanted: The data columns that queries ask for.
        checked: What fsck says, if it was asked.
        dead: What VACUUM would delete, if that is known.
    """
    found: list[Advice] = []
    found += _repairs(snapshot, checked)
    found += _checkpoints(snapshot)
    found += _compactions(snapshot, options)
    found += _arrangements(snapshot, options, layout, wanted)
    found += _statistics(snapshot, layout)
    found += _vacuums(snapshot, dead)
    return found


def advice_rows(advice: Iterable[Advice]) -> pa.Table:
    """Return advice as rows: `title`, `why`, `gain`, `command`, `urgent`."""
    rows = [
        {
            "title": each.title,
            "why": each.why,
            "gain": each.gain,
            "command": each.command,
            "urgent": each.is_urgent,
        }
        for each in advice
    ]
    return pa.Table.from_pylist(rows, schema=_ROWS)


def _repairs(snapshot: Snapshot, checked: CheckedTable | None) -> Iterator[Advice]:
    if checked is None:
        return
    found = checked.findings.column("kind").to_pylist()
    kinds = [kind for kind in found if kind not in _LEFTOVERS]
    if kinds:
        counted = {kind: kinds.count(kind) for kind in dict.fromkeys(kinds[:_MOST_KINDS])}
        told = ", ".join(f"{kind} ({count:,})" for kind, count in counted.items())
        yield Advice(
            "Repair the table",
            f"fsck has {plural(len(kinds), 'finding')}: {told}.",
            "Each finding below names its proof and what to do.",
            f"optimist fsck {_place(snapshot)}",
            is_urgent=True,
        )


def _checkpoints(snapshot: Snapshot) -> Iterator[Advice]:
    segment = snapshot.segment
    if segment is None or len(segment.commits) <= snapshot.properties.checkpoint_interval:
        return
    size = sum(status.size_bytes for status in segment.commits)
    since = f"since version {segment.checkpoint_version}" if segment.checkpoint else "at all"
    yield Advice(
        "Write a checkpoint",
        f"There is no checkpoint {since}.",
        f"Whoever opens the table reads {plural(len(segment.commits), 'commit')} "
        f"({bytes_text(size)}) less.",
        f"optimist checkpoint {_place(snapshot)}",
    )


def _compactions(snapshot: Snapshot, options: EngineOptions) -> Iterator[Advice]:
    wanted = Rearrangement()
    arrangement = wanted.arrangement(snapshot, options)
    candidates = wanted.candidates(snapshot, arrangement.choice(options))
    bins = arrangement.bins(candidates.files, snapshot, options)
    before = sum(files.num_rows for files in bins)
    size = sum(exact_sum(files.column("size")) for files in bins)
    if arrangement.order is not None:
        if before:
            yield Advice(
                "Cluster the newest rows",
                f"{plural(before, 'file')} ({bytes_text(size)}) are not arranged by the clustering "
                "columns yet, or only in part.",
                "A query by these columns can then leave out most of these files.",
                f"optimist optimize {_place(snapshot)}",
            )
        return
    saved = before - len(bins)
    if saved >= _FEWEST_FILES_SAVED or saved * _SHARE_OF_FILES_SAVED > snapshot.num_files:
        after = snapshot.num_files - saved
        yield Advice(
            "Compact small files",
            f"{plural(before, 'file')} ({bytes_text(size)}) are small, or have many deleted rows.",
            f"The table then has {plural(after, 'file')} in place of {snapshot.num_files:,}, and a "
            f"scan opens {saved:,} fewer.",
            f"optimist optimize {_place(snapshot)}",
        )


def _arrangements(
    snapshot: Snapshot, options: EngineOptions, layout: Layout, wanted: Sequence[ColumnPath]
) -> Iterator[Advice]:
    """Advise to arrange rows by a column that queries ask for, if its ranges overlap.

    A table that fits into few files has no use for it: each query reads them all.
    """
    files, size = snapshot.num_files, snapshot.size_in_bytes
    partitions = max(1, layout.num_partitions)
    arranged = max(partitions, -(-size // options.optimize_max_file_size))
    then = size * min(1.0, _FILES_WHEN_ARRANGED * partitions / arranged)
    names = {".".join(path): path for path in wanted}
    for overlap in layout.overlaps:
        if overlap.column not in names or arranged < _FEWEST_FILES_TO_ARRANGE:
            continue
        now = size * overlap.files_per_value / files
        if now > then * _LEAST_GAIN:
            statement = f"OPTIMIZE this ZORDER BY ({quote_path(names[overlap.column])})"
            yield Advice(
                f"Arrange the rows by {shown(overlap.column)}",
                f"A query for one value of {shown(overlap.column)} reads "
                f"{number_text(overlap.files_per_value)} of {files:,} files on average "
                f"({bytes_text(int(now))}), because the files' ranges overlap.",
                f"Arranged by it alone, such a query reads about {bytes_text(int(then))}.",
                f"optimist sql {shlex.quote(statement)} --table {_place(snapshot)}",
            )


def _statistics(snapshot: Snapshot, layout: Layout) -> Iterator[Advice]:
    missing = snapshot.num_files - layout.with_rows
    if missing * _SHARE_WITHOUT_ROWS > snapshot.num_files:
        yield Advice(
            "Compute statistics",
            f"{plural(missing, 'file')} of {snapshot.num_files:,} have no statistics.",
            "Every query reads them; with statistics, conditions can leave them out.",
            "optimist sql 'ANALYZE TABLE this COMPUTE DELTA STATISTICS' "
            f"--table {_place(snapshot)}",
        )


def _vacuums(snapshot: Snapshot, dead: Vacuumed | None) -> Iterator[Advice]:
    if dead is not None and dead.num_files:
        yield Advice(
            "Delete dead files",
            f"{plural(dead.num_files, 'file')} belong to no version within the retention period.",
            f"It frees {bytes_text(dead.size_bytes)}. Versions that need these files then go.",
            f"optimist vacuum {_place(snapshot)} --delete",
        )


def _place(snapshot: Snapshot) -> str:
    """Return the table as an argument of a shell."""
    return shlex.quote(without_secrets(snapshot.table_path))


_ROWS = pa.schema(
    [
        *((name, pa.string()) for name in ("title", "why", "gain", "command")),
        ("urgent", pa.bool_()),
    ]
)
