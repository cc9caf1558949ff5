"""Rows of the table that a MERGE searches, file by file: as they are read, or from disk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from threading import Lock

import numpy as np
import pyarrow as pa

from optimist.core.local.merge.pieces import RowPieces
from optimist.core.predicates.functions.value import one_array

__all__ = ["StoredTableRows", "TableRows"]


@dataclass(frozen=True, slots=True)
class TableRows:
    """Rows of the table, file by file.

    Attributes:
        files: The log's names for the files, each with the place where its rows end.
        rows: The rows.
        positions: Their positions in their files (int64), in rising order for each file.
    """

    files: Sequence[tuple[str, int]]
    rows: pa.Table
    positions: pa.Array

    def parts(self) -> Iterator[tuple[str, slice]]:
        """Yield each file with the places of its rows."""
        first = 0
        for name, end in self.files:
            yield name, slice(first, end)
            first = end


class StoredTableRows:
    """Rows of the table on disk, each with the number of its file and its position.

    Args:
        num_pieces: How many pieces there are.
    """

    def __init__(self, num_pieces: int) -> None:
        self._rows = RowPieces(num_pieces)
        self._lock = Lock()
        self._names: list[str] = []

    def number_of(self, name: str) -> int:
        """Give the next number to a file; each thread has files of its own."""
        with self._lock:
            self._names.append(name)
            return len(self._names) - 1

    def add(self, number: int, rows: pa.Table, positions: pa.Array, hashes: np.ndarray) -> None:
        """Add rows of a file to the pieces that their hashes tell."""
        numbers = pa.repeat(pa.scalar(number, pa.int32()), rows.num_rows)
        fields = [pa.field("file", pa.int32()), pa.field("position", pa.int64()), *rows.schema]
        columns = [numbers, positions, *rows.columns]
        self._rows.add(pa.table(columns, schema=pa.schema(fields)), hashes)

    def finish(self) -> None:
        """End the writing."""
        self._rows.finish()

    def runs(self, piece: int, max_bytes: int) -> Iterator[TableRows]:
        """Yield the rows of a piece, as many as are searched together."""
        for found in self._rows.read(piece, max_bytes):
            numbers = found.column(0).to_numpy()
            order = np.argsort(numbers, kind="stable")  # the positions keep their order
            ordered = found.combine_chunks().take(pa.array(order))
            files, sizes = np.unique(numbers, return_counts=True)
            names = [self._names[number] for number in files]
            ends = np.cumsum(sizes).tolist()
            rows = ordered.select(range(2, ordered.num_columns))
            yield TableRows(list(zip(names, ends, strict=True)), rows, one_array(ordered.column(1)))

    def close(self) -> None:
        """Remove the rows from the disk."""
        self._rows.close()
