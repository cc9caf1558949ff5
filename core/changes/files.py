"""The files that hold the changes of each version, as Arrow (spec 10.11).

A version whose commit names change files (`cdc`) has exactly the changes in them. For every other
version the changes are derived: rows of added files were inserted, and rows of removed files were
deleted. If a file only got another deletion vector, the rows in which the two vectors differ were
deleted or restored.

A row stands for one file and one kind of change. The kind, the version and the time are partition
values, so that any reader of the table's files can read them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from typing import TypeAlias

import pyarrow as pa

from optimist.core.changes.commits import ReadCommit
from optimist.core.changes.vectors import ReplacedVector, RowDifference, all_but
from optimist.core.data.change_files import CHANGE_TYPE, DELETE, INSERT
from optimist.core.data.partition_values import serialize_partition_value
from optimist.core.data.statistics.stats_text import num_rows
from optimist.core.errors import TableError
from optimist.core.errors.foreign_text import shown
from optimist.core.errors.kinds import MALFORMED_COMMIT
from optimist.core.log.file_table import FILES_SCHEMA, add_files, canonical_path, files_table
from optimist.core.protocol.actions import AddCDCFile, AddFile, CommitInfo, RemoveFile
from optimist.core.schema.types import PrimitiveType, StructField

__all__ = ["COMMIT_VERSION", "FEED_COLUMNS", "FileCollector", "RowCounter", "as_inserted"]

COMMIT_VERSION = "_commit_version"
_TIME = "_commit_timestamp"
FEED_COLUMNS = (
    StructField(CHANGE_TYPE, PrimitiveType("string")),
    StructField(COMMIT_VERSION, PrimitiveType("long")),
    StructField(_TIME, PrimitiveType("timestamp")),
)
"""The columns that the feed adds after the table's own, in order."""

_Stamp: TypeAlias = Mapping[str, str | None]
"""The partition values for a commit's version and time."""

RowCounter = Callable[[AddFile], int]
"""Counts the rows of a file whose statistics have no row count."""

_MOST_ROWS = 1 << 36
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MERGED_ROWS = ("numTargetRowsInserted", "numTargetRowsUpdated", "numTargetRowsDeleted")


@dataclass(slots=True)
class FileCollector:
    """Collects the files of one commit after another.

    Attributes:
        count_rows: See `RowCounter`.
        complete: Called with `remove`s that lack fields of their files' `add`s, and with their
            version; returns these `add`s.
        recorded: The change files, without a value for `_change_type`, which is in the files.
        derived: Files of the table.
        replaced: Files whose deletion vector was replaced, each with the file to list once the
            vectors are read.
    """

    count_rows: RowCounter
    complete: Callable[[Sequence[RemoveFile], int], Sequence[AddFile]]
    recorded: list[pa.Table] = field(default_factory=list)
    derived: list[pa.Table] = field(default_factory=list)
    replaced: list[tuple[ReplacedVector, AddFile]] = field(default_factory=list)

    def collect(self, commit: ReadCommit, time_ms: int, *, is_partitioned: bool) -> None:
        """Collect the files of one commit.

        Args:
            commit: The commit.
            time_ms: The time of the commit.
            is_partitioned: Whether the table has partition columns.
        """
        stamp = _make_stamp(commit.version, time_ms)
        recorded = [item for item in commit.actions if isinstance(item, AddCDCFile)]
        if recorded:
            self.recorded.append(files_table(_add_of_cdc(item, stamp) for item in recorded))
            return
        if _is_merge_of_nothing(commit.info):
            return
        removed = self._removed_files(commit, is_partitioned=is_partitioned)
        added = {
            canonical_path(item.path): item
            for item in commit.actions
            if isinstance(item, AddFile) and item.data_change
        }
        both = removed.keys() & added.keys()
        inserted = [
            _with_change_type(item, INSERT, stamp) for key, item in added.items() if key not in both
        ]
        deleted = [
            _with_change_type(item, DELETE, stamp)
            for key, item in removed.items()
            if key not in both
        ]
        if inserted or deleted:
            self.derived.append(files_table((*inserted, *deleted)))
        for key in sorted(both):
            self._note_replaced(removed[key], added[key], stamp)

    def add_differences(self, differences: Iterable[RowDifference]) -> None:
        """Collect the rows in which the vectors of each item of `replaced` differ, in order."""
        found = []
        for (vectors, file), rows in zip(self.replaced, differences, strict=True):
            for kind, changed in ((DELETE, rows.deleted), (INSERT, rows.restored)):
                if changed:
                    others = all_but(changed, vectors.num_rows)
                    found.append(_with_change_type(replace(file, deletion_vector=others), kind, {}))
        if found:
            self.derived.append(files_table(found))

    def tables(self) -> tuple[pa.Table, pa.Table]:
        """Return the derived and the recorded files, each as a table of `FILES_SCHEMA`."""
        empty = FILES_SCHEMA.empty_table()
        return pa.concat_tables([empty, *self.derived]), pa.concat_tables([empty, *self.recorded])

    def _removed_files(self, commit: ReadCommit, *, is_partitioned: bool) -> dict[str, AddFile]:
        removes = [
            item for item in commit.actions if isinstance(item, RemoveFile) and item.data_change
        ]
        found = [(item, _add_of_remove(item, is_partitioned=is_partitioned)) for item in removes]
        bare = [item for item, add in found if add is None]
        whole = [add for _, add in found if add is not None]
        if bare:
            whole.extend(self.complete(bare, commit.version))
        return {canonical_path(item.path): item for item in whole}

    def _note_replaced(self, before: AddFile, after: AddFile, stamp: _Stamp) -> None:
        if before.deletion_vector == after.deletion_vector:
            return  # the same rows as before
        stamped = replace(after, partition_values={**after.partition_values, **stamp})
        rows = num_rows(after.stats)
        rows = num_rows(before.stats) if rows is None else rows
        count = self.count_rows(after) if rows is None else rows
        _ensure_countable(after, count)
        vectors = ReplacedVector(after.path, before.deletion_vector, after.deletion_vector, count)
        self.replaced.append((vectors, stamped))


