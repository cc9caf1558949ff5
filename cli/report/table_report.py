"""`table_report`: everything that the report of a table shows, worked out and laid out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

import pyarrow as pa

from optimist.cli.report.advice import advice_rows, advise
from optimist.cli.report.html import element
from optimist.cli.report.layout import Layout, layout_of
from optimist.cli.report.over_time import Advance, table_over_time
from optimist.cli.report.page import page_of
from optimist.cli.report.sections import (
    Section,
    advice_section,
    check_section,
    commit_section,
    growth_section,
    layout_section,
    query_section,
    race_section,
)
from optimist.cli.report.texts import bytes_text, count_text, plural, time_text
from optimist.cli.work.left_out_files import ExplainedFiles, explain_files
from optimist.cli.work.overtaken_commits import overtaken_commits
from optimist.core import CheckedTable, DeltaLog, Vacuumed
from optimist.core.errors import OptimistError
from optimist.core.errors.foreign_text import shown
from optimist.core.imports import own_version
from optimist.core.paths import name_of
from optimist.core.protocol.clustering import clustering_columns
from optimist.core.schema.stats_property import ColumnPath
from optimist.core.secrets import without_secrets
from optimist.core.skipping.pruner import FilePruner
from optimist.core.snapshot import Snapshot

__all__ = ["TableReport", "table_report"]

_Found = TypeVar("_Found")


@dataclass(frozen=True, slots=True)
class TableReport:
    """The report of a table.

    Attributes:
        version: The version that it tells of.
        html: The page.
        advice: What to do next: `title`, `why`, `gain`, `command`, `urgent`.
    """

    version: int
    html: str
    advice: pa.Table

    def __repr__(self) -> str:
        return f"TableReport(version={self.version}, <{len(self.html)} characters>)"


def table_report(
    log: DeltaLog,
    queries: Sequence[str] = (),
    *,
    checks: bool = True,
    examined: Sequence[tuple[str, bool, str]] = (),
    advance: Advance | None = None,
) -> TableReport:
    """Make the report of a table's newest version. Nothing is changed.

    Args:
        log: The handle of the table.
        queries: Conditions of typical queries, as SQL.
        checks: Whether to run fsck, and to list what VACUUM would delete. Both list the table's
            directory.
        examined: What doctor tried: the check, whether it went well, and the detail.
        advance: Called with the number of commits that are read, and of those to read.

    Raises:
        TableNotFoundError: There is no table at the path.
        TableError, ProtocolError: The newest version can't be read.
        StorageError: The store failed.
        ConfigError: The package that draws is not installed (kind `OPTIMIST_MISSING_PACKAGE`).
    """
    snapshot = log.snapshot()
    pruner = snapshot.pruner()  # it parses the statistics of a column once
    wanted = _data_columns(snapshot, queries)
    clustering = clustering_columns(snapshot.domain_metadata, snapshot.schema)
    layout = layout_of(snapshot, pruner, (*wanted, *clustering))
    explained = [(query, _explained(log, snapshot, pruner, query)) for query in queries]
    checked = _or_error(log.fsck) if checks else None
    dead = _or_error(lambda: log.vacuum(dry_run=True)) if checks else None
    advice = advise(
        snapshot,
        log.options,
        layout,
        wanted=wanted,
        checked=checked if isinstance(checked, CheckedTable) else None,
        dead=dead if isinstance(dead, Vacuumed) else None,
    )
    sections = [
        advice_section(advice),
        *_sections_over_time(log, snapshot, advance or _say_nothing),
        query_section(explained),
        layout_section(snapshot, layout),
        check_section(checked, examined),
    ]
    return TableReport(
        snapshot.version, _page(log, snapshot, layout, sections), advice_rows(advice)
    )


def _say_nothing(done: int, total: int | None) -> None:
    """Take no notice of progress."""


def _or_error(work: Callable[[], _Found]) -> _Found | str:
    """Return what the work finds, or the text of its error: other sections need not wait for it."""
    try:
        return work()
    except OptimistError as error:
        return str(error)


def _explained(
    log: DeltaLog, snapshot: Snapshot, pruner: FilePruner, query: str
) -> ExplainedFiles | str:
    use_statistics = log.options.stats_skipping
    return _or_error(
        lambda: explain_files(snapshot, query, use_statistics=use_statistics, pruner=pruner)
    )


def _data_columns(snapshot: Snapshot, queries: Sequence[str]) -> tuple[ColumnPath, ...]:
    """Return the columns that the conditions name, without those of partitions."""
    partition = set(snapshot.partition_columns)
    paths: list[ColumnPath] = []
    for query in queries:
        with suppress(OptimistError):  # the section of queries shows the error
            paths += sorted(snapshot.scan(query).predicate.columns())
    return tuple(path for path in dict.fromkeys(paths) if path[0] not in partition)


def _sections_over_time(log: DeltaLog, snapshot: Snapshot, advance: Advance) -> list[Section]:
    over_time = _or_error(lambda: table_over_time(log, snapshot, advance))
    if isinstance(over_time, str):
        error = element("p", over_time, class_="error")
        return [Section("growth", "The table over time", "The commits can't be read.", [error])]
    if not over_time.states.num_rows:
        intro = "The log has no commit any more, only a checkpoint."
        return [Section("growth", "The table over time", intro)]
    races = race_section(overtaken_commits(over_time.history))
    return [growth_section(over_time), commit_section(over_time), races]


def _page(log: DeltaLog, snapshot: Snapshot, layout: Layout, sections: Sequence[Section]) -> str:
    path = without_secrets(snapshot.table_path)
    name = shown(snapshot.metadata.name or name_of(path.rstrip("/")) or path)
    partitioned = ", ".join(map(shown, snapshot.partition_columns))
    facts = [
        ("Version", f"{snapshot.version:,}", time_text(snapshot.timestamp_ms)),
        (
            "Rows",
            count_text(layout.rows),
            f"{plural(layout.deleted_rows, 'row')} deleted by vectors",
        ),
        ("Size", bytes_text(snapshot.size_in_bytes), f"{snapshot.size_in_bytes:,} bytes"),
        ("Files", f"{snapshot.num_files:,}", _mean_size(snapshot)),
        ("Columns", f"{len(snapshot.schema):,}", f"partitioned by {partitioned or 'none'}"),
    ]
    made = time_text(log.clock.now_ms())
    footer = (
        f"Made by Optimist {own_version()} at {made}. The page asks for nothing from elsewhere."
    )
    return page_of(name, shown(path), facts, sections, footer)


def _mean_size(snapshot: Snapshot) -> str:
    files = snapshot.num_files
    return f"{bytes_text(snapshot.size_in_bytes // files)} on average" if files else "none"
