"""Arrangement of rows by several columns, so that each Spark partition is one file (spec 10.14).

`FileLayout` assigns each row to a file, by a sample of the rows. This module turns it into SQL for
the executors. Comparisons with the bounds give each column's part of a row's number in Z-order. For
Hilbert's curve, a table gives one digit after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf
from pyspark.sql import types as st

from optimist.core.maintenance.optimize.row_order import (
    SAMPLED_ROWS,
    TIE_BITS,
    FileLayout,
    RowOrder,
)
from optimist.core.maintenance.optimize.space_curve import MAX_RANK_BITS, hilbert_table
from optimist.core.schema.stats_property import ColumnPath
from optimist.spark.rows.row_shape import free_name, quoted
from optimist.spark.session.pyspark_versions import partitioned_by_number

__all__ = ["arranged"]

_CASES = 16
"""A search among n bounds reads n / 16 of them, and then 16."""
_SHARE_IF_UNKNOWN = 0.01
_INTEGERS = (st.ByteType, st.ShortType, st.IntegerType, st.LongType, st.BooleanType)
_FLOATS = (st.FloatType, st.DoubleType)


def arranged(
    rows: DataFrame, order: RowOrder, num_files: int, *, num_rows: int | None
) -> DataFrame:
    """Partition the rows, so that each partition becomes one file.

    Args:
        rows: The rows; the columns of the order are read twice.
        order: The order.
        num_files: The number of files.
        num_rows: The number of rows; None if it is unknown.
    """
    keys = [_sort_key(rows, path) for path in order.columns]
    names = [f"k{index}" for index in range(len(keys))]
    share = min(SAMPLED_ROWS / num_rows, 1.0) if num_rows else _SHARE_IF_UNKNOWN
    wanted = [sf.expr(key).alias(name) for key, name in zip(keys, names, strict=True)]
    sample = rows.select(*wanted).sample(fraction=share, seed=0).toArrow()
    layout = FileLayout.of(order, [sample[name] for name in names], num_files)
    return _Numbering(rows, layout).partitioned(keys)


class _Numbering:
    """Columns added to rows, the last of which is the number of each row's file."""

    def __init__(self, rows: DataFrame, layout: FileLayout) -> None:
        self._rows = rows
        self._layout = layout
        self._names = list(rows.columns)

    def partitioned(self, keys: Sequence[str]) -> DataFrame:
        """Return the rows with a partition for each file."""
        layout, columns = self._layout, self._rows.columns
        values = [self._add("key", key) for key in keys]
        parts = [
            _search_sql(value, list(map(_literal_sql, bounds)), digits)
            for value, bounds, digits in zip(
                values, layout.bounds, layout.order.digits, strict=True
            )
        ]
        index = self._add("place", " + ".join(parts))
        if layout.order.is_hilbert:
            index = self._add_hilbert(index, len(keys))
        # A task that runs again draws the same numbers: the seed belongs to the partition.
        tie = f"CAST(floor(rand(0) * {1 << TIE_BITS}) AS BIGINT)"
        fine = self._add("place", f"{index} * {1 << TIE_BITS} + {tie}")
        numbers = list(range(len(layout.splits) + 1))
        splits = [f"{split}L" for split in layout.splits]
        number = self._add("file", f"CAST({_search_sql(fine, splits, numbers)} AS INT)")
        found = partitioned_by_number(self._rows, len(numbers), number)
        return found.select(*map(quoted, columns))

    def _add_hilbert(self, z_index: str, num_columns: int) -> str:
        """Add the column with the row's index on Hilbert's curve (see `hilbert_places`)."""
        table = ", ".join(map(str, hilbert_table(num_columns).steps))
        mask = (1 << num_columns) - 1
        before, digits = "0", []
        for level in reversed(range(MAX_RANK_BITS)):
            shift = level * num_columns
            digit = f"(shiftright({z_index}, {shift}) & {mask})"
            index = f"CAST(({before} & ~{mask}) + {digit} AS INT) + 1"
            # A separate column: an expression that uses the previous one twice would double its
            # size.
            before = self._add("step", f"element_at(array({table}), {index})")
            digits.append(f"shiftleft(CAST({before} & {mask} AS BIGINT), {shift})")
        return self._add("place", " + ".join(digits))

    def _add(self, name: str, sql: str) -> str:
        free = free_name(f"__optimist_{name}", self._names)
        self._names.append(free)
        self._rows = self._rows.withColumn(free, sf.expr(sql))
        return quoted(free)


def _sort_key(rows: DataFrame, path: ColumnPath) -> str:
    """Return the column as a number, a decimal or bytes, in the same order."""
    column = ".".join(map(quoted, path))
    data_type = rows.select(column).schema[0].dataType
    if isinstance(data_type, _INTEGERS):
        return f"CAST({column} AS BIGINT)"
    if isinstance(data_type, _FLOATS):
        return f"CAST({column} AS DOUBLE)"
    if isinstance(data_type, st.DecimalType | st.BinaryType):
        return column
    if isinstance(data_type, st.DateType):
        return f"CAST(unix_date({column}) AS BIGINT)"
    if isinstance(data_type, st.TimestampType | st.TimestampNTZType):
        return f"unix_micros(CAST({column} AS TIMESTAMP))"
    return f"CAST(CAST({column} AS STRING) AS BINARY)"


def _literal_sql(bound: pa.Scalar) -> str:
    value = bound.as_py()
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    if isinstance(value, Decimal):
        return f"CAST('{value:f}' AS DECIMAL({bound.type.precision}, {bound.type.scale}))"
    return f"CAST('{value}' AS {'DOUBLE' if isinstance(value, float) else 'BIGINT'})"


def _search_sql(column: str, bounds: Sequence[str], values: Sequence[int]) -> str:
    """Return SQL for the value at the number of bounds not above the column.

    Null gets the first value.
    """
    groups = [range(at, min(at + _CASES, len(bounds))) for at in range(0, len(bounds), _CASES)]
    cases = []
    for group in groups:
        inner = "".join(f" WHEN {column} < {bounds[at]} THEN {values[at]}L" for at in group)
        following = f"{column} < {bounds[group.stop]}" if group.stop < len(bounds) else "TRUE"
        cases.append(f" WHEN {following} THEN CASE{inner} ELSE {values[group.stop]}L END")
    if not cases:
        return f"{values[0]}L"
    return f"CASE WHEN {column} IS NULL THEN {values[0]}L{''.join(cases)} END"
