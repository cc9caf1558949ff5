"""Curves that put rows which are near each other in several columns near each other in one order.

Each column's values are ranked from 0 to 255, so a row is a cell of a grid with one axis a column.
A curve visits all cells, and a row's place is the number of its cell (spec 10.14).

- Z-order weaves the bits of the ranks together, the highest bits first.
- Hilbert's curve turns as it goes, so that each cell is a neighbour of the one before. Its number
  is made from that of Z-order, a digit at a time: the digit of a level (one bit of each rank) is
  replaced by another one, which depends on the state that the levels above have left. The tables of
  states follow C. H. Hamilton, "Compact Hilbert Indices" (2006).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

__all__ = ["MAX_RANK_BITS", "HilbertTable", "hilbert_places", "hilbert_table", "z_digits"]

MAX_RANK_BITS = 8
"""The bits of a rank. All ranks of a row are at most 54 bits, so more than 6 columns get fewer."""
_PLACE_BITS = 54


def z_digits(column: int, num_columns: int) -> list[int]:
    """What each rank of a column adds to a row's number in Z-order; their sum is that number.

    Args:
        column: The place of the column among the columns, from 0.
        num_columns: How many columns there are. Where there are too many for a number of 54 bits,
            those beyond add nothing.
    """
    bits = max(min(MAX_RANK_BITS, _PLACE_BITS // num_columns), 1)
    lowest = min(num_columns, _PLACE_BITS) - 1 - column
    if lowest < 0:
        return [0] * (1 << MAX_RANK_BITS)
    width = min(num_columns, _PLACE_BITS)
    return [
        sum(
            ((rank >> (MAX_RANK_BITS - bits + bit)) & 1) << (width * bit + lowest)
            for bit in range(bits)
        )
        for rank in range(1 << MAX_RANK_BITS)
    ]


@dataclass(frozen=True, slots=True)
class HilbertTable:
    """How a digit of Z-order becomes one of Hilbert's curve.

    Attributes:
        num_columns: How many columns there are, which is how many bits a digit has.
        steps: At `state << num_columns | digit`, the next state and the new digit, as
            `state << num_columns | digit`. The first state is 0.
    """

    num_columns: int
    steps: tuple[int, ...]


@lru_cache
def hilbert_table(num_columns: int) -> HilbertTable:
    """The table for 1 to 6 columns."""
    size, mask = 1 << num_columns, (1 << num_columns) - 1
    states = {(0, 0): 0}
    todo, steps = [(0, 0)], []
    while todo:
        entry, direction = todo.pop(0)
        for digit in range(size):
            turned = _rotated(digit ^ entry, -(direction + 1), num_columns)
            place = _gray_inverse(turned)
            following = (
                entry ^ _rotated(_entry(place), direction + 1, num_columns),
                (direction + _direction(place, num_columns) + 1) % num_columns,
            )
            if following not in states:
                states[following] = len(states)
                todo.append(following)
            steps.append(states[following] << num_columns | place & mask)
    return HilbertTable(num_columns, tuple(steps))


def hilbert_places(z_places: np.ndarray, num_columns: int) -> np.ndarray:
    """The numbers of cells on Hilbert's curve.

    Args:
        z_places: Their numbers in Z-order (int64).
        num_columns: How many columns there are.
    """
    steps = np.array(hilbert_table(num_columns).steps, np.int64)
    mask = (1 << num_columns) - 1
    state, places = np.zeros_like(z_places), np.zeros_like(z_places)
    for level in reversed(range(MAX_RANK_BITS)):
        found = steps[state << num_columns | (z_places >> (level * num_columns)) & mask]
        state, places = found >> num_columns, places << num_columns | found & mask
    return places


def _rotated(value: int, by: int, bits: int) -> int:
    """The bits of a value, moved to the left in a circle."""
    by %= bits
    return (value << by | value >> (bits - by)) & ((1 << bits) - 1)


def _gray(number: int) -> int:
    return number ^ number >> 1


def _gray_inverse(code: int) -> int:
    number = 0
    while code:
        number, code = number ^ code, code >> 1
    return number


def _entry(place: int) -> int:
    """The corner at which the curve enters the part at a place."""
    return 0 if place == 0 else _gray(2 * ((place - 1) // 2))


def _direction(place: int, num_columns: int) -> int:
    """The axis along which the curve leaves the part at a place."""
    if place == 0:
        return 0
    return _trailing_ones(place if place % 2 else place - 1) % num_columns


def _trailing_ones(number: int) -> int:
    return (~number & (number + 1)).bit_length() - 1
