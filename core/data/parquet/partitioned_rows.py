"""The rows of each partition among given rows (spec 10.2)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.data.partition_values import serialize_partition_values, value_for_text
from optimist.core.schema.types import StructType

__all__ = ["copied_parts", "rows_by_partition", "without_empty_text"]


def rows_by_partition(
    rows: pa.RecordBatch, fields: StructType
) -> Iterator[tuple[Mapping[str, str | None], pa.Array | None]]:
    """Yield each partition that occurs, and which rows are in it.

    Args:
        rows: The rows.
        fields: The partition columns, at least one.

    Yields:
        The partition's values by physical name, and the numbers of its rows in their order; None
        for all rows.
    """
    if not rows.num_rows:
        return
    columns = [without_empty_text(rows[field.name]) for field in fields]
    codes = _codes_of(columns)
    order = pc.array_sort_indices(codes)  # stable, so rows stay in their order
    ends = np.cumsum(np.bincount(codes.to_numpy()))
    for start, end in pairwise((0, *ends.tolist())):
        numbers = order.slice(start, end - start)
        first = numbers[0].as_py()
        row = {
            field.name: value_for_text(column[first])
            for field, column in zip(fields, columns, strict=True)
        }
        values = serialize_partition_values(row, fields)
        yield values, None if len(numbers) == rows.num_rows else numbers


def copied_parts(rows: pa.RecordBatch, numbers: Sequence[pa.Array]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of each partition, in memory of their own.

    To sort all rows once and to copy each part takes half as long as to gather part by part.

    Args:
        rows: The rows.
        numbers: The numbers of each partition's rows.
    """
    ordered = rows.take(pa.concat_arrays(numbers))
    start = 0
    for each in numbers:
        yield pa.concat_batches([ordered.slice(start, len(each))])
        start += len(each)


def without_empty_text(column: pa.ChunkedArray | pa.Array) -> pa.ChunkedArray | pa.Array:
    """Return a partition column's values as in the log: an empty text is null."""
    if not pa.types.is_string(column.type):
        return column
    return pc.if_else(pc.equal(column, ""), pa.scalar(None, pa.string()), column)


def _codes_of(columns: list[pa.Array]) -> pa.Array:
    """Return each row's number of its combination of values, from 0 on without gaps."""
    codes, *more = (_numbers_of(column) for column in columns)
    for numbers in more:
        # A number has 31 bits, so that both fit into one of 64.
        pairs = pc.add(
            pc.multiply(codes.cast(pa.int64()), pa.scalar(1 << 31, pa.int64())),
            numbers.cast(pa.int64()),
        )
        codes = _numbers_of(pairs)
    return codes


def _numbers_of(values: pa.Array) -> pa.Array:
    return values.dictionary_encode(null_encoding="encode").indices
