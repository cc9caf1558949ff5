"""Murmur3 of 32 bits and xxHash of 64 bits over many values at once, each with its own seed.

All arithmetic wraps, in NumPy's unsigned integers. Murmur3 differs from the common one as it does
in Spark: each byte behind the last whole word is mixed in alone, with its sign.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

__all__ = ["MURMUR3", "XXHASH64", "Bytes", "Mixer"]

Numbers: TypeAlias = Any
"""An array of NumPy; its values are unsigned where nothing else is said."""


@dataclass(frozen=True, slots=True)
class Bytes:
    """Values that are runs of bytes in one buffer.

    Attributes:
        data: All bytes, as uint8.
        starts: Where each value begins.
        lengths: How many bytes each value has.
    """

    data: Numbers
    starts: Numbers
    lengths: Numbers

    def words(self, rows: Numbers, skipped: Numbers, size: int) -> Numbers:
        """Return a word of some values, little-endian, as 64 bits.

        Args:
            rows: The values.
            skipped: The bytes before the word, in each of them.
            size: The bytes of the word.
        """
        at = self.starts[rows] + skipped
        found = np.zeros(len(rows), np.uint64)
        for place in range(size):
            byte = self.data[at + place].astype(np.uint64)
            found |= byte << np.uint64(8 * place)
        return found


@dataclass(frozen=True, slots=True)
class Mixer:
    """A hash: each function takes values and the hashes before them, and returns new hashes.

    Attributes:
        width: The type of a hash.
        of_ints: Mixes in numbers of 32 bits.
        of_longs: Mixes in numbers of 64 bits.
        of_bytes: Mixes in runs of bytes.
    """

    width: type[np.uint32] | type[np.uint64]
    of_ints: Callable[[Numbers, Numbers], Numbers]
    of_longs: Callable[[Numbers, Numbers], Numbers]
    of_bytes: Callable[[Bytes, Numbers], Numbers]


def _steps(counts: Numbers) -> Iterator[tuple[int, Numbers]]:
    """Yield 0, 1, ..., each with the values that have more steps than that."""
    rows, step = np.flatnonzero(counts > 0), 0
    while len(rows):
        yield step, rows
        step += 1
        rows = rows[counts[rows] > step]


def _rotated(values: Numbers, by: int) -> Numbers:
    bits = values.dtype.itemsize * 8
    kind = values.dtype.type
    return (values << kind(by)) | (values >> kind(bits - by))


# Murmur3

_C1, _C2 = np.uint32(0xCC9E2D51), np.uint32(0x1B873593)
_FIVE, _STEP = np.uint32(5), np.uint32(0xE6546B64)
_F1, _F2 = np.uint32(0x85EBCA6B), np.uint32(0xC2B2AE35)


def _mixed32(states: Numbers, words: Numbers) -> Numbers:
    mixed = _rotated(words * _C1, 15) * _C2
    return _rotated(states ^ mixed, 13) * _FIVE + _STEP


def _finished32(states: Numbers, lengths: Numbers) -> Numbers:
    states = states ^ lengths
    states = (states ^ (states >> np.uint32(16))) * _F1
    states = (states ^ (states >> np.uint32(13))) * _F2
    return states ^ (states >> np.uint32(16))


def _ints32(values: Numbers, seeds: Numbers) -> Numbers:
    return _finished32(_mixed32(seeds, values.astype(np.uint32)), np.uint32(4))


def _longs32(values: Numbers, seeds: Numbers) -> Numbers:
    low, high = values.astype(np.uint32), (values >> np.uint64(32)).astype(np.uint32)
    return _finished32(_mixed32(_mixed32(seeds, low), high), np.uint32(8))


def _bytes32(values: Bytes, seeds: Numbers) -> Numbers:
    states, whole = seeds.copy(), values.lengths // 4
    for step, rows in _steps(whole):
        word = values.words(rows, 4 * step, 4).astype(np.uint32)
        states[rows] = _mixed32(states[rows], word)
    for step, rows in _steps(values.lengths % 4):
        byte = values.words(rows, 4 * whole[rows] + step, 1).astype(np.int8)
        states[rows] = _mixed32(states[rows], byte.astype(np.int32).astype(np.uint32))
    return _finished32(states, values.lengths.astype(np.uint32))


MURMUR3 = Mixer(np.uint32, _ints32, _longs32, _bytes32)


# xxHash

_P1, _P2 = np.uint64(0x9E3779B185EBCA87), np.uint64(0xC2B2AE3D27D4EB4F)
_P3, _P4 = np.uint64(0x165667B19E3779F9), np.uint64(0x85EBCA77C2B2AE63)
_P5 = np.uint64(0x27D4EB2F165667C5)
_STRIPE = 32


def _finished64(states: Numbers) -> Numbers:
    states = (states ^ (states >> np.uint64(33))) * _P2
    states = (states ^ (states >> np.uint64(29))) * _P3
    return states ^ (states >> np.uint64(32))


def _with_int64(states: Numbers, values: Numbers) -> Numbers:
    return _rotated(states ^ (values * _P1), 23) * _P2 + _P3


def _with_long64(states: Numbers, values: Numbers) -> Numbers:
    return _rotated(states ^ (_rotated(values * _P2, 31) * _P1), 27) * _P1 + _P4


def _ints64(values: Numbers, seeds: Numbers) -> Numbers:
    words = values.astype(np.uint32).astype(np.uint64)
    return _finished64(_with_int64(seeds + _P5 + np.uint64(4), words))


def _longs64(values: Numbers, seeds: Numbers) -> Numbers:
    return _finished64(_with_long64(seeds + _P5 + np.uint64(8), values))


def _bytes64(values: Bytes, seeds: Numbers) -> Numbers:
    states, done = _after_stripes(values, seeds), values.lengths // _STRIPE * _STRIPE
    states = states + values.lengths.astype(np.uint64)
    longs = (values.lengths - done) // 8
    for step, rows in _steps(longs):
        word = values.words(rows, done[rows] + 8 * step, 8)
        states[rows] = _with_long64(states[rows], word)
    done = done + 8 * longs
    ints = (values.lengths - done) // 4
    for _, rows in _steps(ints):
        states[rows] = _with_int64(states[rows], values.words(rows, done[rows], 4))
    done = done + 4 * ints
    for step, rows in _steps(values.lengths - done):
        byte = values.words(rows, done[rows] + step, 1)
        states[rows] = _rotated(states[rows] ^ (byte * _P5), 11) * _P1
    return _finished64(states)


def _after_stripes(values: Bytes, seeds: Numbers) -> Numbers:
    """Return the states after all whole runs of 32 bytes, which four lanes share."""
    states = seeds + _P5
    stripes = values.lengths // _STRIPE
    long = np.flatnonzero(stripes > 0)
    lanes = [seeds + _P1 + _P2, seeds + _P2, seeds.copy(), seeds - _P1]
    for step, rows in _steps(stripes):
        for place, lane in enumerate(lanes):
            word = values.words(rows, _STRIPE * step + 8 * place, 8)
            lane[rows] = _rotated(lane[rows] + word * _P2, 31) * _P1
    ends = [lane[long] for lane in lanes]
    turns = zip(ends, (1, 7, 12, 18), strict=True)
    joined = sum((_rotated(end, by) for end, by in turns), np.zeros(len(long), np.uint64))
    for end in ends:
        joined = (joined ^ (_rotated(end * _P2, 31) * _P1)) * _P1 + _P4
    states[long] = joined
    return states


XXHASH64 = Mixer(np.uint64, _ints64, _longs64, _bytes64)
