"""One bin of an OPTIMIZE: its old files, its new files and the changes made meanwhile.

While the new files are written, another commit may delete rows of the old files by vectors. If it
is known where each row is in the new files, these rows are deleted there, too, so that the work is
not lost. If that is unknown, or an old file is gone, the bin is dropped.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Protocol, TypeAlias

import numpy as np
import pyarrow as pa
from pyroaring import BitMap64

from optimist.core.commands.marked_files import (
    ChosenRows,
    MarkedFiles,
    deleted_rows,
)
from optimist.core.commands.uncommitted_files import UncommittedFiles
from optimist.core.commands.written_files import WrittenFiles
from optimist.core.data.statistics.stats_text import num_rows
from optimist.core.data.table_ref import TableRef
from optimist.core.errors import TableError
from optimist.core.log.file_table import add_files, canonical_path
from optimist.core.protocol.actions import Action, AddFile
from optimist.core.protocol.table_metadata import TableMetadata
from optimist.core.snapshot import Snapshot
from optimist.core.transaction.optimistic import OptimisticTransaction

__all__ = ["CompactedBin", "GoneRows", "InOrder", "Trace", "live_files"]

_GONE = "DELTA_FILE_NOT_FOUND_DETAILED"

GoneRows: TypeAlias = tuple[BitMap64, BitMap64]
"""For one old file: the rows deleted when it was read, and the rows deleted since."""


class Trace(Protocol):
    """Finds rows of the old files in the new files."""

    def __call__(self, gone: Sequence[GoneRows]) -> BitMap64 | None:
        """Return the positions of rows, counted through the new files in order.

        None means that they are unknown.

        Args:
            gone: The deleted rows of each old file.
        """
        ...


@dataclass(frozen=True, slots=True)
class InOrder:
    """Rows that have the same order in the new files as in the old files.

    Attributes:
        counts: The number of live rows in each old file when it was read.
    """

    counts: tuple[int, ...]

    def __call__(self, gone: Sequence[GoneRows]) -> BitMap64 | None:
        """Return the positions of rows (see `Trace`)."""
        moved, first = BitMap64(), 0
        for (before, rows), count in zip(gone, self.counts, strict=True):
            new_positions = _positions_in_new_files(before, rows, first)
            first += count
            if new_positions and new_positions.max() >= first:
                return None  # the file has fewer rows
            moved |= new_positions
        return moved


@dataclass(frozen=True, slots=True)
class CompactedBin:
    """The old files of a bin and the new files that have their rows.

    Attributes:
        read: The old files as they were read, in the order in which their rows were written.
        written: The new files as they were written; empty if no row was left.
        before: The old files as the newest version has them.
        after: The new files without the rows deleted meanwhile.
        trace: Finds rows of the old files in the new files; None if that is impossible.
    """

    read: tuple[AddFile, ...]
    written: tuple[AddFile, ...]
    before: tuple[AddFile, ...]
    after: tuple[AddFile, ...]
    trace: Trace | None

    @classmethod
    def of(
        cls,
        txn: OptimisticTransaction,
        files: pa.Table,
        written: WrittenFiles,
        trace: Trace | None,
    ) -> CompactedBin:
        """Make a bin from files that were just written.

        Args:
            txn: The transaction, whose metadata name the columns of the new files.
            files: The old files, as rows of `Snapshot.files`.
            written: The new files.
            trace: See the attribute.
        """
        read, new = add_files(files), written.adds
        values = read[0].partition_values
        if all(add.partition_values == values for add in read):
            # Keep the log's spelling: a time without a zone stays one.
            spelled = {after: values.get(before) for before, after in _partition_names(txn)}
            new = tuple(replace(add, partition_values=spelled) for add in new)
        return cls(read, new, read, new, trace)

    def marked(self, mark: Callable[[AddFile], AddFile]) -> CompactedBin:
        """Return a bin that was just written, after `mark` has changed its new files."""
        new = tuple(map(mark, self.written))
        return replace(self, written=new, after=new)

    def actions(self, now_ms: int) -> tuple[Action, ...]:
        """Return the actions to commit, which change no data."""
        removes = (replace(add.remove(now_ms), data_change=False) for add in self.before)
        return (*removes, *(replace(add, data_change=False) for add in self.after))

    def followed(
        self, live: Mapping[str, AddFile], table: TableRef, pending: UncommittedFiles
    ) -> CompactedBin | None:
        """Return the bin with the newest version's changes, or None if it can't be committed.

        Args:
            live: The old files of all bins that the newest version has, by their canonical paths.
            table: The table.
            pending: Keeps track of vectors that are written.

        Raises:
            TableError: A vector is damaged.
            StorageError: A vector can't be written.
        """
        now = [live.get(canonical_path(add.path)) for add in self.read]
        found = tuple(add for add in now if add is not None)
        if len(found) < len(self.read):
            return None
        if all(_same_vector(old, new) for old, new in zip(self.read, found, strict=True)):
            return replace(self, before=found, after=self.written)
        if self.trace is None:
            return None
        try:
            return self._without_deleted_rows(found, self.trace, table, pending)
        except TableError as error:
            if error.kind != _GONE:
                raise
            # A VACUUM without retention has removed a vector that an old file had when it was read.
            # It is unknown then which rows were deleted since.
            return None

    def _without_deleted_rows(
        self,
        now: tuple[AddFile, ...],
        trace: Trace,
        table: TableRef,
        pending: UncommittedFiles,
    ) -> CompactedBin | None:
        """Return the bin without the rows deleted from the old files since they were read."""
        gone_before = deleted_rows(table, self.read)
        gone_now = deleted_rows(table, now)
        if any(not old <= new for old, new in zip(gone_before, gone_now, strict=True)):
            return None  # deleted rows are live again
        gone = [(old, new - old) for old, new in zip(gone_before, gone_now, strict=True)]
        moved = trace(gone)
        sizes = [num_rows(add.stats) or 0 for add in self.written]
        if moved is None or len(moved) != sum(len(rows) for _, rows in gone):
            return None  # some positions are unknown
        if moved and moved.max() >= sum(sizes):
            return None  # the row counts of the new files are unknown
        starts = [0, *accumulate(sizes)]
        chosen = [
            ChosenRows(add, rows, BitMap64(), size)
            for add, start, size in zip(self.written, starts, sizes, strict=False)
            if (rows := _rows_of_file(moved, start, size))
        ]
        marked = MarkedFiles.write(table, chosen, pending)
        changed = {file.before.path: file.after for file in marked.marked}
        emptied = {add.path for add in marked.emptied}
        after = tuple(changed.get(add.path, add) for add in self.written if add.path not in emptied)
        return replace(self, before=now, after=after)


def live_files(snapshot: Snapshot, bins: Sequence[CompactedBin]) -> Mapping[str, AddFile]:
    """Return the bins' old files that a version has, by their canonical paths."""
    wanted = pa.array([add.path for found in bins for add in found.before], pa.string())
    return {canonical_path(add.path): add for add in add_files(snapshot.files_at(wanted))}


def _same_vector(one: AddFile, other: AddFile) -> bool:
    mine, theirs = one.deletion_vector, other.deletion_vector
    return (mine and mine.unique_id) == (theirs and theirs.unique_id)


def _partition_names(txn: OptimisticTransaction) -> Iterator[tuple[str, str]]:
    """Return each partition column's physical name in the old files and in new files."""
    after = TableMetadata.of(txn.metadata).schema
    for item in txn.snapshot.partition_schema:
        renamed = after.find(item.name)
        yield item.physical_name, (item if renamed is None else renamed).physical_name


def _positions_in_new_files(gone: BitMap64, rows: BitMap64, first: int) -> BitMap64:
    """Return the positions in the new files of an old file's rows, which begin at `first`."""
    positions = np.frombuffer(rows.to_array(), np.uint64)
    before = np.searchsorted(np.frombuffer(gone.to_array(), np.uint64), positions)
    moved = positions - before.astype(np.uint64) + np.uint64(first)
    return BitMap64(array("Q", moved.tobytes()))


def _rows_of_file(rows: BitMap64, start: int, size: int) -> BitMap64:
    """Return the rows that lie in one file, counted from its first row."""
    own = BitMap64()
    own.add_range(start, start + size)
    return (rows & own).shift(-start)
