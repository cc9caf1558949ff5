"""A stream of rows in pieces of a size that is worth a step, whatever its batches are."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from optimist.core.errors import UsageError
from optimist.core.errors.foreign_text import shown

__all__ = ["row_pieces"]

_ROWS = 1 << 17
_BYTES = 16 << 20


def row_pieces(stream: pa.RecordBatchReader) -> Iterator[pa.Table]:
    """Yield the rows as tables of a bounded size, at least one, which may be empty.

    Small batches are put together, and large ones are cut.
    """
    waiting: list[pa.RecordBatch] = []
    num_rows = num_bytes = num_pieces = 0
    for part in _cut_batches(stream):
        waiting.append(part)
        num_rows, num_bytes = num_rows + part.num_rows, num_bytes + part.nbytes
        if num_rows >= _ROWS or num_bytes >= _BYTES:
            yield pa.Table.from_batches(waiting, schema=stream.schema)
            waiting, num_rows, num_bytes = [], 0, 0
            num_pieces += 1
    if waiting or not num_pieces:
        yield pa.Table.from_batches(waiting, schema=stream.schema)


def _cut_batches(stream: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    for batch in _read_batches(stream):
        if not batch.num_rows:
            continue
        bytes_per_row = batch.nbytes // batch.num_rows + 1
        step = max(1, min(_ROWS, _BYTES // bytes_per_row))
        for start in range(0, batch.num_rows, step):
            yield batch.slice(start, step)


def _read_batches(stream: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    try:
        for batch in stream:
            yield batch if batch.schema == stream.schema else _as_in_stream(batch, stream.schema)
    except pa.ArrowException as error:
        raise UsageError(
            f"The stream of rows failed: {shown(error)}. Nothing was committed. Correct the source "
            "of the rows, and write them again.",
            kind="OPTIMIST_INVALID_ARGUMENT",
            argument="data",
        ) from error


def _as_in_stream(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return a batch that allows other nulls than the stream; checks of the rows see them."""
    if (batch.schema.names, batch.schema.types) != (schema.names, schema.types):
        raise pa.ArrowInvalid("a batch has other columns than the stream")
    return pa.RecordBatch.from_arrays(batch.columns, schema=schema)
