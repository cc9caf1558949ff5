"""Hashes of a MERGE's keys: rows whose keys are equal have the same hash, on both sides.

Nothing depends on the converse: a hash only tells rows apart that certainly do not match.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["key_hashes"]

_BASE = 0x9E3779B97F4A7C15
_INVERSE = pow(_BASE, -1, 1 << 64)
_MIX = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
_TEXT_BYTES = 1 << 20
"""Texts are hashed until they have about this size, since each byte becomes some numbers."""


def key_hashes(columns: Iterable[pa.Array], num_rows: int) -> np.ndarray:
    """Return a hash for each row (uint64).

    Args:
        columns: The keys, encoded as `ColumnKey` does. A null has a hash, too.
        num_rows: How many rows there are.
    """
    found = np.zeros(num_rows, np.uint64)
    for values in columns if num_rows else ():
        found = _mixed(found * np.uint64(_BASE) + _hashes(values))
    return found


def _mixed(numbers: np.ndarray) -> np.ndarray:
    """Spread the numbers evenly, as splitmix64 does."""
    for shift, factor in zip((30, 27), _MIX, strict=True):
        numbers = (numbers ^ (numbers >> np.uint64(shift))) * np.uint64(factor)
    spread: np.ndarray = numbers ^ (numbers >> np.uint64(31))
    return spread


def _hashes(values: pa.Array) -> np.ndarray:
    if pa.types.is_string(values.type) or pa.types.is_binary(values.type):
        return _hashes_of_texts(_without_nulls(values))
    if pa.types.is_decimal(values.type):
        return _hashes_of_decimals(values)
    return _numbers(values).view(np.uint64)


def _without_nulls(values: pa.Array) -> pa.Array:
    return pc.fill_null(values, "" if pa.types.is_string(values.type) else b"")


def _numbers(values: pa.Array) -> np.ndarray:
    if pa.types.is_date32(values.type):
        values = values.cast(pa.int32())
    plain = values.view(pa.int64()) if pa.types.is_timestamp(values.type) else values
    numbers: np.ndarray = pc.fill_null(plain.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
    return numbers


def _hashes_of_decimals(values: pa.Array) -> np.ndarray:
    whole: Any = pa.concat_arrays([values]) if values.offset else values
    halves = np.frombuffer(whole.buffers()[1], np.uint64, 2 * len(whole)).reshape(-1, 2)
    found: np.ndarray = halves[:, 0] * np.uint64(_BASE) + halves[:, 1]
    found[values.is_null().to_numpy(zero_copy_only=False)] = 0
    return found


def _hashes_of_texts(values: pa.Array) -> np.ndarray:
    """Hash the bytes of each text as a polynomial, from sums over the bytes of many texts."""
    ends = np.frombuffer(values.buffers()[1], np.int32, len(values) + 1, 4 * values.offset)
    found = np.empty(len(values), np.uint64)
    first = 0
    while first < len(values):
        limit = int(ends[first]) + _TEXT_BYTES
        last = max(first + 1, int(np.searchsorted(ends, limit, side="right")) - 1)
        found[first:last] = _polynomials(values.buffers()[2], ends[first : last + 1])
        first = last
    return found


def _polynomials(data: pa.Buffer | None, ends: np.ndarray) -> np.ndarray:
    size = int(ends[-1] - ends[0])
    if data is None or not size:
        return np.zeros(len(ends) - 1, np.uint64)
    texts = np.frombuffer(data, np.uint8, size, int(ends[0])).astype(np.uint64) + np.uint64(1)
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(texts * _powers(_BASE, size))])
    places = ends - ends[0]
    first, end = places[:-1], places[1:]
    found: np.ndarray = (sums[end] - sums[first]) * _powers(_INVERSE, size + 1)[first]
    return found


def _powers(base: int, count: int) -> np.ndarray:
    factors = np.full(count, base, np.uint64)
    factors[0] = 1
    return np.cumprod(factors)
