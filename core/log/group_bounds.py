"""What the footer of a checkpoint's Parquet file says of the adds in its row groups.

Only the typed columns can be used for this: `partitionValues_parsed` and `stats_parsed`. Statistics
that are absent, unreadable or do not count all rows are unknown, never guessed. So are those of
dates and times in the calendar of Spark 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from optimist.core.log.checkpoint_file import CheckpointFile
from optimist.core.schema.arrow_types import num_leaves
from optimist.core.values.legacy_calendar import LegacyCalendar

__all__ = ["GroupBounds", "LeafBounds"]


@dataclass(frozen=True, slots=True)
class LeafBounds:
    """One column's statistics, one value per row group, null where unknown.

    A writer may have shortened them: all values are within the bounds, but no value need equal one.

    Attributes:
        low: The least value, or less; NaN does not count.
        high: The greatest value, or more; NaN does not count.
        num_nulls: The number of adds without a value.
    """

    low: pa.Array
    high: pa.Array
    num_nulls: pa.Array


class GroupBounds:
    """The statistics of some row groups of one file.

    Args:
        file: The file.
        groups: The row groups.
    """

    def __init__(self, file: CheckpointFile, groups: Sequence[int]) -> None:
        self._chunks = file.chunks
        self._schema = file.schema_arrow
        self._groups = groups
        self._has_old_days = LegacyCalendar.of(file.metadata.metadata) is not None
        # Otherwise the order of the leaves is not the order of the columns.
        self._is_plain = sum(map(num_leaves, self._schema.types)) == len(file.schema)

    @property
    def num_groups(self) -> int:
        """The number of row groups."""
        return len(self._groups)

    def leaf(self, path: Sequence[str]) -> LeafBounds | None:
        """Return the statistics of a leaf below `add`, or None if there is no such leaf."""
        found = self._find(("add", *path))
        if found is None:
            return None
        index, kind = found
        if self._has_old_days and pa.types.is_temporal(kind):
            return None
        statistics = [self._statistics(group, index) for group in self._groups]
        nulls = pa.array([_null_count(item) for item in statistics], pa.int64())
        return LeafBounds(
            _bounds(statistics, "min", kind),
            _bounds(statistics, "max", kind),
            pc.subtract(nulls, self._num_other_actions()),
        )

    def _num_other_actions(self) -> pa.Array:
        """Return the rows of each group that are no adds."""
        found = self._find(("add", "path"))
        if found is None:
            return pa.nulls(len(self._groups), pa.int64())
        statistics = [self._statistics(group, found[0]) for group in self._groups]
        return pa.array([_null_count(item) for item in statistics], pa.int64())

    def _statistics(self, group: int, index: int) -> pq.Statistics | None:
        try:
            return self._chunks.statistics(group, index)
        except (IndexError, OSError, pa.ArrowException):  # readers of the rows say why
            return None

    def _find(self, path: Sequence[str]) -> tuple[int, pa.DataType] | None:
        """Return a leaf's number and type. Names go one by one, because they may have dots."""
        if not self._is_plain:
            return None
        index, fields = 0, list(self._schema)
        for depth, name in enumerate(path, 1):
            for field in fields:
                if field.name == name:
                    break
                index += num_leaves(field.type)
            else:
                return None
            if depth == len(path):
                return None if pa.types.is_nested(field.type) else (index, field.type)
            if not pa.types.is_struct(field.type):
                return None
            fields = list(field.type)
        return None


def _null_count(statistics: pq.Statistics | None) -> int | None:
    has_count = statistics is not None and statistics.has_null_count
    return statistics.null_count if statistics is not None and has_count else None


def _bounds(statistics: Sequence[pq.Statistics | None], name: str, kind: pa.DataType) -> pa.Array:
    values = [_bound(item, name) for item in statistics]
    try:
        return pa.array(values, kind)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return pa.nulls(len(values), kind)


def _bound(statistics: pq.Statistics | None, name: str) -> Any:
    if statistics is None or not statistics.has_min_max:
        return None
    try:
        value = getattr(statistics, name)
    except (pa.ArrowException, ArithmeticError, ValueError):  # a year that Python lacks, not UTF-8
        return None
    return None if value != value else value  # a NaN is no bound
