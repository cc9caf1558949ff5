"""Sums of columns of whole numbers that never wrap around.

Arrow adds in 64 bits and wraps around silently. Anyone may have written the numbers, so the sum of
large positive ones could become negative.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["exact_sum"]

_HALF = 32


def exact_sum(column: pa.Array | pa.ChunkedArray) -> int:
    """Return the exact sum of a 64-bit column, without nulls (0 without rows)."""
    # The sum of each 32-bit half fits in 64 bits for up to two billion rows.
    high = pc.sum(pc.shift_right(column, _HALF), min_count=0).as_py()
    low = pc.sum(pc.bit_wise_and(column, (1 << _HALF) - 1), min_count=0).as_py()
    return (int(high) << _HALF) + int(low)
