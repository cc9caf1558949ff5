"""The checkpoint that the next one continues, and what the commits since have changed (spec 5.8).

A checkpoint of this engine has typed columns and sorted rows, so the next one takes them over. It
leaves out rows whose file a later commit names, whatever that commit says of the file, and puts in
what the commits add. Nothing as long as the table is in memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.errors import OptimistError
from optimist.core.log.file_table import file_keys
from optimist.core.log.limits import LogLimits, distinct
from optimist.core.log.names import LogFileKind
from optimist.core.log.replay import LogState, with_commits
from optimist.core.log.segment import LogSegment
from optimist.core.log.typed_rows import TypedFile, not_continued
from optimist.core.log_upkeep.checkpoint_layout import LAYOUT_KEY, Layout
from optimist.core.plugins.logstore import LogStore

__all__ = ["Changes", "base_rows", "changes_since_checkpoint", "sorted_base"]

_MOST_COMMIT_BYTES = 64 << 20
"""Commits are parsed as a whole. Rather than larger ones, the table's state is read."""


@dataclass(frozen=True, slots=True)
class Changes:
    """What the commits since a checkpoint have changed.

    Attributes:
        added: The files that they add and keep, columns of `FILES_SCHEMA`.
        removed: The files that they remove and do not add again, columns of `TOMBSTONES_SCHEMA`.
        touched: The keys of all of these. Nothing that the checkpoint says of such a file holds.
    """

    added: pa.RecordBatch
    removed: pa.RecordBatch
    touched: pa.Array

    def without_touched(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows of the checkpoint that still hold."""
        if not len(self.touched):
            return rows
        hit = pc.is_in(file_keys(rows), value_set=self.touched)
        return rows.filter(pc.invert(hit)) if pc.any(hit, min_count=0).as_py() else rows


def changes_since_checkpoint(
    store: LogStore, segment: LogSegment, limits: LogLimits
) -> Changes | None:
    """Read the commits since the segment's checkpoint, or return None if they are too large.

    Raises:
        TableError, LogFileNotFoundError: A commit is damaged or gone.
    """
    if sum(commit.size_bytes for commit in segment.commits) > _MOST_COMMIT_BYTES:
        return None
    state = with_commits(LogState.empty(), store, segment.commits, limits)
    added, removed = (files.table().combine_chunks() for files in (state.files, state.tombstones))
    batches = [_one_batch(table) for table in (added, removed)]
    touched = pa.concat_arrays([file_keys(batch) for batch in batches])
    return Changes(batches[0], batches[1], touched)


def sorted_base(
    store: LogStore, segment: LogSegment, layout: Layout, limits: LogLimits
) -> TypedFile | None:
    """Return the segment's checkpoint if it is a classic one of this layout.

    Raises:
        TableError, LogFileNotFoundError: The checkpoint is damaged or gone.
    """
    checkpoint = segment.checkpoint
    if checkpoint is None or checkpoint.kind is not LogFileKind.CLASSIC_CHECKPOINT:
        return None
    file = TypedFile(store, checkpoint.files[0].path, limits)
    return file if file.metadata(LAYOUT_KEY) == layout.digest else None


def base_rows(
    files: Sequence[TypedFile], changes: Changes, layout: Layout, limits: LogLimits
) -> Iterator[pa.RecordBatch]:
    """Yield the adds of files of the base that still hold, in the order of the files.

    Raises:
        TableError, LogFileNotFoundError: A file is damaged or gone.
    """
    rows = (batch for file in files for batch in file.rows("add", layout.add_schema))
    try:
        for batch in distinct(rows, limits):
            yield changes.without_touched(batch)
    except OptimistError:
        raise
    except ValueError as error:
        raise not_continued(files[0].path, error) from error


def _one_batch(table: pa.Table) -> pa.RecordBatch:
    batches = table.to_batches()
    if not batches:
        return pa.RecordBatch.from_pylist([], schema=table.schema)
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)
