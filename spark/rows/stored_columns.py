"""The columns as data files have them, and their conversion to the table's (spec 6.3, 10.8).

Spark's reader finds columns by the relation's names. So the relation has the physical names, and a
projection over it gives the columns the table's names. Filters and column pruning pass through the
projection.

If columns are found by name, structs are built again from their leaves, so that a query of one leaf
reads only that leaf. Inside arrays and maps the whole value is cast by position. If columns are
found by id, structs are always cast: Spark loses the ids of nested fields when it prunes them, and
would then find nothing.

Integers that became decimals are read as decimals with room for every integer, and cast to the
table's type: Spark's reader refuses narrower decimals, which the preview of type widening allowed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from pyspark.sql import Column
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType as SparkStruct

from optimist.core.predicates.constants import MAX_PRECISION
from optimist.core.schema.type_widening import TYPE_CHANGES
from optimist.core.schema.types import (
    COLUMN_ID,
    PHYSICAL_NAME,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    StructField,
    StructType,
    walk_fields,
)
from optimist.core.schema.void_columns import VOID, holds_void, is_void_throughout
from optimist.core.snapshot.files_view import FilesView
from optimist.spark.rows.file_columns import PARQUET_ID
from optimist.spark.rows.row_shape import column_of
from optimist.spark.spark_schema import to_spark_schema, to_spark_type

__all__ = [
    "READ_BY_ID",
    "is_read_by_id",
    "is_stored_as_named",
    "may_share_paths",
    "stored_schema",
    "table_columns",
]

READ_BY_ID = {"spark.sql.parquet.fieldId.read.enabled": "true"}
"""Options of a relation whose columns are found by their ids."""

_INTEGER_DIGITS = {"byte": 10, "short": 10, "integer": 10, "long": 20}
"""Digits before the point of the narrowest decimal as which Spark reads stored integers."""


def is_read_by_id(view: FilesView) -> bool:
    """Check whether the columns of a version are found in its files by their ids."""
    return view.properties.column_mapping_mode == "id"


def is_stored_as_named(schema: StructType) -> bool:
    """Check whether files hold every column under its own name, and no column is void."""
    return all(_is_plain(item) for item in schema)


def may_share_paths(schema: StructType) -> bool:
    """Check whether one file may hold a column `a.b` and a field `b` of a struct `a`.

    The column may be a dropped one, since column mapping allows drops. Names that the mapping made
    have no dot.
    """
    return any(
        "." in item.physical_name
        or (len(path) > 1 and PHYSICAL_NAME in item.metadata and item.physical_name == item.name)
        for path, item in walk_fields(schema)
    )


def stored_schema(
    schema: StructType, *, by_id: bool, partition_columns: Collection[str] = ()
) -> SparkStruct:
    """Return the schema for Spark's reader: physical names, readable types, no void columns.

    Args:
        schema: Columns of the table.
        by_id: Columns are found by their ids, which the fields then carry.
        partition_columns: Columns that are not in files; they have the table's types.
    """
    readable = StructType(
        tuple(item if item.name in partition_columns else _make_readable(item) for item in schema)
    )
    return to_spark_schema(_stored_struct(readable, by_id=by_id, is_nested=False))


def table_columns(schema: StructType, *, by_id: bool) -> list[Column]:
    """Make the table's columns from the columns of `stored_schema`."""
    return [_table_column(item, by_id=by_id) for item in schema]


def _is_plain(item: StructField) -> bool:
    is_as_it_is = item.physical_name == item.name and _make_readable(item) == item
    return is_as_it_is and _is_plain_type(item.data_type)


def _is_plain_type(data_type: DataType) -> bool:
    if isinstance(data_type, StructType):
        return all(_is_plain(item) for item in data_type)
    if isinstance(data_type, ArrayType):
        return _is_plain_type(data_type.element_type)
    if isinstance(data_type, MapType):
        return _is_plain_type(data_type.key_type) and _is_plain_type(data_type.value_type)
    return data_type != VOID


