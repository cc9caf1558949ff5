"""One bin of an OPTIMIZE: the files that were put together, and what became of them meanwhile.

While the new files were written, another commit may have deleted rows of the old ones by vectors.
Where it is known which row went where, these rows are deleted in the new files as well, so that the
work of the bin is not lost. Without that, or if an old file is gone, the bin is dropped.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

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
from optimist.core.data.stats_text import num_rows
from optimist.core.data.table_ref import TableRef
from optimist.core.log.file_table import add_files, canonical_path, canonical_paths
from optimist.core.protocol.actions import Action, AddFile
from optimist.core.snapshot import Snapshot

__all__ = ["CompactedBin", "live_files"]


@dataclass(frozen=True, slots=True)
class CompactedBin:
    """Files that were written together, and the files that have their rows now.

    Attributes:
        read: The old files as they were read, in the order in which their rows were written.
        written: The new files as they were written; none where no row was left.
        before: The old files as the newest version has them.
        after: The new files, with what was deleted meanwhile.
        counts: How many live rows each of the old files had, as they were read, if the new files
            have them in their order; None if not.
    """

    read: tuple[AddFile, ...]
    written: tuple[AddFile, ...]
    before: tuple[AddFile, ...]
    after: tuple[AddFile, ...]
    counts: tuple[int, ...] | None

    @classmethod
    def of(
        cls, files: pa.Table, written: WrittenFiles, counts: tuple[int, ...] | None
    ) -> CompactedBin:
        """A bin that was just written.

        Args:
            files: The old files, as rows of `Snapshot.files`.
            written: The new ones.
            counts: See the attribute.
        """
        read, new = add_files(files), written.adds
        values = read[0].partition_values
        if all(add.partition_values == values for add in read):
            # As the log spells them: a time without a zone stays one.
            new = tuple(replace(add, partition_values=values) for add in new)
        return cls(read, new, read, new, counts)

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
            TableError: A vector is gone or damaged.
            StorageError: A vector can't be written.
        """
        now = [live.get(canonical_path(add.path)) for add in self.read]
        found = tuple(add for add in now if add is not None)
        if len(found) < len(self.read):
            return None
        if all(_same_vector(old, new) for old, new in zip(self.read, found, strict=True)):
            return replace(self, before=found, after=self.written)
        return None if self.counts is None else self._marked(found, self.counts, table, pending)

    def _marked(
        self,
        now: tuple[AddFile, ...],
        counts: tuple[int, ...],
        table: TableRef,
        pending: UncommittedFiles,
    ) -> CompactedBin | None:
        """The bin, without the rows that were deleted in the old files since they were read."""
        gone_before = deleted_rows(table, self.read)
        gone_now = deleted_rows(table, now)
        if any(not old <= new for old, new in zip(gone_before, gone_now, strict=True)):
            return None  # rows are back
        moved = BitMap64()
        first = 0
        for old, new, count in zip(gone_before, gone_now, counts, strict=True):
            places = _places(old, new - old, first)
            first += count
            if places and places.max() >= first:
                return None  # the file has no such row
            moved |= places
        sizes = [num_rows(add.stats) or 0 for add in self.written]
        if first != sum(sizes):
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
