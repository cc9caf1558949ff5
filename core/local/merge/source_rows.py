"""`SourceRows`: the rows of a MERGE's source, found by their numbers."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import cached_property

import numpy as np
import pyarrow as pa

__all__ = ["SourceRows"]

_BLOCK_ROWS = 4_000_000
"""At most so many rows have their keys in memory at a time."""


class SourceRows:
    """Rows in memory, or in files that are mapped into memory.

    Rows are taken batch by batch, because Arrow would join the batches of a column for it.

    Args:
        rows: The rows.
    """

    def __init__(self, rows: pa.Table) -> None:
        self.table = rows
        self.num_rows = int(rows.num_rows)

    @cached_property
    def _batches(self) -> list[pa.RecordBatch]:
        return [batch for batch in self.table.to_batches() if batch.num_rows]

    @cached_property
    def _ends(self) -> np.ndarray:
        return np.cumsum([batch.num_rows for batch in self._batches], dtype=np.int64)

    @property
    def num_blocks(self) -> int:
        """How many blocks there are."""
        return max(1, -(-self.num_rows // _BLOCK_ROWS))

    def blocks(self) -> Iterator[tuple[int, pa.Table]]:
        """Yield the rows in blocks, each with the number of its first row; at least one block."""
        for first in range(0, max(self.num_rows, 1), _BLOCK_ROWS):
            yield first, self.table.slice(first, _BLOCK_ROWS)

    def take(self, numbers: np.ndarray, columns: Collection[str] | None = None) -> pa.Table:
        """Return rows by their numbers, in this order.

        Args:
            numbers: The numbers.
            columns: The wanted columns; None for all.
        """
        names = [name for name in self.table.column_names if columns is None or name in columns]
        if not names:  # a table of no columns can't be made of batches
            return _rows(len(numbers))
        order = np.argsort(numbers, kind="stable")
        ordered = numbers[order]
        parts = [self.table.schema.empty_table().select(names)]
        bounds = np.searchsorted(ordered, self._ends)
        first = 0
        for at in np.flatnonzero(np.diff(bounds, prepend=0)):
            start = self._ends[at] - self._batches[at].num_rows
            inside = pa.array(ordered[first : bounds[at]] - start)
            parts.append(pa.Table.from_batches([self._batches[at].select(names).take(inside)]))
            first = bounds[at]
        found = pa.concat_tables(parts).combine_chunks()
        if len(order) < 2 or (order[1:] > order[:-1]).all():
            return found
        back = np.empty_like(order)
        back[order] = np.arange(len(order))
        return found.take(pa.array(back))


def _rows(count: int) -> pa.Table:
    """Return rows without columns."""
    return pa.table([pa.nulls(count)], names=["none"]).select([])
