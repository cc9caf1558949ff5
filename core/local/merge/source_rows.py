"""`SourceRows`: the rows of a MERGE's source, in blocks of a bounded size."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from optimist.core.data.column_shape import arrow_rows
from optimist.core.local.merge.stored_source import Source
from optimist.core.schema.types import StructType

__all__ = ["SourceRows", "in_blocks", "take_rows"]

_BLOCK_ROWS = 1 << 20
_BLOCK_BYTES = 64 << 20
"""A block has about so many rows or bytes, and all of them are in memory at a time."""


@dataclass(frozen=True, slots=True)
class SourceRows:
    """Rows in memory or on disk.

    Attributes:
        rows: The rows.
        schema: Their columns, in types of a table.
    """

    rows: Source
    schema: StructType

    @classmethod
    def of(cls, rows: Source, schema: StructType) -> SourceRows:
        """Return rows of a caller, with values that fit the types.

        Raises:
            SchemaError: A value does not fit.
        """
        return cls(arrow_rows(rows, schema) if isinstance(rows, pa.Table) else rows, schema)

    @property
    def num_rows(self) -> int:
        """How many rows there are."""
        return int(self.rows.num_rows)

    @property
    def num_blocks(self) -> int:
        """About how many blocks there are; one only if there is one."""
        by_rows, by_bytes = self.num_rows / _BLOCK_ROWS, self.rows.nbytes / _BLOCK_BYTES
        return int(max(by_rows, by_bytes)) + 1

    def blocks(self) -> Iterator[pa.Table]:
        """Yield the rows in blocks, the same each time; at least one, which may be empty."""
        if isinstance(self.rows, pa.Table):
            size = max(1, self.rows.nbytes // max(1, self.num_rows))
            step = max(1, min(_BLOCK_ROWS, _BLOCK_BYTES // size))
            for first in range(0, max(self.num_rows, 1), step):
                yield self.rows.slice(first, step)
        else:
            parts = self.rows.parts()
            yield from in_blocks(arrow_rows(part, self.schema) for part in parts)


def in_blocks(parts: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Yield rows in blocks: some of the parts together, as far as they are small."""
    waiting: list[pa.Table] = []
    num_rows = num_bytes = 0
    for part in parts:
        waiting.append(part)
        num_rows, num_bytes = num_rows + part.num_rows, num_bytes + part.nbytes
        if num_rows >= _BLOCK_ROWS or num_bytes >= _BLOCK_BYTES:
            yield pa.concat_tables(waiting)
            waiting, num_rows, num_bytes = [], 0, 0
    if waiting:
        yield pa.concat_tables(waiting)


def take_rows(rows: pa.Table, numbers: np.ndarray, columns: Collection[str]) -> pa.Table:
    """Return rows by their numbers, in this order.

    Args:
        rows: The rows, which should be in one batch.
        numbers: The numbers.
        columns: The wanted columns.
    """
    names = [name for name in rows.column_names if name in columns]
    if not names:  # a table of no columns forgets how many rows it has
        return pa.table([pa.nulls(len(numbers))], names=["none"]).select([])
    return rows.select(names).take(pa.array(numbers))