def _make_readable(item: StructField) -> StructField:
    """Return the field with types as which Spark can read all of its files, old ones too."""
    changes = item.metadata.get(TYPE_CHANGES)
    if not isinstance(changes, (list, tuple)):
        return item
    digits: dict[str, int] = {}
    for change in changes:
        path = change.get("fieldPath", "")
        wanted = _INTEGER_DIGITS.get(change.get("fromType"), 0)
        digits[path] = max(wanted, digits.get(path, 0))
    return replace(item, data_type=_with_room(item.data_type, "", digits))


def _with_room(data_type: DataType, path: str, digits: Mapping[str, int]) -> DataType:
    """Widen decimals to `digits` before the point, by path in the column."""
    if isinstance(data_type, DecimalType):
        scale = data_type.scale
        precision = max(data_type.precision, min(digits.get(path, 0) + scale, MAX_PRECISION))
        return DecimalType(precision, scale)
    below = f"{path}." if path else ""
    if isinstance(data_type, ArrayType):
        element = _with_room(data_type.element_type, f"{below}element", digits)
        return replace(data_type, element_type=element)
    if isinstance(data_type, MapType):
        return replace(
            data_type,
            key_type=_with_room(data_type.key_type, f"{below}key", digits),
            value_type=_with_room(data_type.value_type, f"{below}value", digits),
        )
    return data_type


def _without_void(schema: StructType) -> StructType:
    return StructType(tuple(item for item in schema if not is_void_throughout(item.data_type)))


def _stored_struct(struct: StructType, *, by_id: bool, is_nested: bool) -> StructType:
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
    # With ids, a nested field never has its own name: Spark would remove a cast that changes
    # nothing, and prune the struct below it.
    return f"{item.physical_name}#{item.metadata.get(COLUMN_ID)}" if by_id else item.physical_name


def _with_parquet_id(item: StructField) -> dict[str, object]:
    number = item.metadata.get(COLUMN_ID)
    return dict(item.metadata) if number is None else {**item.metadata, PARQUET_ID: number}


def _stored_type(data_type: DataType, *, by_id: bool) -> DataType:
    if isinstance(data_type, StructType):
        readable = StructType(tuple(map(_make_readable, data_type)))
        return _stored_struct(readable, by_id=by_id, is_nested=True)
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
    if is_void_throughout(item.data_type):
        return sf.lit(None).cast(spark_type).alias(item.name)
    value = _in_table_form(column_of(item.physical_name), item, by_id=by_id)
    (field,) = to_spark_schema(StructType((item,))).fields
    return value.alias(item.name, metadata=field.metadata)


def _in_table_form(value: Column, item: StructField, *, by_id: bool) -> Column:
    data_type = item.data_type
    is_nested = isinstance(data_type, (StructType, ArrayType, MapType))
    is_plain = not is_nested or (_is_plain_type(data_type) and not by_id)
    if is_plain and _make_readable(item) == item:
        return value
    if isinstance(data_type, StructType) and (holds_void(data_type) or not by_id):
        struct = sf.struct(*(_leaf_column(value, inner, by_id=by_id) for inner in data_type))
        return sf.when(value.isNotNull(), struct) if item.nullable else struct
    if not holds_void(data_type):
        return value.cast(to_spark_type(data_type))
    # A cast can't add a field that the file lacks.
    if isinstance(data_type, ArrayType):
        element = data_type.element_type
        return sf.transform(value, lambda part: _part_value(element, part, by_id=by_id))
    if isinstance(data_type, MapType):
        keys, values = data_type.key_type, data_type.value_type
        keyed = sf.transform_keys(value, lambda key, _: _part_value(keys, key, by_id=by_id))
        return sf.transform_values(keyed, lambda _, part: _part_value(values, part, by_id=by_id))
    return value


def _leaf_column(parent: Column, item: StructField, *, by_id: bool) -> Column:
    if is_void_throughout(item.data_type):
        return sf.lit(None).cast(to_spark_type(item.data_type)).alias(item.name)
    inner = parent.getField(_stored_name(item, by_id=by_id))
    return _in_table_form(inner, item, by_id=by_id).alias(item.name)


def _part_value(data_type: DataType, value: Column, *, by_id: bool) -> Column:
    """Return the value of an array's or map's part, which may be read as a wider type."""
    if not holds_void(data_type):
        return value.cast(to_spark_type(data_type))
    return _in_table_form(value, StructField("", data_type), by_id=by_id)
