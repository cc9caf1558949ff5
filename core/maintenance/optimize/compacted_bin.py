"""One bin of an OPTIMIZE: the files that were put together, and what became of them meanwhile.

While the new files were written, another commit may have deleted rows of the old ones by vectors.
Where it is known which row went where, these rows are deleted in the new files as well, so that the
work of the bin is not lost. Without that, or if an old file is gone, the bin is dropped.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Protocol, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
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
from optimist.core.log.file_table import add_files, canonical_path, canonical_paths
from optimist.core.protocol.actions import Action, AddFile
from optimist.core.protocol.table_metadata import TableMetadata
from optimist.core.snapshot import Snapshot
from optimist.core.transaction.optimistic import OptimisticTransaction

__all__ = ["CompactedBin", "GoneRows", "InOrder", "Trace", "live_files"]

_GONE = "DELTA_FILE_NOT_FOUND_DETAILED"

GoneRows: TypeAlias = tuple[BitMap64, BitMap64]
"""Of one old file, the rows that were deleted when it was read, and those deleted since."""


class Trace(Protocol):
    """Tells where rows of the old files are in the new ones."""

    def __call__(self, gone: Sequence[GoneRows]) -> BitMap64 | None:
        """The places of rows, counted through the new files in their order; None if unknown.

        Args:
            gone: For each of the old files.
        """
        ...


@dataclass(frozen=True, slots=True)
class InOrder:
    """Rows that the new files have in the order of the old ones.

    Attributes:
        counts: How many live rows each of the old files had, as they were read.
    """

    counts: tuple[int, ...]

    def __call__(self, gone: Sequence[GoneRows]) -> BitMap64 | None:
        """See `Trace`."""
        moved, first = BitMap64(), 0
        for (before, rows), count in zip(gone, self.counts, strict=True):
            places = _places(before, rows, first)
            first += count
            if places and places.max() >= first:
                return None  # the file has no such row
            moved |= places
        return moved


@dataclass(frozen=True, slots=True)
class CompactedBin:
    """Files that were written together, and the files that have their rows now.

    Attributes:
        read: The old files as they were read, in the order in which their rows were written.
        written: The new files as they were written; none where no row was left.
        before: The old files as the newest version has them.
        after: The new files, with what was deleted meanwhile.
        trace: Finds rows of the old files in the new ones; None if nothing can.
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
        """A bin that was just written.

        Args:
            txn: The transaction, whose metadata name the columns of the new files.
            files: The old files, as rows of `Snapshot.files`.
            written: The new ones.
            trace: See the attribute.
        """
        read, new = add_files(files), written.adds
        values = read[0].partition_values
        if all(add.partition_values == values for add in read):
            # As the log spells them: a time without a zone stays one.
            spelled = {after: values.get(before) for before, after in _partition_names(txn)}
            new = tuple(replace(add, partition_values=spelled) for add in new)
        return cls(read, new, read, new, trace)

    def marked(self, mark: Callable[[AddFile], AddFile]) -> CompactedBin:
        """A bin that was just written, with its new files as `mark` makes them."""
        new = tuple(map(mark, self.written))
        return replace(self, written=new, after=new)

    def actions(self, now_ms: int) -> tuple[Action, ...]:
        """What to commit: no data changes."""
        removes = (replace(add.remove(now_ms), data_change=False) for add in self.before)
        return (*removes, *(replace(add, data_change=False) for add in self.after))

    def followed(
        self, live: Mapping[str, AddFile], table: TableRef, pending: UncommittedFiles
    ) -> CompactedBin | None:
        """The bin, changed for what happened meanwhile; None if it can't be committed.

        Args:
            live: The files of the newest version among all old ones, by their canonical paths.
            table: The table.
            pending: Looks after vectors that are written.

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
            return self._marked(found, self.trace, table, pending)
        except TableError as error:
            if error.kind != _GONE:
                raise
            # VACUUM without retention has removed a vector that the old files had when they were
            # read. Which rows went since can't be told then.
            return None

    def _marked(
        self,
        now: tuple[AddFile, ...],
        trace: Trace,
        table: TableRef,
        pending: UncommittedFiles,
    ) -> CompactedBin | None:
        """The bin, without the rows that were deleted in the old files since they were read."""
        gone_before = deleted_rows(table, self.read)
        gone_now = deleted_rows(table, now)
        if any(not old <= new for old, new in zip(gone_before, gone_now, strict=True)):
            return None  # rows are back
        gone = [(old, new - old) for old, new in zip(gone_before, gone_now, strict=True)]
        moved = trace(gone)
        sizes = [num_rows(add.stats) or 0 for add in self.written]
        if moved is None or len(moved) != sum(len(rows) for _, rows in gone):
            return None  # not all of them are known
        if moved and moved.max() >= sum(sizes):
            return None  # rows of the new files were not counted
        starts = [0, *accumulate(sizes)]
        chosen = [
            ChosenRows(add, rows, BitMap64(), size)
            for add, start, size in zip(self.written, starts, sizes, strict=False)
            if (rows := _within(moved, start, size))
        ]
        marked = MarkedFiles.write(table, chosen, pending)
        changed = {file.before.path: file.after for file in marked.marked}
        emptied = {add.path for add in marked.emptied}
        after = tuple(changed.get(add.path, add) for add in self.written if add.path not in emptied)
        return replace(self, before=now, after=after)


def live_files(snapshot: Snapshot, bins: Sequence[CompactedBin]) -> Mapping[str, AddFile]:
    """Those of the bins' old files that are in a version, by their canonical paths."""
    wanted = {canonical_path(add.path) for found in bins for add in found.before}
    is_wanted = pc.is_in(
        canonical_paths(snapshot.files["path"]), value_set=pa.array(sorted(wanted), pa.string())
    )
    adds = add_files(snapshot.files.filter(is_wanted))
    return {canonical_path(add.path): add for add in adds}


def _same_vector(one: AddFile, other: AddFile) -> bool:
    mine, theirs = one.deletion_vector, other.deletion_vector
    return (mine and mine.unique_id) == (theirs and theirs.unique_id)


def _partition_names(txn: OptimisticTransaction) -> Iterator[tuple[str, str]]:
    """By what name each partition column goes in the files that are there, and in new ones."""
    after = TableMetadata.of(txn.metadata).schema
    for item in txn.snapshot.partition_schema:
        renamed = after.find(item.name)
        yield item.physical_name, (item if renamed is None else renamed).physical_name


def _places(gone: BitMap64, rows: BitMap64, first: int) -> BitMap64:
    """Where rows of an old file stand in the new ones, of which its first row is row `first`."""
    positions = np.frombuffer(rows.to_array(), np.uint64)
    before = np.searchsorted(np.frombuffer(gone.to_array(), np.uint64), positions)
    moved = positions - before.astype(np.uint64) + np.uint64(first)
    return BitMap64(array("Q", moved.tobytes()))


def _within(rows: BitMap64, start: int, size: int) -> BitMap64:
    """Those of the rows in a file that begins at a row, counted from its own first row."""
    own = BitMap64()
    own.add_range(start, start + size)
    return (rows & own).shift(-start)