def as_inserted(files: pa.Table, version: int, time_ms: int) -> pa.Table:
    """Return files of a version as if its commit, at that time, had inserted all their rows."""
    stamp = _make_stamp(version, time_ms)
    return files_table(_with_change_type(item, INSERT, stamp) for item in add_files(files))


def _ensure_countable(file: AddFile, rows: int) -> None:
    # The remaining rows are kept as ranges; this many still fit into memory.
    if rows > _MOST_ROWS:
        raise TableError(
            f"The data file {shown(file.path)} claims to have {rows} rows, more than any file can "
            "have. The log is damaged or was forged. Nothing was read. Restore the log from a "
            "backup.",
            kind="OPTIMIST_IMPOSSIBLE_COUNT",
            path=file.path,
            claimed=rows,
        )


def _make_stamp(version: int, time_ms: int) -> _Stamp:
    """Return the partition values that all files of a commit share: its version and time."""
    try:
        time = _EPOCH + timedelta(milliseconds=time_ms)
    except OverflowError:
        raise TableError(
            f"Version {version} claims the commit time {time_ms} (milliseconds since 1970), which "
            "a timestamp column can't hold. Start after that version.",
            kind=MALFORMED_COMMIT,
            version=version,
        ) from None
    text = serialize_partition_value(time, PrimitiveType("timestamp"))
    return {COMMIT_VERSION: str(version), _TIME: text}


def _with_change_type(file: AddFile, kind: str, stamp: _Stamp) -> AddFile:
    return replace(file, partition_values={**file.partition_values, **stamp, CHANGE_TYPE: kind})


def _add_of_cdc(item: AddCDCFile, stamp: _Stamp) -> AddFile:
    return AddFile(
        path=item.path,
        partition_values={**item.partition_values, **stamp},
        size=item.size,
        modification_time=0,
        data_change=False,
    )


def _add_of_remove(item: RemoveFile, *, is_partitioned: bool) -> AddFile | None:
    """Return the file as it was added, or None if the remove lacks size or partition values."""
    if item.size is None or (item.partition_values is None and is_partitioned):
        return None
    return AddFile(
        path=item.path,
        partition_values=item.partition_values or {},
        size=item.size,
        modification_time=0,
        data_change=True,
        stats=item.stats,
        deletion_vector=item.deletion_vector,
        base_row_id=item.base_row_id,
        default_row_commit_version=item.default_row_commit_version,
    )


def _is_merge_of_nothing(info: CommitInfo | None) -> bool:
    if info is None or info.operation != "MERGE" or not info.operation_metrics:
        return False
    return all(str(info.operation_metrics.get(name)) == "0" for name in _MERGED_ROWS)
