"""A table over time: its commits, and how many files, bytes and rows it had after each.

The commits are read once. The state before the first of them is empty, or comes from a checkpoint.
A path belongs to at most one live file, so what a commit changes at a path is the difference of two
states of that path. All of that is arithmetic on columns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from optimist.core.log.commit_lines import FileBody, parse_commit_lines
from optimist.core.log.commits import read_commits_bytes
from optimist.core.log.file_table import ACTIONS_SCHEMA, canonical_paths, file_actions_batch
from optimist.core.plugins.logstore import FileStatus
from optimist.core.protocol.actions import CommitInfo
from optimist.core.schema.types import StructType
from optimist.core.skipping.live_rows import live_rows
from optimist.core.skipping.statistics import FileStatistics
from optimist.core.snapshot import Snapshot
from optimist.core.snapshot.time_travel import (
    CommitRecord,
    adjusted_timestamps,
    earliest_recreatable_version,
    list_commit_files,
)
from optimist.core.statements.history import history_rows
from optimist.core.table.delta_log import DeltaLog

__all__ = ["Advance", "TableOverTime", "table_over_time"]

Advance: TypeAlias = Callable[[int, "int | None"], None]
"""Called with the number of commits that are read, and of those to read."""

_ACTIONS_AT_A_TIME = 50_000
_COMMITS_BETWEEN_CALLS = 100
_LAST_TIME_MS = 8_640_000_000_000_000
"""The last time that a browser knows. A commit may claim any."""


@dataclass(frozen=True, slots=True)
class TableOverTime:
    """The commits that the log still has, and the table after each.

    Attributes:
        history: The commits, newest first, as rows of DESCRIBE HISTORY.
        states: The table after each commit, oldest first: `version`, `time` (epoch milliseconds),
            `operation`, `writer`, `files`, `bytes`, and `rows`, which is null where the log does
            not tell the rows of each file.
    """

    history: pa.Table
    states: pa.Table


def table_over_time(log: DeltaLog, snapshot: Snapshot, advance: Advance) -> TableOverTime:
    """Read the commits up to a version.

    Raises:
        TableError: A commit is damaged, or the state before the first can't be loaded.
        StorageError: The store failed.
    """
    commits, base = _commits_to_read(log, snapshot)
    changes = _Changes()
    if base is not None:
        changes.note_files(base.files, base.version)
    times = adjusted_timestamps(status.modified_ms for _, status in commits)
    contents = read_commits_bytes(log.store, [status for _, status in commits])
    records = []
    for (version, status), time_ms, data in zip(commits, times, contents, strict=True):
        lines = parse_commit_lines(data, status.path)
        info = next((each for each in lines.actions if isinstance(each, CommitInfo)), None)
        records.append(CommitRecord.of(version, info, time_ms))
        changes.note_actions(lines.file_actions, version)
        if not len(records) % _COMMITS_BETWEEN_CALLS:
            advance(len(records), len(commits))
    history = history_rows(records[::-1])
    first = commits[0][0] if commits else snapshot.version + 1
    sums = changes.sums(first - 1, snapshot.version)
    return TableOverTime(history, _states(records, history, sums))


def _commits_to_read(
    log: DeltaLog, snapshot: Snapshot
) -> tuple[Sequence[tuple[int, FileStatus]], Snapshot | None]:
    """Return the last unbroken run of commits, and the version before it, if it has files."""
    commits = list_commit_files(log.store, log.log_path, 0, snapshot.version)
    if not commits:
        return (), None
    gaps = [at for at in range(1, len(commits)) if commits[at][0] != commits[at - 1][0] + 1]
    if not gaps and commits[0][0] == 0:
        return commits, None
    checkpoint = snapshot.segment.checkpoint_version if snapshot.segment else -1
    earliest = checkpoint if gaps else earliest_recreatable_version(log.store, log.log_path)
    run = [entry for entry in commits[gaps[-1] if gaps else 0 :] if entry[0] > earliest]
    return run, log.snapshot(earliest)


def _states(records: Sequence[CommitRecord], history: pa.Table, sums: pa.Table) -> pa.Table:
    oldest_first = history.take(pa.array(range(history.num_rows - 1, -1, -1), pa.int64()))
    columns = {
        "version": oldest_first.column("version"),
        "time": pa.array([_within_calendar(record.timestamp_ms) for record in records], pa.int64()),
        "operation": oldest_first.column("operation"),
        "writer": oldest_first.column("engineInfo"),
    }
    own = sums.slice(1, len(records))  # the first row is the state before them
    return pa.table(columns | dict(zip(own.column_names, own.columns, strict=True)))


def _within_calendar(time_ms: int) -> int:
    return min(max(time_ms, -_LAST_TIME_MS), _LAST_TIME_MS)


@dataclass(slots=True)
class _Changes:
    """What the commits do to paths, as columns: `path`, `version`, `isAdd`, `size`, `rows`."""

    _batches: list[pa.Table] = field(default_factory=list)
    _pending: list[FileBody] = field(default_factory=list)
    _versions: list[int] = field(default_factory=list)

    def note_actions(self, actions: Sequence[FileBody], version: int) -> None:
        """Take up the adds and removes of a commit."""
        self._pending.extend(actions)
        self._versions.extend([version] * len(actions))
        if len(self._pending) >= _ACTIONS_AT_A_TIME:
            self._flush()

    def note_files(self, files: pa.Table, version: int) -> None:
        """Take up the files of a version, as if its commit added them all."""
        is_add = pa.repeat(pa.scalar(True), files.num_rows)
        self._note(files, is_add, pa.repeat(pa.scalar(version, pa.int64()), files.num_rows))

    def sums(self, first: int, last: int) -> pa.Table:
        """Return `files`, `bytes` and `rows` of the table after each of a range of versions."""
        self._flush()
        length = last - first + 1
        if not self._batches:
            zeros = pa.array(np.zeros(length, np.int64))
            return pa.table({"files": zeros, "bytes": zeros, "rows": zeros})
        events = pa.concat_tables(self._batches)
        sorted_events = _by_path(events)
        at = sorted_events.column("version").to_numpy() - first
        is_same_path = sorted_events.column("isSamePath").to_numpy()
        totals = {}
        for name in ("files", "bytes", "rows", "unknown"):
            after = sorted_events.column(name).to_numpy()
            before = np.concatenate(([0], after[:-1])) * is_same_path
            change = np.zeros(length, np.int64)
            np.add.at(change, at, after - before)
            totals[name] = np.cumsum(change)
        rows = pa.array(totals["rows"], mask=totals["unknown"] > 0)
        return pa.table({"files": totals["files"], "bytes": totals["bytes"], "rows": rows})

    def _flush(self) -> None:
        if not self._pending:
            return
        actions = pa.Table.from_batches([file_actions_batch(self._pending)], ACTIONS_SCHEMA)
        self._note(actions, actions.column("isAdd"), pa.array(self._versions, pa.int64()))
        self._pending, self._versions = [], []

    def _note(self, files: pa.Table, is_add: pa.Array, versions: pa.Array) -> None:
        known = FileStatistics(files, StructType()).num_records.combine_chunks()
        columns = {
            "path": canonical_paths(files.column("path")).cast(pa.large_string()),
            "version": versions,
            "isAdd": is_add,
            "size": files.column("size"),
            "rows": live_rows(files, known),
        }
        self._batches.append(pa.table(columns))


def _by_path(events: pa.Table) -> pa.Table:
    """Return the state of each path after each event, by path and then by time.

    A commit that gives a file another vector removes and adds one path, in either order of lines.
    """
    paths = events.column("path").combine_chunks().dictionary_encode().indices.to_numpy()
    is_add = events.column("isAdd").to_numpy()
    order = np.lexsort((is_add, events.column("version").to_numpy(), paths))
    ordered = events.drop(["path"]).take(pa.array(order))
    is_add, paths = is_add[order], paths[order]
    is_unknown = ordered.column("rows").is_null().to_numpy() & is_add
    return pa.table(
        {
            "version": ordered.column("version"),
            "isSamePath": np.concatenate(([0], paths[1:] == paths[:-1])).astype(np.int64),
            "files": is_add.astype(np.int64),
            "bytes": ordered.column("size").fill_null(0).to_numpy() * is_add,
            "rows": ordered.column("rows").fill_null(0).to_numpy() * is_add,
            "unknown": is_unknown.astype(np.int64),
        }
    )
