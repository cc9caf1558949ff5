"""`FoundRows`: what the search of a MERGE has found, as sets of positions and values on disk."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from threading import Lock

import numpy as np
import pyarrow as pa
from pyroaring import BitMap64

from optimist.core.commands.merge.clauses import several_matches
from optimist.core.local.merge.pieces import SourcePieces
from optimist.core.local.merge.source_rows import SourceRows
from optimist.core.local.merge.update_values import UpdateValues
from optimist.core.local.target import positions_of

__all__ = ["FileRows", "FoundRows"]


@dataclass(frozen=True, slots=True)
class FileRows:
    """What becomes of the rows of one file.

    Attributes:
        by_clause: The positions of the rows that change, by the numbers of their clauses.
        matched: The positions of the rows that match.
    """

    by_clause: Mapping[int, BitMap64] = field(default_factory=dict)
    matched: BitMap64 = field(default_factory=BitMap64)

    @classmethod
    def of(
        cls, positions: pa.Array, clauses: np.ndarray, is_matched: np.ndarray | None
    ) -> FileRows:
        """Sort rows by what becomes of them.

        Args:
            positions: Their positions (int64).
            clauses: The number of each row's clause, -1 for none.
            is_matched: Whether each row matches; None where that does not matter.
        """

        def chosen(mask: np.ndarray) -> BitMap64:
            return positions_of(positions.filter(pa.array(mask)))

        numbers = np.unique(clauses[clauses >= 0]).tolist()
        by_clause = {number: chosen(clauses == number) for number in numbers}
        return cls(by_clause, BitMap64() if is_matched is None else chosen(is_matched))

    @property
    def changed(self) -> BitMap64:
        """The positions of the rows that change."""
        return BitMap64().union(*self.by_clause.values())

    def joined(self, other: FileRows, *, takes_several: bool) -> FileRows:
        """Return what other rows of the file, or other rows of the source, add.

        Raises:
            UsageError: Both change a row, and it matters.
        """
        if not takes_several and not self.changed.isdisjoint(other.changed):
            raise several_matches()
        clauses = {*self.by_clause, *other.by_clause}
        none = BitMap64()
        joined = {
            number: self.by_clause.get(number, none) | other.by_clause.get(number, none)
            for number in clauses
        }
        return FileRows(joined, self.matched | other.matched)


class FoundRows:
    """The rows that match and change. Several threads may add rows. End it with `close`.

    Args:
        source: The rows of the source, in the blocks in which they are searched.
        takes_several: Whether several rows of the source may change one of the table.

    Attributes:
        source: The same.
        values: What the source's rows give to those that they update.
        num_unmatched: How many rows of the source match none.
    """

    def __init__(self, source: SourceRows | SourcePieces, *, takes_several: bool) -> None:
        self.source = source
        self.values = UpdateValues()
        self.num_unmatched = 0
        self._takes_several = takes_several
        self._lock = Lock()
        self._files: dict[str, FileRows] = {}
        self._unmatched: list[np.ndarray] = []

    def file(self, name: str) -> FileRows:
        """Return what becomes of the rows of a file, by the log's name for it."""
        return self._files.get(name, _NOTHING)

    @property
    def names(self) -> list[str]:
        """The log's names for the files with rows that match or change."""
        return list(self._files)

    def add(self, name: str, rows: FileRows) -> None:
        """Add rows of a file.

        Raises:
            UsageError: Several rows of the source change one of the table, and it matters.
        """
        if rows.by_clause or rows.matched:
            with self._lock:
                known = self.file(name)
                self._files[name] = known.joined(rows, takes_several=self._takes_several)

    def end_block(self, is_matched: np.ndarray) -> None:
        """Note which rows of a block match, after all rows of the table that can match them."""
        self._unmatched.append(np.packbits(~is_matched))
        self.num_unmatched += int(np.count_nonzero(~is_matched))

    def unmatched_rows(self) -> Iterator[pa.Table]:
        """Yield the rows of the source without a match, block by block."""
        if not self.num_unmatched:
            return
        for bits, rows in zip(self._unmatched, self.source.blocks(), strict=True):
            mask = np.unpackbits(bits, count=rows.num_rows).view(np.bool_)
            if mask.any():
                yield rows.filter(pa.array(mask))

    def num_by_clause(self) -> Counter[int]:
        """Return how many rows get each clause, by its number."""
        counts: Counter[int] = Counter()
        for item in self._files.values():
            counts.update({number: len(rows) for number, rows in item.by_clause.items()})
        return counts

    def close(self) -> None:
        """Free what is stored."""
        self.values.close()


_NOTHING = FileRows()
