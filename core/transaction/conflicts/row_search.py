"""Where rows stand after a commit that only rearranged them (spec 2.12).

Where the table tracks rows, they are found by their ids. Elsewhere they are found by their order: a
file whose rows stand one after the other in a new file is looked for there. A position is taken for
a row's new one only if the row there has the same values in all columns. Equal rows can stand for
one another, so this is exact even if the order has changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from optimist.core.data.statistics.stats_text import num_rows
from optimist.core.data.table_ref import TableRef
from optimist.core.errors import OptimistError
from optimist.core.log.file_table import files_table
from optimist.core.protocol.actions import AddFile
from optimist.core.snapshot import Snapshot
from optimist.core.snapshot.local_scan import to_arrow

__all__ = ["FoundRows", "RowSearch", "RowsToFind"]

_TRACKED = ("_metadata.row_id", "_metadata.row_commit_version")
_ID_BYTES = 16
"""What an id and a version take in memory."""
_MOST_TRIED = 64
"""At how many positions of a new file the rows of an old one are looked for."""
_TOO_LARGE = "reading their ids or values to find them would pass conflict.readFiles or readBytes"

_Numbers: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"


@dataclass(frozen=True, slots=True)
class RowsToFind:
    """Rows of a file that is gone.

    Attributes:
        file: The file as it was last.
        deleted: The rows that its vector deleted.
        rows: The positions of the rows, in order; none of them deleted.
    """

    file: AddFile
    deleted: BitMap64
    rows: BitMap64

    @property
    def positions(self) -> _Numbers:
        """`rows` as numbers."""
        return _as_numbers(self.rows)


@dataclass(frozen=True, slots=True)
class FoundRows:
    """Where the wanted rows of one file stand now.

    Attributes:
        files: For each row, in order, the index of its file among the new ones.
        positions: For each row its position there.
    """

    files: _Numbers
    positions: _Numbers


@dataclass(frozen=True, slots=True)
class RowSearch:
    """Looks for rows in the files that replaced theirs.

    Attributes:
        table: The table; its options say how much may be read.
        snapshot: A version with the schema of the files.
    """

    table: TableRef
    snapshot: Snapshot

    def find(
        self, wanted: Sequence[RowsToFind], adds: Sequence[AddFile]
    ) -> Sequence[FoundRows] | str:
        """Find the rows in the new files, which have no vectors, or say why that can't be told."""
        if any(add.deletion_vector for add in adds):
            return "its new files have deletion vectors"
        try:
            if self.snapshot.has_active("rowTracking"):
                return self._by_id(wanted, adds)
            return self._by_order(wanted, adds)
        except OptimistError as error:
            return f"the files can't be read ({error.kind})"

    def _may_read(self, adds: Sequence[AddFile], num_bytes: int | None) -> bool:
        options = self.table.options
        is_small = num_bytes is not None and num_bytes <= options.conflict_read_bytes
        return is_small and len(adds) <= options.conflict_read_files

    def _read_rows(self, file: AddFile, columns: Sequence[str] | None = None) -> pa.Table:
        view = self.snapshot.with_other_files(self.snapshot.metadata, files_table([file]))
        return to_arrow(view, None, columns, access=self.table.data_access())

    # By their ids

    def _by_id(
        self, wanted: Sequence[RowsToFind], adds: Sequence[AddFile]
    ) -> Sequence[FoundRows] | str:
        counts = [num_rows(item.stats) for item in (*adds, *(item.file for item in wanted))]
        num_bytes = None if None in counts else _ID_BYTES * sum(filter(None, counts))
        if not self._may_read(adds, num_bytes):
            return _TOO_LARGE
        new = [self._read_ids(add) for add in adds]
        if any(rows is None for rows in new):
            return "its new files hold rows without ids"
        ids = _Ids.from_rows([rows for rows in new if rows is not None])
        found = []
        for item in wanted:
            old = self._read_ids(replace(item.file, deletion_vector=None))
            rows = None if old is None else ids.find(old[item.positions])
            if rows is None:
                return "it gave rows other ids, or changed them"
            found.append(rows)
        return found

    def _read_ids(self, file: AddFile) -> _Numbers | None:
        """Read the ids and versions of all rows of a file, or return None if one has none."""
        read = self._read_rows(file, _TRACKED)
        if any(column.null_count for column in read.columns):
            return None
        found: _Numbers = np.column_stack([column.to_numpy() for column in read.columns])
        return found

    # By their order

    def _by_order(
        self, wanted: Sequence[RowsToFind], adds: Sequence[AddFile]
    ) -> Sequence[FoundRows] | str:
        num_bytes = sum(item.size for item in (*adds, *(item.file for item in wanted)))
        if not self._may_read(adds, num_bytes):
            return _TOO_LARGE
        new = [_Block(self._read_rows(add)) for add in adds]
        found = []
        for item in wanted:
            ranks = item.positions - np.searchsorted(_as_numbers(item.deleted), item.positions)
            old = self._read_rows(item.file)
            rows = _find_in_order(old, ranks, new)
            if rows is None:
                return "the table does not track rows, and they stand in another order"
            found.append(rows)
        return found


