"""The assignment of rows to files where OPTIMIZE arranges rows by several columns (spec 10.14).

A sample of the rows gives two things. For each column it gives the bounds that cut the values into
256 ranges with equally many rows; the rank of a value is the number of its range. It also gives the
positions on the curve that cut the rows into files of equal size. Rows with the same position may
fill several files. So eight random bits are appended to each position.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.maintenance.optimize.space_curve import MAX_RANK_BITS, hilbert_places, z_digits
from optimist.core.schema.stats_property import ColumnPath
from optimist.core.schema.types import StructType
from optimist.core.skipping.statistics import FileStatistics
from optimist.core.values.exact_sums import exact_sum

__all__ = ["SAMPLED_ROWS", "TIE_BITS", "FileLayout", "RowOrder", "num_files_of", "num_rows_of"]

SAMPLED_ROWS = 100_000
"""The approximate number of rows that are sampled for the bounds."""
TIE_BITS = 8


@dataclass(frozen=True, slots=True)
class RowOrder:
    """The order in which an OPTIMIZE arranges rows.

    Attributes:
        columns: The logical paths of the columns.
        is_hilbert: Whether rows follow Hilbert's curve, for at most six columns, and not Z-order.
    """

    columns: tuple[ColumnPath, ...]
    is_hilbert: bool = False

    @property
    def digits(self) -> list[list[int]]:
        """The amount that each rank of each column adds to a row's number in Z-order."""
        return [z_digits(index, len(self.columns)) for index in range(len(self.columns))]


@dataclass(frozen=True, slots=True)
class FileLayout:
    """The file that each row goes to.

    Attributes:
        order: The order of rows.
        bounds: For each column, the values at which its ranges begin, ascending and without nulls.
            A rank is the number of bounds that are not above a value. Nulls have rank 0.
        splits: The positions, with their `TIE_BITS`, at which all files but the first begin,
            ascending.
    """

    order: RowOrder
    bounds: tuple[pa.Array, ...]
    splits: tuple[int, ...]

    @classmethod
    def of(
        cls, order: RowOrder, sample: Sequence[pa.Array | pa.ChunkedArray], num_files: int
    ) -> FileLayout:
        """Make the layout for rows that are distributed like a sample.

        Args:
            order: The order of rows.
            sample: The values of the order's columns in the rows of the sample.
            num_files: The number of files to make.
        """
        bounds = tuple(_rank_bounds(_combine_chunks(values)) for values in sample)
        free = cls(order, bounds, ())
        ties = np.random.default_rng(0).integers(0, 1 << TIE_BITS, len(sample[0]))
        positions = np.sort(free._positions(sample, ties))
        cuts = np.arange(1, num_files) * len(positions) // num_files if len(positions) else ()
        return cls(order, bounds, tuple(int(positions[cut]) for cut in cuts))

    def file_numbers(
        self, columns: Sequence[pa.Array | pa.ChunkedArray], ties: np.ndarray
    ) -> np.ndarray:
        """Return the number of each row's file, from 0.

        Args:
            columns: The values of the order's columns.
            ties: For each row, a number below `1 << TIE_BITS`.
        """
        splits = np.array(self.splits, np.int64)
        found: np.ndarray = np.searchsorted(splits, self._positions(columns, ties), side="right")
        return found

    def _positions(
        self, columns: Sequence[pa.Array | pa.ChunkedArray], ties: np.ndarray
    ) -> np.ndarray:
        positions = np.zeros(len(columns[0]), np.int64)
        for values, bounds, digits in zip(columns, self.bounds, self.order.digits, strict=True):
            positions += np.array(digits, np.int64)[_rank_values(_combine_chunks(values), bounds)]
        if self.order.is_hilbert:
            positions = hilbert_places(positions, len(self.order.columns))
        finer: np.ndarray = np.add(positions << TIE_BITS, ties)
        return finer


def num_files_of(files: pa.Table, max_bytes: int) -> int:
    """Compute how many files a bin becomes, so that none is much larger than `max_bytes`."""
    return max(exact_sum(files["size"]) // max_bytes, 1)


def num_rows_of(files: pa.Table) -> int | None:
    """Count the files' rows with the deleted ones, or return None if a count is missing."""
    counts = FileStatistics(files, StructType()).num_records
    return None if counts.null_count else exact_sum(counts)


def _combine_chunks(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values


def _rank_bounds(values: pa.Array) -> pa.Array:
    """Return at most 255 values that cut the others into ranges with about equally many rows."""
    ordered = values.drop_null()
    ordered = ordered.take(pc.sort_indices(ordered))
    size, num_ranges = len(ordered), 1 << MAX_RANK_BITS
    cuts = pa.array([size * number // num_ranges for number in range(1, num_ranges)], pa.int64())
    return ordered.take(cuts).unique() if size else ordered


def _rank_values(values: pa.Array, bounds: pa.Array) -> np.ndarray:
    """Count the bounds that are not above each value, with 0 for nulls.

    It sorts, since Arrow sorts all types that have bounds.
    """
    both = pa.concat_arrays([bounds, values])
    # The sort is stable, so a bound comes before the values that equal it.
    positions = pc.sort_indices(both).to_numpy()
    ranks = np.empty(len(both), np.int64)
    ranks[positions] = np.cumsum(positions < len(bounds))
    found = ranks[len(bounds) :]
    found[values.is_null().to_numpy(zero_copy_only=False)] = 0
    return found
