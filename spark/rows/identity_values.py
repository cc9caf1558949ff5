"""Numbers of identity columns for new rows, given out by the tasks that write them (spec 10.7).

1. The rows are brought into no more tasks than a number n that is known beforehand.
2. Row r of task t gets the number at place `t + r * n` of what is left of the sequence. So no two
   rows get the same, and no task needs to know of another.

No shuffle may follow: if a part of the stage before it is run again, its rows may come in another
order and get each other's numbers, while some of them are in use already.
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
"""Spark's `monotonically_increasing_id` is the task's number above so many bits of the row's."""
_EXHAUSTED = "OPTIMIST_IDENTITY_COLUMN_EXHAUSTED"
_MESSAGE = re.compile(rf"{_EXHAUSTED}:(?P<column>.*?):{_EXHAUSTED}", re.DOTALL)


def missing_identities(schema: StructType, given: Iterable[str]) -> tuple[str, ...]:
    """The identity columns whose numbers a write must give out.

    Args:
        schema: The table's.
        given: The columns that the new rows bring, in any case.

    Raises:
        UsageError: They bring numbers that they may not bring; see `ensure_none_inserted`.
        SchemaError: The metadata of an identity column is damaged.
    """
    names = {name.lower() for name in given}
    ensure_none_inserted(schema, names)
    columns = identity_columns(schema)
    return tuple(column.name for column in columns if column.name.lower() not in names)


def with_identity_values(
    rows: DataFrame, sql: TableSql, missing: Mapping[str, Column]
) -> DataFrame:
    """The rows with the numbers that they lack, and what is generated from these; see the module.

    Args:
        rows: The rows, with the table's columns.
        sql: The SQL of the table, with its schema.
        missing: For identity columns, which rows need a number; true or false, never null.
    """
    if not missing:
        return rows
    num_tasks = _most_tasks(rows.sparkSession)
    place = free_name("__optimist_place", rows.columns)
    # Spark counts on where it evaluates this, so rows that need no number make no gaps.
    counted = sf.when(reduce(or_, missing.values()), sf.monotonically_increasing_id())
    placed = rows.coalesce(num_tasks).withColumn(place, counted)
    numbers = {
        column.name: sf.when(
            missing[column.name], _number(column, column_of(place), num_tasks)
        ).otherwise(column_of(column.name))
        for column in identity_columns(sql.schema)
        if column.name in missing
    }
    numbered = placed.withColumns(numbers).drop(place)
    generated = dict(_generated_again(sql, missing))
    return numbered.withColumns(generated) if generated else numbered


def exhaustion_of(text: str) -> SchemaError | None:
    """The error that a task has raised for want of numbers; None if the text tells of another."""
    found = _MESSAGE.search(text)
    return None if found is None else identity_overflow(found["column"])


def _number(column: IdentityColumn, counted: Column, num_tasks: int) -> Column:
    """The number of a row that Spark has counted as that of its task."""
    task = sf.shiftright(counted, _ROW_BITS)
    place = task + counted.bitwiseAND(sf.lit((1 << _ROW_BITS) - 1)) * sf.lit(num_tasks)
    # The step times the place must fit into 64 bits, too.
    num_left = min(column.num_left, LARGEST_LONG // abs(column.step))
    first = column.first if num_left else 0
    number = sf.lit(first).cast("long") + sf.lit(column.step).cast("long") * place
    failure = sf.raise_error(sf.lit(f"{_EXHAUSTED}:{column.name}:{_EXHAUSTED}")).cast("long")
    is_left = (place < sf.lit(num_left).cast("long")) & (task < num_tasks)
    return sf.when(is_left, number).otherwise(failure)


def _generated_again(sql: TableSql, missing: Mapping[str, Column]) -> Iterable[tuple[str, Column]]:
    """The generated columns that read one of the numbers, for the rows that get one."""
    for item in sql.schema:
        text = generation_expression(item)
        read = _read(text, missing) if text else []
        if text and read:
            made = sql.generated(item.name, text).cast(to_spark_type(item.data_type))
            is_new = reduce(or_, (missing[name] for name in read))
            yield item.name, sf.when(is_new, made).otherwise(column_of(item.name))


def _read(text: str, names: Collection[str]) -> list[str]:
    """Those of the columns that an expression reads; all of them if it can't be told."""
    try:
        read = {name.lower() for name in referenced_columns(text)}
    except SchemaError:
        return list(names)
    return [name for name in names if name.lower() in read]


def _most_tasks(spark: SparkSession) -> int:
    """As many tasks as make the best use of the session."""
    num_tasks = int(spark.conf.get("spark.sql.shuffle.partitions") or 1)
    if is_connect(spark):
        return num_tasks
    return max(num_tasks, spark.sparkContext.defaultParallelism)
