"""The checkpoint that the next one continues, and what the commits since have changed (spec 5.8).

A checkpoint of this engine has typed columns and sorted rows, so the next one takes them over. It
leaves out rows whose file a later commit names, whatever that commit says of the file, and puts in
what the commits add. Nothing as long as the table is in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.errors import OptimistError
from optimist.core.log.file_table import file_keys
from optimist.core.log.limits import LogLimits, SeenFiles, distinct
from optimist.core.log.names import LogFileKind
from optimist.core.log.replay import LogState, with_commits
from optimist.core.log.segment import LogSegment
from optimist.core.log.stored_groups import StoredFile, StoredGroup
from optimist.core.log.typed_rows import OpenAdds, TypedFile, not_continued
from optimist.core.log_upkeep.checkpoint_layout import LAYOUT_KEY, Layout
from optimist.core.log_upkeep.external_sort import merged, regrouped, sorted_batch
from optimist.core.plugins.logstore import LogStore
from optimist.core.values.exact_sums import exact_sum

__all__ = [
    "Changes",
    "ContinuedBase",
    "CopiedGroup",
    "base_rows",
    "changes_since_checkpoint",
    "one_batch",
    "sorted_base",
]

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

    def touch(self, rows: pa.RecordBatch) -> bool:
        """Return whether one of these rows of the checkpoint holds no longer."""
        hit = pc.is_in(file_keys(rows), value_set=self.touched)
        return bool(pc.any(hit, min_count=0).as_py())

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
    batches = [one_batch(table) for table in (added, removed)]
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


@dataclass(frozen=True, slots=True)
class CopiedGroup:
    """A row group of adds that the next checkpoint has as it is stored.

    Attributes:
        group: The row group, with its bytes.
        size_bytes: The sum of the sizes of its files.
        rows: Reads its rows, until the next row group is asked for.
    """

    group: StoredGroup
    size_bytes: int
    rows: Callable[[], Iterator[pa.RecordBatch]]


class ContinuedBase:
    """The checkpoint that follows a classic one.

    New files wait in a last row group until, with those of the base that wait there already, they
    are half a row group. Then all are put where they belong. Until then, row groups without a
    change need no more than a copy.

    Args:
        base: The checkpoint before.
        changes: What the commits since have changed.
        layout: The layout of the rows.
        limits: The most that is read of the log.
        most: The most rows of a row group.
    """

    def __init__(
        self, base: TypedFile, changes: Changes, layout: Layout, limits: LogLimits, most: int
    ) -> None:
        self._base = base
        self._changes = changes
        self._layout = layout
        self._most = most
        self._seen = SeenFiles(limits)

    def groups(self, like: StoredFile | None) -> Iterator[pa.RecordBatch | CopiedGroup]:
        """Yield the row groups.

        Args:
            like: A file of the kind of the new checkpoint; None: nothing may be copied.

        Raises:
            TableError, LogFileNotFoundError: The base is damaged or gone.
        """
        added = self._layout.rows(self._changes.added)
        # Opened once: another file may take its name.
        with self._base.opened(self._layout.add_schema, like) as base:
            last = base.groups[-1:]
            if last and 2 * last[0][1] >= self._most:
                last = []
            body = base.groups[: len(base.groups) - len(last)]
            if 2 * (added.num_rows + sum(rows for _, rows in last)) >= self._most:
                late = sorted_batch([*self._held(base, last), added], self._layout.keys)
                in_order = merged(self._held(base, body), late, self._layout.keys)
                yield from regrouped(in_order, self._most)
                return
            early = self._held_or_copied(base, len(body))
            yield from regrouped(chain(early, self._held(base, last), [added]), self._most)

    def _held(self, base: OpenAdds, groups: Sequence[tuple[int, int]]) -> Iterator[pa.RecordBatch]:
        for number, _ in groups:
            for rows in base.rows(number):
                self._seen.ensure_new(rows)
                yield self._changes.without_touched(rows)

    def _held_or_copied(self, base: OpenAdds, count: int) -> Iterator[pa.RecordBatch | CopiedGroup]:
        """Yield what holds of the first row groups: a copy where all does, and it is not small."""
        numbered = zip(base.stored(self._most), base.groups, strict=True)
        for group, (number, num_rows) in islice(numbered, count):
            if group is None:
                yield from self._held(base, [(number, num_rows)])
                continue
            copied = self._copy_of(base, group, number)
            if copied is not None:
                yield copied
                continue
            for rows in base.rows(number):
                yield self._changes.without_touched(rows)

    def _copy_of(self, base: OpenAdds, group: StoredGroup, number: int) -> CopiedGroup | None:
        """Return the row group if every row of it is an add that still holds."""
        num_rows = size_bytes = 0
        is_touched = False
        for rows in base.keys(number):
            self._seen.ensure_new(rows)
            num_rows += rows.num_rows
            size_bytes += exact_sum(rows.column("size"))
            is_touched = is_touched or self._changes.touch(rows)
        if is_touched or num_rows != group.num_rows:
            return None
        return CopiedGroup(group, size_bytes, partial(base.rows, number))


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


def one_batch(table: pa.Table) -> pa.RecordBatch:
    """Return the rows of a table, uncopied if they are one batch already."""
    batches = table.to_batches()
    if not batches:
        return pa.RecordBatch.from_pylist([], schema=table.schema)
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)