@dataclass(frozen=True, slots=True)
class _Ids:
    """The ids of the rows of new files, in order, with their versions and positions."""

    ids: _Numbers
    versions: _Numbers
    files: _Numbers
    positions: _Numbers

    @classmethod
    def from_rows(cls, tracked: Sequence[_Numbers]) -> _Ids:
        rows = np.concatenate(tracked)
        files = np.repeat(np.arange(len(tracked)), [len(item) for item in tracked])
        positions = np.concatenate([np.arange(len(item)) for item in tracked])
        order = np.argsort(rows[:, 0], kind="stable")
        return cls(rows[order, 0], rows[order, 1], files[order], positions[order])

    def find(self, rows: _Numbers) -> FoundRows | None:
        """Find rows with these ids and versions, or return None if one is not there just once."""
        first = np.searchsorted(self.ids, rows[:, 0], side="left")
        after = np.searchsorted(self.ids, rows[:, 0], side="right")
        if not np.all(after - first == 1) or not np.array_equal(self.versions[first], rows[:, 1]):
            return None
        return FoundRows(self.files[first], self.positions[first])


class _Block:
    """The rows of a new file, and which of them are taken as new positions of rows."""

    def __init__(self, rows: pa.Table) -> None:
        self.rows = rows
        self._taken = BitMap64()

    def positions_of(self, old: pa.Table, ranks: _Numbers) -> _Numbers | None:
        """Return the positions of some rows of a file, if all of its rows stand here in order."""
        wanted = old.take(ranks)
        last = self.rows.num_rows - old.num_rows
        starts = _possible_positions(wanted.slice(0, 1), self.rows) - ranks[0]
        for start in starts[(starts >= 0) & (starts <= last)][:_MOST_TRIED].tolist():
            positions: _Numbers = start + ranks
            here = BitMap64(positions.tolist())
            if here.isdisjoint(self._taken) and _are_alike(wanted, self.rows.take(positions)):
                self._taken |= here
                return positions
        return None


def _find_in_order(old: pa.Table, ranks: _Numbers, new: Sequence[_Block]) -> FoundRows | None:
    if not len(ranks):  # a file of which no row is left, or none is wanted
        return FoundRows(ranks, ranks)
    for number, block in enumerate(new):
        positions = block.positions_of(old, ranks)
        if positions is not None:
            return FoundRows(np.full(len(ranks), number), positions)
    return None


def _possible_positions(row: pa.Table, rows: pa.Table) -> _Numbers:
    """Find where a row may stand, by its columns that are compared by their bits."""
    mask = pa.repeat(True, rows.num_rows)
    for name, column in zip(row.column_names, row.columns, strict=True):
        value, others = column[0], rows[name]
        if not value.is_valid:
            mask = pc.and_(mask, others.is_null())
        elif not pa.types.is_nested(column.type) and not pa.types.is_floating(column.type):
            mask = pc.and_(mask, pc.fill_null(pc.equal(others, value), False))
    positions: _Numbers = np.flatnonzero(mask)
    return positions


def _are_alike(one: pa.Table, other: pa.Table) -> bool:
    """Return whether rows have the same values. NaN is NaN, and -0.0 is not 0.0."""
    return all(map(_columns_are_alike, one.columns, other.columns))


def _columns_are_alike(one: pa.ChunkedArray, other: pa.ChunkedArray) -> bool:
    kind = str(one.type)
    if "float" not in kind and "double" not in kind:
        return bool(one.equals(other))
    try:
        return repr(one.to_pylist()) == repr(other.to_pylist())
    except (ValueError, OverflowError):  # beside the number stands a day that Python has not
        return False


def _as_numbers(rows: BitMap64) -> _Numbers:
    return np.asarray(rows.to_array(), dtype=np.int64)
