"""Numbers of identity columns for new rows, which the writing tasks assign (spec 10.7).

1. The rows are coalesced into at most n tasks, where n is known beforehand.
2. Row r of task t gets the number at index `t + r * n` of the rest of the sequence. So no two rows
   get the same number, and no task needs to know of another.

No shuffle may follow. If Spark runs a part of the stage before a shuffle again, its rows may come
in another order and swap their numbers, while some of these numbers are in use already.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from optimist.core.errors import SchemaError
from optimist.core.schema.generated_columns import generation_expression, referenced_columns
from optimist.core.schema.identity_columns import (
    IdentityColumn,
    ensure_none_inserted,
    identity_columns,
    identity_overflow,
)
from optimist.core.schema.types import StructType
from optimist.core.values.field_types import LARGEST_LONG
from optimist.spark.rows.row_shape import column_of, free_name
from optimist.spark.session.pyspark_versions import is_connect
from optimist.spark.spark_schema import to_spark_type
from optimist.spark.sql.table_sql import TableSql

__all__ = ["exhaustion_of", "missing_identities", "with_identity_values"]

_ROW_BITS = 33
"""Bits of the row's number in Spark's `monotonically_increasing_id`, below the task's number."""
_EXHAUSTED = "OPTIMIST_IDENTITY_COLUMN_EXHAUSTED"
_MESSAGE = re.compile(rf"{_EXHAUSTED}:(?P<column>.*?):{_EXHAUSTED}", re.DOTALL)


def missing_identities(schema: StructType, given: Iterable[str]) -> tuple[str, ...]:
    """Return the identity columns whose numbers a write must assign.

    Args:
        schema: The table's schema.
        given: The columns of the new rows, in any case.

    Raises:
        UsageError: The rows have numbers that they must not have; see `ensure_none_inserted`.
        SchemaError: The metadata of an identity column is damaged.
    """
    names = {name.lower() for name in given}
    ensure_none_inserted(schema, names)
    columns = identity_columns(schema)
    return tuple(column.name for column in columns if column.name.lower() not in names)


def with_identity_values(
    rows: DataFrame, sql: TableSql, missing: Mapping[str, Column]
) -> DataFrame:
    """Add missing numbers to rows, and recompute the columns generated from them.

    See the module.

    Args:
        rows: The rows, with the table's columns.
        sql: The SQL of the table, with its schema.
        missing: Maps identity columns to conditions for the rows that need a number; never null.
    """
    if not missing:
        return rows
    num_tasks = _most_tasks(rows.sparkSession)
    number_index = free_name("__optimist_place", rows.columns)
    # Spark counts only rows for which it evaluates this, so rows with a number leave no gaps.
    counted = sf.when(reduce(or_, missing.values()), sf.monotonically_increasing_id())
    indexed = rows.coalesce(num_tasks).withColumn(number_index, counted)
    numbers = {
        column.name: sf.when(
            missing[column.name], _number_of_row(column, column_of(number_index), num_tasks)
        ).otherwise(column_of(column.name))
        for column in identity_columns(sql.schema)
        if column.name in missing
    }
    numbered = indexed.withColumns(numbers).drop(number_index)
    generated = dict(_recompute_generated(sql, missing))
    return numbered.withColumns(generated) if generated else numbered


def exhaustion_of(text: str) -> SchemaError | None:
    """Return the error of a task that ran out of numbers, or None for another text."""
    found = _MESSAGE.search(text)
    return None if found is None else identity_overflow(found["column"])


def _number_of_row(column: IdentityColumn, counted: Column, num_tasks: int) -> Column:
    """Return the number of a row from Spark's count of it in its task."""
    task = sf.shiftright(counted, _ROW_BITS)
    index = task + counted.bitwiseAND(sf.lit((1 << _ROW_BITS) - 1)) * sf.lit(num_tasks)
    # The step times the index must fit into 64 bits, too.
    num_left = min(column.num_left, LARGEST_LONG // abs(column.step))
    first = column.first if num_left else 0
    number = sf.lit(first).cast("long") + sf.lit(column.step).cast("long") * index
    failure = sf.raise_error(sf.lit(f"{_EXHAUSTED}:{column.name}:{_EXHAUSTED}")).cast("long")
    is_left = (index < sf.lit(num_left).cast("long")) & (task < num_tasks)
    return sf.when(is_left, number).otherwise(failure)


def _recompute_generated(
    sql: TableSql, missing: Mapping[str, Column]
) -> Iterable[tuple[str, Column]]:
    """Yield the generated columns that read a new number, for the rows that get one."""
    for item in sql.schema:
        text = generation_expression(item)
        read = _columns_read(text, missing) if text else []
        if text and read:
            generated_value = sql.generated(item.name, text).cast(to_spark_type(item.data_type))
            is_new = reduce(or_, (missing[name] for name in read))
            yield item.name, sf.when(is_new, generated_value).otherwise(column_of(item.name))


def _columns_read(text: str, names: Collection[str]) -> list[str]:
    """Return the columns that an expression reads, or all of them if that is unknown."""
    try:
        read = {name.lower() for name in referenced_columns(text)}
    except SchemaError:
        return list(names)
    return [name for name in names if name.lower() in read]


def _most_tasks(spark: SparkSession) -> int:
    """Return the number of tasks that makes the best use of the session."""
    num_tasks = int(spark.conf.get("spark.sql.shuffle.partitions") or 1)
    if is_connect(spark):
        return num_tasks
    return max(num_tasks, spark.sparkContext.defaultParallelism)
