"""Rows of a table in the form in which Spark's writer stores them (spec 6.3, 10.8)."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from optimist.core.schema.column_mapping import file_schema, is_mapped
from optimist.core.schema.types import (
    COLUMN_ID,
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
)
from optimist.core.schema.void_columns import VOID, holds_void, without_void
from optimist.spark.rows.row_shape import column_of
from optimist.spark.spark_schema import to_spark_type

__all__ = ["PARQUET_ID", "file_columns"]

PARQUET_ID = "parquet.field.id"
"""The key in a field's metadata by which Spark reads and writes the id of a Parquet column."""


def file_columns(rows: DataFrame, schema: StructType) -> DataFrame:
    """Return the rows with the names of files, at every depth, and the ids that Spark writes.

    Args:
        rows: Columns of the table without void ones, in its types; a partition column may be text.
            Other columns do not change.
        schema: The table's schema.
    """
    nested = {item.name: item for item in schema if holds_void(item.data_type)}
    if nested:
        kept = (_column_without_void(name, nested.get(name)) for name in rows.columns)
        rows = rows.select(*kept)
    if not is_mapped(schema):
        return rows
    held = without_void(schema)
    stored = dict(zip(held.names, file_schema(held), strict=True))
    columns = (_stored_column(column_of(name), name, stored.get(name)) for name in rows.columns)
    return rows.select(*columns)


def _column_without_void(name: str, item: StructField | None) -> Column:
    value = column_of(name)
    return value if item is None else _remove_void_fields(value, item.data_type).alias(name)


def _remove_void_fields(value: Column, data_type: DataType) -> Column:
    """Remove a struct's void fields, which written arrays and maps never have."""
    if not (isinstance(data_type, StructType) and holds_void(data_type)):
        return value
    parts = (
        _remove_void_fields(value.getField(item.name), item.data_type).alias(item.name)
        for item in data_type
        if item.data_type != VOID
    )
    return sf.when(value.isNotNull(), sf.struct(*parts))


def _stored_column(value: Column, name: str, item: StructField | None) -> Column:
    if item is None:
        return value.alias(name)
    if isinstance(item.data_type, (StructType, ArrayType, MapType)):
        # The cast renames fields by position. It can't make them NOT NULL, and need not.
        nullable = StructType((item,)).as_nullable().map_fields(_with_parquet_id)
        value = value.cast(to_spark_type(nullable.fields[0].data_type))
    return value.alias(item.name, metadata=_with_parquet_id(item).metadata)


def _with_parquet_id(item: StructField) -> StructField:
    number = item.metadata.get(COLUMN_ID)
    metadata = {} if number is None else {PARQUET_ID: number}
    return StructField(item.name, item.data_type, item.nullable, metadata)
