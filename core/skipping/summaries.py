"""How many rows some files have, and what their columns hold, for a planner (spec 9.6).

A planner only guesses with these figures, so a bound may be wider than the values. Where the log
does not say something of one file, nothing is said of all.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.predicates.resolution import resolve_column
from optimist.core.skipping.aggregates import CountedFiles
from optimist.core.skipping.live_rows import live_rows
from optimist.core.values.exact_sums import exact_sum
from optimist.core.values.field_types import LARGEST_LONG

__all__ = ["ColumnSummary", "RowSummary", "summarize"]

Array: TypeAlias = Any


@dataclass(frozen=True, slots=True)
class ColumnSummary:
    """What is known of one column.

    Attributes:
        nulls: How many rows have no value.
        low: No value is less; None if no bound is known.
        high: No value is greater; None if no bound is known.
        distinct: How many values differ; None if the log does not tell.
    """

    nulls: int
    low: pa.Scalar | None
    high: pa.Scalar | None
    distinct: int | None


@dataclass(frozen=True, slots=True)
class RowSummary:
    """What is known of the rows.

    Attributes:
        rows: How many there are.
        columns: The columns of which something is known, by logical name.
    """

    rows: int
    columns: dict[str, ColumnSummary]


def summarize(counted: CountedFiles, columns: Iterable[str]) -> RowSummary | None:
    """Summarize the rows of some files.

    Args:
        counted: The files.
        columns: The logical names of the columns that are wanted.

    Returns:
        None if the log does not tell the number of rows.
    """
    statistics, mask = counted.statistics, counted.mask
    physical = _chosen(statistics.num_records, mask)
    rows = _chosen(live_rows(statistics.files, statistics.num_records.combine_chunks()), mask)
    total = _total(rows)
    if total is None:
        return None
    resolved = [resolve_column((column,), statistics.schema) for column in columns]
    known = [column for column in resolved if column is not None]
    partitions = counted.partitions.column_names
    statistics.load(column.path for column in known if column.path[0] not in partitions)
    found: dict[str, ColumnSummary | None] = {}
    for column in known:
        name = column.path[0]
        if name in partitions:
            found[name] = _of_partition(_chosen(counted.partitions[name], mask), rows)
            continue
        leaf = statistics.column(column.path)
        if leaf is not None:
            nulls = _chosen(leaf.null_count, mask)
            bounds = [b if b is None else _chosen(b, mask) for b in (leaf.low, leaf.high)]
            found[name] = _of_data(nulls, bounds, physical, total)
    return RowSummary(total, {name: one for name, one in found.items() if one is not None})


def _chosen(values: Array, mask: pa.BooleanArray | None) -> Array:
    return values if mask is None else values.filter(mask)


def _total(counts: Array) -> int | None:
    """Return the sum, or None if a count is missing, or false."""
    if counts.null_count or (len(counts) and pc.min(counts).as_py() < 0):
        return None
    total = exact_sum(counts)
    return total if total <= LARGEST_LONG else None


def _of_partition(values: Array, rows: Array) -> ColumnSummary | None:
    nulls = _total(pc.if_else(pc.is_valid(values), 0, rows))
    if nulls is None:
        return None
    return ColumnSummary(nulls, *_bounds(values, values), pc.count_distinct(values).as_py())


def _of_data(
    null_counts: Array, bounds: list[Array | None], physical: Array, rows: int
) -> ColumnSummary | None:
    nulls = _total(null_counts)
    if nulls is None:
        return None
    low, high = bounds
    if low is None or high is None:
        return ColumnSummary(min(nulls, rows), None, None, None)
    has_values = pc.less(null_counts, physical)
    are_missing = pc.or_(pc.is_null(low), pc.is_null(high))
    if pc.any(pc.and_(has_values, are_missing), min_count=0).as_py():
        return ColumnSummary(min(nulls, rows), None, None, None)
    return ColumnSummary(min(nulls, rows), *_bounds(low, high), None)


def _bounds(low: Array, high: Array) -> tuple[pa.Scalar | None, pa.Scalar | None]:
    """Return the least of one and the greatest of the other; None of types without an order."""
    if not (_is_ordered(low.type) and _is_ordered(high.type)):
        return None, None
    least, greatest = pc.min(low), pc.max(high)
    return (least, greatest) if least.is_valid and greatest.is_valid else (None, None)


def _is_ordered(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_primitive(kind) or types.is_boolean(kind) or types.is_decimal(kind))
