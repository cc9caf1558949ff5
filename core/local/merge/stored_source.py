"""The source of a MERGE: a table in memory, or where it is large, rows on this machine's disk.

A MERGE looks at its source more than once, and again where it reruns after a conflict, but a stream
can be read only once.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import TypeAlias
from weakref import finalize

import pyarrow as pa

from optimist.core.data.column_shape import arrow_rows
from optimist.core.data.parquet.spilled_rows import SpilledRows
from optimist.core.local.row_pieces import row_pieces
from optimist.core.protocol.schema_checks import ensure_no_duplicate_columns
from optimist.core.requests.arguments import Rows, arrow_stream
from optimist.core.schema.arrow_types import (
    from_arrow_schema,
    to_arrow_schema,
    with_signed_integers,
)
from optimist.core.schema.types import StructType

__all__ = ["Source", "StoredRows", "batches_of", "source_rows", "stored_source"]

_MEMORY_BYTES = 256 << 20
"""A stream of more bytes is written to disk."""
_BUCKET = 0


class StoredRows:
    """Rows on this machine's disk, which go with the last reference.

    Attributes:
        schema: Their columns, in the plain layouts of a table.
        num_rows: How many there are.
        nbytes: Their size in memory.
    """

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self.num_rows = 0
        self.nbytes = 0
        self._spilled = SpilledRows()
        finalize(self, self._spilled.close)

    @classmethod
    def of(cls, parts: Iterator[pa.Table], schema: StructType) -> StoredRows:
        """Store rows.

        Args:
            parts: The rows.
            schema: Their columns.

        Raises:
            StorageError: The disk is full, or failed.
        """
        stored = cls(to_arrow_schema(schema))
        for part in parts:
            rows = arrow_rows(part, schema)
            stored.num_rows += rows.num_rows
            stored.nbytes += rows.nbytes
            stored._spilled.add({_BUCKET: [rows]})
        stored._spilled.finish()
        return stored

    def parts(self) -> Iterator[pa.Table]:
        """Yield the rows in the parts in which they came, as often as it is asked for."""
        return self._spilled.read(_BUCKET, 1)


Source: TypeAlias = "pa.Table | StoredRows"


def batches_of(source: Source) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a source."""
    parts = (source,) if isinstance(source, pa.Table) else source.parts()
    return chain.from_iterable(part.to_batches() for part in parts)


def source_rows(rows: Rows, argument: str) -> Source:
    """Return a caller's rows as a source; see `stored_source` for streams.

    Args:
        rows: The rows.
        argument: What the caller calls them, for the error.

    Raises:
        ArgumentTypeError: They are no rows.
        SchemaError: The stream is large, and a table can't have its columns.
        StorageError: The disk is full, or failed.
        UsageError: The stream failed.
    """
    return rows if isinstance(rows, pa.Table) else stored_source(arrow_stream(rows, argument))


def stored_source(reader: pa.RecordBatchReader) -> Source:
    """Return the rows of a stream as a source, on disk where they are many.

    Raises:
        SchemaError: There are many rows, and a table can't have these columns.
        StorageError: The disk is full, or failed.
        UsageError: The stream failed.
    """
    first: list[pa.Table] = []
    num_bytes, pieces = 0, row_pieces(reader)
    for piece in pieces:
        first.append(piece)
        num_bytes += piece.nbytes
        if num_bytes > _MEMORY_BYTES:
            schema = from_arrow_schema(with_signed_integers(reader.schema))
            where = "the source"
            ensure_no_duplicate_columns(
                schema, kind="DELTA_DUPLICATE_COLUMNS_FOUND.DATA", where=where
            )
            return StoredRows.of(chain(_taken(first), pieces), schema)
    return pa.concat_tables(first)


def _taken(parts: list[pa.Table]) -> Iterator[pa.Table]:
    """Yield the parts, and keep none of them."""
    while parts:
        yield parts.pop(0)
