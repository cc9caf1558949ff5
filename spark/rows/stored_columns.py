"""The columns as data files have them, and back to the table's (spec 6.3, 10.8).

Spark's reader finds columns by the names it is given. So the relation has the physical names, and a
projection over it gives the columns their own: filters and pruned columns pass through it.

By name, structs are built anew around their leaves, so that a query of one leaf reads that one;
inside arrays and maps the whole value is cast, position by position. By id, structs are always
cast: Spark forgets the ids of nested fields when it prunes them, and would find nothing.
"""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import Column
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType as SparkStruct

from optimist.core.schema.types import ArrayType, DataType, MapType, StructField, StructType
from optimist.spark.rows.row_shape import column_of
from optimist.spark.spark_schema import VOID, to_spark_schema, to_spark_type

__all__ = ["READ_BY_ID", "is_stored_as_named", "logical_path", "stored_schema", "table_columns"]

READ_BY_ID = {"spark.sql.parquet.fieldId.read.enabled": "true"}
"""Options of a relation whose columns are found by their ids."""

_ID = "delta.columnMapping.id"
_PARQUET_ID = "parquet.field.id"


def is_stored_as_named(schema: StructType) -> bool:
    """Whether every column is in the files under its own name; columns of type void are in none."""
    return all(_is_plain(item) for item in schema)


def stored_schema(schema: StructType, *, by_id: bool) -> SparkStruct:
    """What Spark's reader is to look for: physical names, the table's types, no void columns.

    Args:
        schema: Columns of the table.
        by_id: Columns are found by their ids, which the fields then carry.
    """
    return to_spark_schema(_stored(schema, by_id=by_id, is_nested=False))


def table_columns(schema: StructType, *, by_id: bool) -> list[Column]:
    """The table's columns, made of those of `stored_schema`."""
    return [_table_column(item, by_id=by_id) for item in schema]


def logical_path(path: tuple[str, ...], schema: StructType) -> tuple[str, ...] | None:
    """The table's names for a path of physical ones; None where there is no such column."""
    names: list[str] = []
    level: DataType = schema
    for wanted in path:
        fields = level.fields if isinstance(level, StructType) else ()
        found = next((item for item in fields if item.physical_name == wanted), None)
        if found is None:
            return None
        names.append(found.name)
        level = found.data_type
    return tuple(names)


def _is_plain(item: StructField) -> bool:
    return item.physical_name == item.name and _is_plain_type(item.data_type)


def _is_plain_type(data_type: DataType) -> bool:
    if isinstance(data_type, StructType):
        return all(_is_plain(item) for item in data_type)
    if isinstance(data_type, ArrayType):
        return _is_plain_type(data_type.element_type)
    if isinstance(data_type, MapType):
        return _is_plain_type(data_type.key_type) and _is_plain_type(data_type.value_type)
    return data_type != VOID


def _without_void(schema: StructType) -> StructType:
    return StructType(tuple(item for item in schema if item.data_type != VOID))


def _stored(struct: StructType, *, by_id: bool, is_nested: bool) -> StructType:
    return StructType(
        tuple(
            replace(
                item,
                name=_stored_name(item, by_id=by_id and is_nested),
                data_type=_stored_type(item.data_type, by_id=by_id),
                metadata=_with_parquet_id(item) if by_id else item.metadata,
            )
            for item in _without_void(struct)
        )
    )


def _stored_name(item: StructField, *, by_id: bool) -> str:
    # Never the column's own name where an id decides: a cast that changes nothing would be taken
    # out, and the struct below it pruned.
    return f"{item.physical_name}#{item.metadata.get(_ID)}" if by_id else item.physical_name


def _with_parquet_id(item: StructField) -> dict[str, object]:
    number = item.metadata.get(_ID)
    return dict(item.metadata) if number is None else {**item.metadata, _PARQUET_ID: number}


def _stored_type(data_type: DataType, *, by_id: bool) -> DataType:
    if isinstance(data_type, StructType):
        return _stored(data_type, by_id=by_id, is_nested=True)
    if isinstance(data_type, ArrayType):
        return replace(data_type, element_type=_stored_type(data_type.element_type, by_id=by_id))
    if isinstance(data_type, MapType):
        return replace(
            data_type,
            key_type=_stored_type(data_type.key_type, by_id=by_id),
            value_type=_stored_type(data_type.value_type, by_id=by_id),
        )
    return data_type


def _table_column(item: StructField, *, by_id: bool) -> Column:
    spark_type = to_spark_type(item.data_type)
    if item.data_type == VOID:
        return sf.lit(None).cast(spark_type).alias(item.name)
    value = _renamed(column_of(item.physical_name), item.data_type, by_id=by_id)
    (field,) = to_spark_schema(StructType((item,))).fields
    return value.alias(item.name, metadata=field.metadata)


def _renamed(value: Column, data_type: DataType, *, by_id: bool) -> Column:
    is_nested = isinstance(data_type, (StructType, ArrayType, MapType))
    if not is_nested or (_is_plain_type(data_type) and not by_id):
        return value
    if isinstance(data_type, StructType) and not by_id:
        leaves = (_leaf(value, item) for item in data_type)
        return sf.when(value.isNotNull(), sf.struct(*leaves))
    return value.cast(to_spark_type(data_type))


def _leaf(parent: Column, item: StructField) -> Column:
    if item.data_type == VOID:
        return sf.lit(None).cast(to_spark_type(item.data_type)).alias(item.name)
    inner = parent.getField(item.physical_name)
    return _renamed(inner, item.data_type, by_id=False).alias(item.name)
