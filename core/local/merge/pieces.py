"""Rows of a MERGE in pieces: rows of the two sides that match are in pieces of the same number.

A source that is larger than a block is split by a hash of its keys, and so are the rows of the
table that can match. Both wait on this machine's disk, and each piece is searched alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Lock

import numpy as np
import pyarrow as pa

from optimist.core.data.parquet.spilled_rows import SpilledRows
from optimist.core.local.merge.key_hashes import key_hashes
from optimist.core.local.merge.keys import ColumnKey
from optimist.core.local.merge.source_rows import SourceRows, in_blocks
from optimist.core.schema.arrow_types import to_arrow_schema

__all__ = ["RowPieces", "SourcePieces"]

_MOST_PIECES = 64


class RowPieces:
    """Rows that wait on disk, in pieces. Several threads may add rows. End it with `close`.

    Args:
        num_pieces: How many pieces there are.
    """

    def __init__(self, num_pieces: int) -> None:
        self.num_pieces = num_pieces
        self._lock = Lock()
        self._spilled = SpilledRows()
        self._filled: frozenset[int] = frozenset()

    def add(self, rows: pa.Table, hashes: np.ndarray) -> None:
        """Add rows to the pieces that their hashes tell.

        Raises:
            StorageError: The disk is full, or failed.
        """
        numbers = (hashes % np.uint64(self.num_pieces)).astype(np.int64)
        ordered = rows.combine_chunks().take(pa.array(np.argsort(numbers, kind="stable")))
        sizes = np.bincount(numbers, minlength=self.num_pieces)
        starts = np.cumsum(sizes) - sizes
        parts = {
            int(number): [ordered.slice(starts[number], sizes[number])]
            for number in np.flatnonzero(sizes)
        }
        with self._lock:
            self._spilled.add(parts)

    def finish(self) -> None:
        """End the writing.

        Raises:
            StorageError: The disk is full, or failed.
        """
        self._filled = frozenset(self._spilled.finish())

    def read(self, number: int, max_bytes: int) -> Iterator[pa.Table]:
        """Yield the rows of a piece in tables of about a size, after `finish`."""
        return self._spilled.read(number, max_bytes) if number in self._filled else iter(())

    def close(self) -> None:
        """Remove the rows from the disk."""
        self._spilled.close()


class SourcePieces:
    """The rows of a source in pieces, which are on disk until the context of `of` ends.

    Attributes:
        num_pieces: How many pieces there are.
    """

    def __init__(self, num_pieces: int, empty: pa.Table) -> None:
        self.num_pieces = num_pieces
        self._rows = RowPieces(num_pieces)
        self._empty = empty

    @classmethod
    @contextmanager
    def of(cls, source: SourceRows, keys: Sequence[ColumnKey]) -> Iterator[SourcePieces]:
        """Split a source by its keys; some of the pieces may be larger than a block.

        Raises:
            StorageError: The disk is full, or failed.
        """
        wanted = source.num_blocks
        empty = to_arrow_schema(source.schema).empty_table()
        pieces = cls(min(_MOST_PIECES, wanted + wanted // 4 + 1), empty)
        try:
            for rows in source.blocks():
                columns = [key.of_source(rows) for key in keys]
                pieces._rows.add(rows, key_hashes(columns, rows.num_rows))
            pieces._rows.finish()
            yield pieces
        finally:
            pieces._rows.close()

    def blocks(self) -> Iterator[pa.Table]:
        """Yield the rows piece by piece in blocks, the same each time."""
        for number in range(self.num_pieces):
            yield from self.blocks_of(number)

    def blocks_of(self, number: int) -> Iterator[pa.Table]:
        """Yield the rows of a piece in blocks; at least one, which may be empty."""
        blocks = in_blocks(self._rows.read(number, 1))
        yield next(blocks, self._empty)
        yield from blocks
