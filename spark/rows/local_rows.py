"""Small Arrow tables as DataFrames, in classic sessions and in Spark Connect."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import LongType, StructField, StructType, TimestampType

from optimist.core.schema.arrow_types import from_arrow_schema
from optimist.spark.session.jvm import Jvm, frame_of_rows
from optimist.spark.session.pyspark_versions import is_connect
from optimist.spark.spark_schema import to_spark_schema

__all__ = ["answer_frame", "local_frame", "numbers_frame", "result_frame", "spark_columns"]


def local_frame(spark: SparkSession, table: pa.Table, schema: StructType) -> DataFrame:
    """Return a DataFrame of the rows, as part of the plan and without a job.

    Args:
        spark: The session.
        table: Columns in the order and of the types of `schema` (timestamps in microseconds).
        schema: Spark's types of the columns.
    """
    if is_connect(spark):
        return spark.createDataFrame(table, schema)
    return frame_of_rows(Jvm.of(spark), table, schema)


def numbers_frame(spark: SparkSession, row: Mapping[str, int]) -> DataFrame:
    """Return a DataFrame with one row of numbers, by the names of their columns."""
    schema = StructType([StructField(name, LongType()) for name in row])
    table = pa.table({name: pa.array([value], pa.int64()) for name, value in row.items()})
    return answer_frame(spark, table, schema)


def answer_frame(spark: SparkSession, table: pa.Table, schema: StructType) -> DataFrame:
    """Return a command's result as a frame, without a request to Spark's server.

    `createDataFrame` would ask the server for its conf. But a command that has committed must
    report success even if the server is gone by then.

    Args:
        spark: The session.
        table: As for `local_frame`; few rows, without timestamps.
        schema: As for `local_frame`.
    """
    if not is_connect(spark):
        return local_frame(spark, table, schema)
    # The client's classes need packages that classic sessions don't need.
    from pyspark.sql.connect.dataframe import DataFrame as ConnectFrame
    from pyspark.sql.connect.plan import LocalRelation

    session: Any = spark
    frame: DataFrame = ConnectFrame(LocalRelation(table, schema=schema.json()), session)
    return frame


def result_frame(spark: SparkSession, rows: pa.Table) -> DataFrame:
    """Return the result of a statement as a DataFrame.

    Args:
        spark: The session.
        rows: The rows, with the columns of `result_columns`.
    """
    schema = spark_columns(rows.schema)
    has_times = any(isinstance(field.dataType, TimestampType) for field in schema.fields)
    return (local_frame if has_times else answer_frame)(spark, rows, schema)


def spark_columns(columns: pa.Schema) -> StructType:
    """Return the columns of a statement's result in Spark's types."""
    return to_spark_schema(from_arrow_schema(columns))
