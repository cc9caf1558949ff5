"""Which rows go into which file, where OPTIMIZE arranges rows by several columns (spec 10.14).

A sample of the rows tells two things. Of each column, the bounds that cut its values into 256
ranges with as many rows each: a value's rank is its range. And the places on the curve that cut the
rows into files of the same size. Rows with one place may fill several files, so a place is made
finer by eight bits that say nothing of the row.
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
"""About so many rows are looked at for the bounds."""
TIE_BITS = 8


@dataclass(frozen=True, slots=True)
class RowOrder:
    """The order in which an OPTIMIZE arranges rows.

    Attributes:
        columns: The logical paths of the columns.
        is_hilbert: Along Hilbert's curve, which takes at most six columns; else in Z-order.
    """

    columns: tuple[ColumnPath, ...]
    is_hilbert: bool = False

    @property
    def digits(self) -> list[list[int]]:
        """For each column, what its ranks add to a row's number in Z-order."""
        return [z_digits(place, len(self.columns)) for place in range(len(self.columns))]


@dataclass(frozen=True, slots=True)
class FileLayout:
    """Into which of some files each row goes.

    Attributes:
        order: The order of rows.
        bounds: For each column, ascending and without nulls, the values at which its ranges begin;
            a rank is the number of bounds that are not above a value. Nulls have rank 0.
        splits: Ascending, the places, finer by `TIE_BITS`, at which all files but the first begin.
    """

    order: RowOrder
    bounds: tuple[pa.Array, ...]
    splits: tuple[int, ...]

    @classmethod
    def of(
        cls, order: RowOrder, sample: Sequence[pa.Array | pa.ChunkedArray], num_files: int
    ) -> FileLayout:
        """The layout for rows that are like those of a sample.

        Args:
            order: The order of rows.
            sample: The values of the order's columns in the rows of the sample.
            num_files: How many files there are to be.
        """
        bounds = tuple(_bounds(_whole(values)) for values in sample)
        free = cls(order, bounds, ())
        ties = np.random.default_rng(0).integers(0, 1 << TIE_BITS, len(sample[0]))
        places = np.sort(free._places(sample, ties))
        cuts = np.arange(1, num_files) * len(places) // num_files if len(places) else ()
        return cls(order, bounds, tuple(int(places[cut]) for cut in cuts))

    def file_numbers(
        self, columns: Sequence[pa.Array | pa.ChunkedArray], ties: np.ndarray
    ) -> np.ndarray:
        """The number of each row's file, from 0.

        Args:
            columns: The values of the order's columns.
            ties: For each row, a number below `1 << TIE_BITS`.
        """
        splits = np.array(self.splits, np.int64)
        found: np.ndarray = np.searchsorted(splits, self._places(columns, ties), side="right")
        return found

    def _places(
        self, columns: Sequence[pa.Array | pa.ChunkedArray], ties: np.ndarray
    ) -> np.ndarray:
        places = np.zeros(len(columns[0]), np.int64)
        for values, bounds, digits in zip(columns, self.bounds, self.order.digits, strict=True):
            places += np.array(digits, np.int64)[_ranks(_whole(values), bounds)]
        if self.order.is_hilbert:
            places = hilbert_places(places, len(self.order.columns))
        finer: np.ndarray = np.add(places << TIE_BITS, ties)
        return finer


def num_files_of(files: pa.Table, max_bytes: int) -> int:
    """How many files a bin becomes, so that none has many more than so many bytes."""
    return max(exact_sum(files["size"]) // max_bytes, 1)


def num_rows_of(files: pa.Table) -> int | None:
    """How many rows files have, deleted ones included; None where their statistics lack it."""
    counts = FileStatistics(files, StructType()).num_records
    return None if counts.null_count else exact_sum(counts)


def _whole(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values


def _bounds(values: pa.Array) -> pa.Array:
    """At most 255 values, which cut the others into ranges with about as many rows each."""
    ordered = values.drop_null()
    ordered = ordered.take(pc.sort_indices(ordered))
    size, num_ranges = len(ordered), 1 << MAX_RANK_BITS
    cuts = pa.array([size * number // num_ranges for number in range(1, num_ranges)], pa.int64())
    return ordered.take(cuts).unique() if size else ordered


def _ranks(values: pa.Array, bounds: pa.Array) -> np.ndarray:
    """How many of the bounds are not above each value; 0 for nulls.

    By sorting, which Arrow does for all types that have bounds.
    """
    both = pa.concat_arrays([bounds, values])
    # The sort is stable, so a bound stands before the values that equal it.
    places = pc.sort_indices(both).to_numpy()
    ranks = np.empty(len(both), np.int64)
    ranks[places] = np.cumsum(places < len(bounds))
    found = ranks[len(bounds) :]
    found[values.is_null().to_numpy(zero_copy_only=False)] = 0
    return found
