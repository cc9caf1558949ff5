"""Numbers of identity columns for rows in this process (spec 10.7)."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.schema.identity_columns import (
    ensure_none_inserted,
    identity_columns,
    identity_overflow,
)
from optimist.core.schema.types import StructType

__all__ = ["with_identity_numbers"]


def with_identity_numbers(
    rows: pa.Table, schema: StructType, given: Iterable[str], *, num_before: int = 0
) -> tuple[pa.Table, tuple[str, ...]]:
    """Return new rows with the numbers of the identity columns that they lack.

    Args:
        rows: The rows, with exactly the table's columns.
        schema: The table's schema, with the current high-water marks.
        given: The columns that the rows bring, in any case.
        num_before: How many rows of the same write got numbers before these.

    Returns:
        The rows, and the columns whose numbers the engine gave out.

    Raises:
        UsageError: The rows bring numbers that they may not bring (see `ensure_none_inserted`).
        SchemaError: The column has too few numbers left (kind
            `OPTIMIST_IDENTITY_COLUMN_EXHAUSTED`).
    """
    names = {name.lower() for name in given}
    ensure_none_inserted(schema, names)
    missing = [item for item in identity_columns(schema) if item.name.lower() not in names]
    for column in missing if rows.num_rows else ():
        if num_before + rows.num_rows > column.num_left:
            raise identity_overflow(column.name)
        first = pa.array([column.first + num_before * column.step], pa.int64())
        steps = pa.repeat(pa.scalar(column.step, pa.int64()), rows.num_rows - 1)
        numbers = pc.cumulative_sum(pa.concat_arrays([first, steps]))
        number = rows.column_names.index(column.name)
        rows = rows.set_column(number, rows.schema.field(number), pa.chunked_array([numbers]))
    return rows, tuple(column.name for column in missing)
