"""The numbers of rows as an Arrow column."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["row_numbers"]


def row_numbers(count: int) -> pa.Array:
    """Return the numbers from 0 up to `count` (exclusive, int64), without a loop in Python."""
    return pc.subtract(pc.cumulative_sum(pa.repeat(pa.scalar(1, pa.int64()), count)), 1)
