"""The check that bytes are the roaring bitmaps that they claim to be (spec 10.10).

The roaring library trusts its input: a container with a false header makes it answer wrongly or
touch memory outside its own. A vector inside the log has no checksum. So this module checks every
bitmap before the library gets it. Everything is little-endian.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import islice
from operator import lt

__all__ = ["bitmap_end"]

_COOKIE = 12346
_COOKIE_WITH_RUNS = 12347
_FEWEST_WITH_OFFSETS = 4
_MOST_IN_ARRAY = 4096
_BITSET_BYTES = 8192
_MOST_CONTAINERS = 1 << 16


def bitmap_end(data: memoryview, start: int) -> int:
    """Return the end of the 32-bit bitmap that begins at `start`.

    Args:
        data: Bytes that hold it.
        start: Its first byte.

    Raises:
        ValueError: It is not a sound bitmap in the standard format, or the bytes end early.
    """
    kinds, keys_and_counts, position = _read_header(data, start)
    _ensure_ascending(keys_and_counts[::2])
    for is_run, count in zip(kinds, keys_and_counts[1::2], strict=True):
        if is_run:
            position = _end_of_runs(data, position, count + 1)
        elif count < _MOST_IN_ARRAY:
            values = _read_shorts(data, position, count + 1)
            _ensure_ascending(values)
            position += 2 * (count + 1)
        else:
            position = _end_of_bitset(data, position, count + 1)
    return position


def _read_header(data: memoryview, start: int) -> tuple[list[bool], tuple[int, ...], int]:
    """Return which containers hold runs, their keys and cardinalities less one, and their start."""
    cookie = _read_integer(data, start)
    position = start + 4
    if cookie & 0xFFFF == _COOKIE_WITH_RUNS:
        size = (cookie >> 16) + 1
        flags = bytes(_take_exactly(data, position, (size + 7) // 8))
        position += len(flags)
        kinds = [bool(flags[number // 8] >> (number % 8) & 1) for number in range(size)]
    elif cookie == _COOKIE:
        size = _read_integer(data, position)
        position += 4
        if size > _MOST_CONTAINERS:
            raise ValueError(f"it claims {size} containers, more than a bitmap can have")
        kinds = [False] * size
    else:
        raise ValueError(f"no bitmap begins with {cookie}")
    pairs = _read_shorts(data, position, 2 * size)
    position += 4 * size
    if cookie == _COOKIE or size >= _FEWEST_WITH_OFFSETS:
        # Skip the offsets, which the walk computes itself.
        position += len(_take_exactly(data, position, 4 * size))
    return kinds, pairs, position


def _end_of_runs(data: memoryview, position: int, count: int) -> int:
    (num_runs,) = _read_shorts(data, position, 1)
    runs = _read_shorts(data, position + 2, 2 * num_runs)
    starts, lengths = runs[::2], runs[1::2]
    ends = [first + more for first, more in zip(starts, lengths, strict=True)]
    if any(end >= _MOST_CONTAINERS for end in ends):
        raise ValueError("a run ends beyond its container")
    if any(end >= following for end, following in zip(ends, islice(starts, 1, None), strict=False)):
        raise ValueError("runs overlap")
    if sum(lengths) + num_runs != count:
        raise ValueError(f"runs hold {sum(lengths) + num_runs} values but claim {count}")
    return position + 2 + 4 * num_runs


def _end_of_bitset(data: memoryview, position: int, count: int) -> int:
    bits = int.from_bytes(_take_exactly(data, position, _BITSET_BYTES), "little")
    if bits.bit_count() != count:
        raise ValueError(f"a bit set holds {bits.bit_count()} values but claims {count}")
    return position + _BITSET_BYTES


def _ensure_ascending(values: Sequence[int]) -> None:
    if not all(map(lt, values, islice(values, 1, None))):
        raise ValueError("values are not in order")


def _read_integer(data: memoryview, position: int) -> int:
    return int(struct.unpack("<I", _take_exactly(data, position, 4))[0])


def _read_shorts(data: memoryview, position: int, count: int) -> tuple[int, ...]:
    return struct.unpack(f"<{count}H", _take_exactly(data, position, 2 * count))


def _take_exactly(data: memoryview, position: int, size: int) -> memoryview:
    piece = data[position : position + size]
    if len(piece) != size:
        raise ValueError("the bytes end within a bitmap")
    return piece
