"""The bounds of row groups of a checkpoint, in the place of the bounds of files (spec 5.8, 9.5).

A row group is to its files what a file is to its rows: the least of their lower bounds and the
greatest of their upper bounds decide whether any of them can match. Each file's bounds may mean
more than they say (`wide_bounds.py`), so a row group's bounds are as wide as those of each file
would be. Whatever a footer can't prove is unknown, and keeps the row group.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.data.partition_values import arrow_type_of
from optimist.core.log.group_bounds import GroupBounds, LeafBounds
from optimist.core.predicates.resolution import ResolvedColumn
from optimist.core.schema.stats_property import has_bounds
from optimist.core.schema.types import StructType
from optimist.core.skipping.statistics import ColumnStatistics, FileStatistics
from optimist.core.skipping.wide_bounds import widened_over_files

__all__ = ["GroupStatistics"]


class GroupStatistics(FileStatistics):
    """The statistics of row groups, which take the place of files.

    Values of partition columns count as statistics, because a row group has several.

    Args:
        bounds: The footers' statistics.
        schema: The table's schema.
        partition_columns: The logical names of the partition columns.
        use_statistics: Whether bounds of other columns count.
    """

    def __init__(
        self,
        bounds: GroupBounds,
        schema: StructType,
        partition_columns: Sequence[str],
        *,
        use_statistics: bool = True,
    ) -> None:
        super().__init__(pa.table({"group": range(bounds.num_groups)}), schema)
        self._bounds = bounds
        self._partition_names = {name.lower() for name in partition_columns}
        self._use_statistics = use_statistics
        self._unknown_counts = pa.chunked_array([pa.nulls(bounds.num_groups, pa.int64())])
        self._num_records = self._unknown_counts

    def _parse(self, columns: Sequence[ResolvedColumn]) -> pa.ChunkedArray:
        for column in columns:
            if column.path[0].lower() in self._partition_names:
                found = self._partition_values(column)
            else:
                found = self._file_bounds(column) if self._use_statistics else self._unknown(column)
            self._columns[column.path] = found
        return self._unknown_counts

    def _partition_values(self, column: ResolvedColumn) -> ColumnStatistics:
        leaf = self._bounds.leaf(("partitionValues_parsed", *column.physical_path))
        kind = arrow_type_of(column.data_type)
        if leaf is None or kind is None or not _is_exact(kind):
            return self._unknown(column)
        typed = _as_type(leaf, kind)
        if typed is None:
            return self._unknown(column)
        nulls = typed.num_nulls
        if pa.types.is_string(kind):
            # The empty string means null, but may be written as itself.
            nulls = pc.if_else(pc.equal(typed.low, ""), pa.scalar(None, pa.int64()), nulls)
        # A typed value may be missing although the text is there, or be one that its writer could
        # not read.
        low, high = (_of_every_add(typed, each) for each in (typed.low, typed.high))
        return _statistics(column, low, high, nulls)

    def _file_bounds(self, column: ResolvedColumn) -> ColumnStatistics:
        counts = self._bounds.leaf(("stats_parsed", "nullCount", *column.physical_path))
        kind = arrow_type_of(column.data_type)
        null_count = _no_nulls(counts, self._bounds.num_groups)
        if kind is None or not has_bounds(column.data_type):
            return ColumnStatistics(column, None, None, pa.chunked_array([null_count]))
        leaves = [
            self._bounds.leaf(("stats_parsed", name, *column.physical_path))
            for name in ("minValues", "maxValues")
        ]
        lows, highs = (None if leaf is None else _as_type(leaf, kind) for leaf in leaves)
        if lows is None or highs is None:
            unknown = pa.nulls(self._bounds.num_groups, kind)
            return _statistics(column, unknown, unknown, null_count)
        low, high = widened_over_files(
            (_of_every_add(lows, lows.low), _of_every_add(lows, lows.high)),
            (_of_every_add(highs, highs.low), _of_every_add(highs, highs.high)),
            column,
        )
        return _statistics(column, low, high, null_count)

    def _unknown(self, column: ResolvedColumn) -> ColumnStatistics:
        return ColumnStatistics(column, None, None, self._unknown_counts)


def _statistics(
    column: ResolvedColumn, low: pa.Array, high: pa.Array, null_count: pa.Array
) -> ColumnStatistics:
    low, high, null_count = (pa.chunked_array([each]) for each in (low, high, null_count))
    return ColumnStatistics(column, low, high, null_count)


def _is_exact(kind: pa.DataType) -> bool:
    """Return whether partition values of a type mean the same to each reader.

    Times without a zone hang on the session, and NaN is missing in a footer's statistics.
    """
    tests = (pa.types.is_integer, pa.types.is_string, pa.types.is_decimal, pa.types.is_date)
    return any(is_kind(kind) for is_kind in tests)


def _as_type(leaf: LeafBounds, kind: pa.DataType) -> LeafBounds | None:
    """Return the bounds in the column's type; None if the leaf has another one."""
    found = leaf.low.type
    if found == kind:
        return leaf
    if not (pa.types.is_integer(found) and pa.types.is_integer(kind)):
        return None  # of before a change of the type, which texts may mean otherwise
    try:
        return LeafBounds(leaf.low.cast(kind), leaf.high.cast(kind), leaf.num_nulls)
    except pa.ArrowInvalid:
        return None


def _of_every_add(leaf: LeafBounds, values: pa.Array) -> pa.Array:
    """Return values only for row groups in which every add has one: absent bounds are unknown."""
    is_complete = pc.fill_null(pc.equal(leaf.num_nulls, 0), False)
    return pc.if_else(is_complete, values, pa.scalar(None, values.type))


def _no_nulls(counts: LeafBounds | None, num_groups: int) -> pa.Array:
    """Return 0 for row groups whose files have no null, else null."""
    if counts is None or not pa.types.is_integer(counts.low.type):
        return pa.nulls(num_groups, pa.int64())
    low, high = (_of_every_add(counts, each).cast(pa.int64()) for each in (counts.low, counts.high))
    is_none = pc.and_(pc.equal(low, 0), pc.equal(high, 0))
    zero, unknown = pa.scalar(0, pa.int64()), pa.scalar(None, pa.int64())
    return pc.if_else(pc.fill_null(is_none, False), zero, unknown)
