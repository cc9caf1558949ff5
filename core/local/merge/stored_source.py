"""The source of a MERGE as a table: in memory where it is small, else in a file on disk.

A MERGE looks at its source more than once, and again where it reruns after a conflict, but a stream
can be read only once. The file is uncompressed Arrow IPC without a name, and is mapped into memory:
the system loads the parts that are used, drops them where memory is short, and removes the file
with the last reference, also after a crash.
"""

from __future__ import annotations

import mmap
import tempfile
from collections.abc import Iterator
from itertools import chain

import pyarrow as pa

from optimist.core.data.column_shape import arrow_rows
from optimist.core.protocol.schema_checks import ensure_no_duplicate_columns
from optimist.core.requests.arguments import Rows, arrow_table
from optimist.core.schema.arrow_types import from_arrow_schema
from optimist.core.schema.types import StructType

__all__ = ["source_table", "stored_source"]

_MEMORY_BYTES = 256 << 20
"""A stream of more bytes is written to disk."""


def source_table(rows: Rows, argument: str) -> pa.Table:
    """Return a caller's rows as a table; see `stored_source` for streams.

    Args:
        rows: The rows.
        argument: What the caller calls them, for the error.

    Raises:
        ArgumentTypeError: They are no rows.
        SchemaError: The stream is large, and a table can't have its columns.
    """
    is_stream = not isinstance(rows, (pa.Table, pa.RecordBatch))
    if is_stream and hasattr(rows, "__arrow_c_stream__"):
        return stored_source(pa.RecordBatchReader.from_stream(rows))
    return arrow_table(rows, argument)


def stored_source(reader: pa.RecordBatchReader) -> pa.Table:
    """Return the rows of a stream as a table, which is in a file where they are many.

    Raises:
        SchemaError: There are many rows, and a table can't have these columns.
    """
    first, num_bytes = [], 0
    for batch in reader:
        first.append(batch)
        num_bytes += batch.nbytes
        if num_bytes > _MEMORY_BYTES:
            schema = from_arrow_schema(reader.schema)
            where = "the source"
            ensure_no_duplicate_columns(
                schema, kind="DELTA_DUPLICATE_COLUMNS_FOUND.DATA", where=where
            )
            return _spilled(chain(_taken(first), reader), schema)
    return pa.Table.from_batches(first, schema=reader.schema)


def _taken(batches: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the batches, and keep none of them."""
    while batches:
        yield batches.pop(0)


def _spilled(batches: Iterator[pa.RecordBatch], schema: StructType) -> pa.Table:
    """Write the batches to a file, in the plain layouts of a table, and map it into memory."""
    with tempfile.TemporaryFile(prefix="optimist-") as file:
        empty = arrow_rows(pa.table([]), schema)
        with pa.PythonFile(file, mode="w") as sink, pa.ipc.new_file(sink, empty.schema) as writer:
            for batch in batches:
                writer.write_table(arrow_rows(pa.Table.from_batches([batch]), schema))
            writer.close()
            file.flush()
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    return pa.ipc.open_file(pa.py_buffer(mapped)).read_all()
