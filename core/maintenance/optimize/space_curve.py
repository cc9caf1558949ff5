"""Space-filling curves, which put rows with near values in several columns near each other.

Each column's values are ranked from 0 to 255, so a row is a cell of a grid with one axis per
column. A curve visits all cells, and a row's position is the number of its cell (spec 10.14).

- Z-order interleaves the bits of the ranks, the highest bits first.
- Hilbert's curve turns at each step, so that each cell is a neighbour of the one before. Its
  position is computed from that of Z-order, one digit at a time. The digit of a level (one bit of
  each rank) is replaced by another digit, which depends on the state after the levels above. The
  tables of states follow C. H. Hamilton, "Compact Hilbert Indices" (2006).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

__all__ = ["MAX_RANK_BITS", "HilbertTable", "hilbert_places", "hilbert_table", "z_digits"]

MAX_RANK_BITS = 8
"""The bits of a rank. All ranks of a row have at most 54 bits, so more than 6 columns get fewer."""
_POSITION_BITS = 54


def z_digits(column: int, num_columns: int) -> list[int]:
    """Return what each rank of a column adds to a row's position in Z-order.

    Args:
        column: The index of the column among the columns, from 0.
        num_columns: The number of columns. If they are too many for a position of 54 bits, the last
            ones add nothing.
    """
    bits = max(min(MAX_RANK_BITS, _POSITION_BITS // num_columns), 1)
    lowest = min(num_columns, _POSITION_BITS) - 1 - column
    if lowest < 0:
        return [0] * (1 << MAX_RANK_BITS)
    width = min(num_columns, _POSITION_BITS)
    return [
        sum(
            ((rank >> (MAX_RANK_BITS - bits + bit)) & 1) << (width * bit + lowest)
            for bit in range(bits)
        )
        for rank in range(1 << MAX_RANK_BITS)
    ]


@dataclass(frozen=True, slots=True)
class HilbertTable:
    """The conversion of a digit of Z-order to a digit of Hilbert's curve.

    Attributes:
        num_columns: The number of columns, which is the number of bits in a digit.
        steps: At `state << num_columns | digit`, the next state and the new digit, as `state <<
            num_columns | digit`. The first state is 0.
    """

    num_columns: int
    steps: tuple[int, ...]


@lru_cache
def hilbert_table(num_columns: int) -> HilbertTable:
    """Compute the table for 1 to 6 columns."""
    size, mask = 1 << num_columns, (1 << num_columns) - 1
    states = {(0, 0): 0}
    todo, steps = [(0, 0)], []
    while todo:
        entry, direction = todo.pop(0)
        for digit in range(size):
            turned = _rotate_bits(digit ^ entry, -(direction + 1), num_columns)
            index = _gray_inverse(turned)
            following = (
                entry ^ _rotate_bits(_entry_corner(index), direction + 1, num_columns),
                (direction + _exit_axis(index, num_columns) + 1) % num_columns,
            )
            if following not in states:
                states[following] = len(states)
                todo.append(following)
            steps.append(states[following] << num_columns | index & mask)
    return HilbertTable(num_columns, tuple(steps))


def hilbert_places(z_positions: np.ndarray, num_columns: int) -> np.ndarray:
    """Convert positions in Z-order to positions on Hilbert's curve.

    Args:
        z_positions: The cells' positions in Z-order (int64).
        num_columns: The number of columns.
    """
    steps = np.array(hilbert_table(num_columns).steps, np.int64)
    mask = (1 << num_columns) - 1
    state, positions = np.zeros_like(z_positions), np.zeros_like(z_positions)
    for level in reversed(range(MAX_RANK_BITS)):
        found = steps[state << num_columns | (z_positions >> (level * num_columns)) & mask]
        state, positions = found >> num_columns, positions << num_columns | found & mask
    return positions


def _rotate_bits(value: int, by: int, bits: int) -> int:
    """Rotate the bits of a value to the left."""
    by %= bits
    return (value << by | value >> (bits - by)) & ((1 << bits) - 1)


def _gray_code(number: int) -> int:
    return number ^ number >> 1


def _gray_inverse(code: int) -> int:
    number = 0
    while code:
        number, code = number ^ code, code >> 1
    return number


def _entry_corner(index: int) -> int:
    """Return the corner at which the curve enters a part."""
    return 0 if index == 0 else _gray_code(2 * ((index - 1) // 2))


def _exit_axis(index: int, num_columns: int) -> int:
    """Return the axis along which the curve leaves a part."""
    if index == 0:
        return 0
    return _trailing_ones(index if index % 2 else index - 1) % num_columns


def _trailing_ones(number: int) -> int:
    return (~number & (number + 1)).bit_length() - 1
