"""Counts of rows and values, and least and greatest values, from the log alone (spec 9.6).

An answer is exact, or there is none: whatever the log does not tell for certain about a single file
leaves the question to a reader of the files.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any, Literal, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.data.partition_values import arrow_type_of
from optimist.core.predicates.resolution import ResolvedColumn, resolve_column
from optimist.core.schema.types import DecimalType, StructType
from optimist.core.skipping.live_rows import live_rows
from optimist.core.skipping.statistics import ColumnStatistics, FileStatistics
from optimist.core.values.exact_sums import exact_sum
from optimist.core.values.field_types import LARGEST_LONG

__all__ = ["CountedFiles", "Function", "Wanted", "aggregated", "is_answered"]

Array: TypeAlias = Any
Function: TypeAlias = Literal["group", "rows", "count", "min", "max"]

_EXACT_BOUNDS = ("byte", "short", "integer", "long", "date")
"""Types whose bounds are values of rows. Text is shortened, times are cut to milliseconds, decimals
may have been rounded, and floats may hide NaN or the sign of zero.
"""
_PLAIN_PARTITIONS = (*_EXACT_BOUNDS, "boolean", "string", "timestamp", "timestamp_ntz")
"""Types of partition columns, next to decimals, that Arrow groups and orders as Spark does. Floats
are not among them, because they have two zeros.
"""
_FIRST_GREGORIAN = dt.date(1582, 10, 15)
"""The dates before it may be stored by another calendar than in the statistics."""
_ROWS = "rows"
_SUM = pc.ScalarAggregateOptions(min_count=0)


@dataclass(frozen=True, slots=True)
class Wanted:
    """One column of an answer.

    Attributes:
        function: `rows` is the number of rows. `count`, `min` and `max` are those of a column's
            values. `group` is a partition column, by whose values the rows are grouped.
        column: The logical name of the column; empty for `rows`.
    """

    function: Function
    column: str = ""


@dataclass(frozen=True, slots=True)
class CountedFiles:
    """Files of a table version whose rows are counted.

    Attributes:
        statistics: The statistics of the files.
        partitions: The typed values of the partition columns, by logical name, with a row per file.
        mask: The files that count, or None for all.
    """

    statistics: FileStatistics
    partitions: pa.Table
    mask: pa.BooleanArray | None = None

    def values(self, wanted: Sequence[Wanted]) -> pa.Table | None:
        """Return a column for each of `wanted`, with a row for each file that has rows.

        Returns:
            None if one of the values is not known for certain.
        """
        if not is_answered(wanted, self.statistics.schema, self.partitions.column_names):
            return None
        columns = [resolve_column((each.column,), self.statistics.schema) for each in wanted]
        data = (column for column in columns if column and not self._is_partition(column))
        self.statistics.load(column.path for column in data)
        rows = live_rows(self.statistics.files, self.statistics.num_records.combine_chunks())
        has_rows = pc.fill_null(pc.not_equal(rows, 0), True)
        chosen = has_rows if self.mask is None else pc.and_(has_rows, self.mask)
        table = pa.table({_ROWS: rows})
        for at, (each, column) in enumerate(zip(wanted, columns, strict=True)):
            values, is_known = self._values(each, column, rows)
            if pc.any(pc.and_not(chosen, is_known), min_count=0).as_py():
                return None
            table = table.append_column(str(at), values)
        table = table.filter(chosen)
        return None if table[_ROWS].null_count else table.drop_columns([_ROWS])

    def _is_partition(self, column: ResolvedColumn) -> bool:
        return column.path[0] in self.partitions.column_names

    def _values(
        self, wanted: Wanted, column: ResolvedColumn | None, rows: Array
    ) -> tuple[Array, Array]:
        """Return a value per file, and whether it is known for certain."""
        if column is None:
            return rows, pc.is_valid(rows)
        if self._is_partition(column):
            values = self.partitions.column(column.path[0])
            if wanted.function == "count":
                values = pc.if_else(pc.is_valid(values), rows, 0)
            return values, pc.is_valid(rows)
        found = self.statistics.column(column.path)
        if found is None:
            raise ValueError(f"The column {column.path} has no statistics of its own.")
        if wanted.function == "count":
            return self._counts(found, rows)
        return self._bounds(wanted.function, found)

    def _counts(self, found: ColumnStatistics, rows: Array) -> tuple[Array, Array]:
        """Return how many rows of each file have a value."""
        nulls, physical = found.null_count, self.statistics.num_records
        has_none, are_all = _is_true(pc.equal(nulls, 0)), self._are_all_null(found)
        are_some = pc.and_(self._are_of_live_rows(), _is_true(pc.less(nulls, physical)))
        values = pc.if_else(has_none, rows, pc.if_else(are_all, 0, pc.subtract(physical, nulls)))
        return values, pc.or_(pc.or_(has_none, are_all), are_some)

    def _bounds(self, function: Function, found: ColumnStatistics) -> tuple[Array, Array]:
        """Return the least or the greatest value of each file, by its bound."""
        bound: Array = found.low if function == "min" else found.high
        are_all_null = self._are_all_null(found)
        is_exact = pc.and_(self._are_of_live_rows(), pc.is_valid(bound))
        for is_false in (
            pc.greater(found.low, found.high),
            pc.greater_equal(found.null_count, self.statistics.num_records),
        ):
            is_exact = pc.and_not(is_exact, _is_true(is_false))
        if pa.types.is_date(bound.type):
            is_exact = pc.and_(is_exact, _is_true(pc.greater_equal(bound, _FIRST_GREGORIAN)))
        values = pc.if_else(are_all_null, pa.scalar(None, bound.type), bound)
        return values, pc.or_(are_all_null, is_exact)

    def _are_all_null(self, found: ColumnStatistics) -> Array:
        """Return whether each file has nulls alone, and no bound that contradicts that."""
        are_all = _is_true(pc.equal(found.null_count, self.statistics.num_records))
        for bound in (found.low, found.high):
            if bound is not None:
                are_all = pc.and_(are_all, pc.is_null(bound))
        return are_all

    def _are_of_live_rows(self) -> Array:
        """Return whether the statistics of a file are exactly those of its live rows."""
        has_vector = pc.is_valid(self.statistics.files.column("deletionVector"))
        return pc.and_not(self.statistics.has_tight_bounds, has_vector)


def aggregated(
    parts: Sequence[CountedFiles], wanted: Sequence[Sequence[Wanted]]
) -> pa.Table | None:
    """Answer for the rows of all files.

    Args:
        parts: The files.
        wanted: The columns of the answer, for each part: equal functions and types in all parts.

    Returns:
        The columns in order, named by their places, with a row per combination of values that
        `group` columns have in rows; one row without such a column. None if the log does not know
        the answer for certain.
    """
    tables = [part.values(each) for part, each in zip(parts, wanted, strict=True)]
    known = [table for table in tables if table is not None]
    if len(known) < len(tables):
        return None
    whole = pa.concat_tables(known)
    functions = {str(at): each.function for at, each in enumerate(wanted[0])}
    groups = [name for name, function in functions.items() if function == "group"]
    sums = [name for name, function in functions.items() if function in ("rows", "count")]
    if any(exact_sum(whole[name]) > LARGEST_LONG for name in sums):
        return None  # such a claim is false
    bounds = {name: str(functions[name]) for name in functions if name not in (*groups, *sums)}
    steps = [*((name, "sum", _SUM) for name in sums), *bounds.items()]
    found = whole.group_by(groups, use_threads=False).aggregate(steps)
    renamed = {name: f"{name}_{bounds.get(name, 'sum')}" for name in functions} | dict(
        zip(groups, groups, strict=True)
    )
    return pa.table({name: found[renamed[name]] for name in functions})


def is_answered(
    wanted: Sequence[Wanted], schema: StructType, partition_columns: Collection[str]
) -> bool:
    """Return whether the log may have exact answers for columns of these types."""
    columns = [resolve_column((each.column,), schema) for each in wanted]
    return all(map(_is_answered, wanted, columns, repeat(partition_columns)))


def _is_answered(
    wanted: Wanted, column: ResolvedColumn | None, partition_columns: Collection[str]
) -> bool:
    if wanted.function == "rows":
        return True
    if column is None:
        return False
    data_type = column.data_type
    if wanted.function == "count":
        return arrow_type_of(data_type) is not None  # some writers count the elements of arrays
    if column.path[0] not in partition_columns:
        return wanted.function != "group" and str(data_type) in _EXACT_BOUNDS
    is_plain = isinstance(data_type, DecimalType) or str(data_type) in _PLAIN_PARTITIONS
    return is_plain and column.has_plain_order


def _is_true(mask: Array) -> Array:
    return pc.fill_null(mask, False)
