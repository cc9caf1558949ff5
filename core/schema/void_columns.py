"""Void columns: the type of a bare NULL, in schemas but in no data file (spec 6.3).

Readers find no such column in the files and return nulls, at any depth. Writers leave it out, which
is not always possible: an array or a map needs elements, and a struct or a file needs a column.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from optimist.core.errors import SchemaError
from optimist.core.errors.foreign_text import shown
from optimist.core.schema.types import (
    ArrayType,
    DataType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
    holds_type,
)

__all__ = [
    "VOID",
    "ensure_storable",
    "holds_void",
    "is_void_throughout",
    "no_place_for_void",
    "placeless_void",
    "without_void",
]

VOID = PrimitiveType("void")


def holds_void(data_type: DataType) -> bool:
    """Return whether a type is void, or has a void part at any depth."""
    return holds_type(data_type, VOID)


def is_void_throughout(data_type: DataType) -> bool:
    """Return whether a type is void, or made only of void parts, so that no file holds it."""
    if isinstance(data_type, StructType):
        return len(data_type) > 0 and all(is_void_throughout(item.data_type) for item in data_type)
    if isinstance(data_type, ArrayType):
        return is_void_throughout(data_type.element_type)
    if isinstance(data_type, MapType):
        return any(map(is_void_throughout, (data_type.key_type, data_type.value_type)))
    return data_type == VOID


def without_void(schema: StructType) -> StructType:
    """Return the columns and struct fields that files hold. Arrays and maps stay the same."""
    return StructType(
        tuple(
            replace(item, data_type=without_void(item.data_type))
            if isinstance(item.data_type, StructType)
            else item
            for item in schema
            if item.data_type != VOID
        )
    )


def placeless_void(item: StructField, *, is_inside_list: bool = False) -> str | None:
    """Return the path of the type with a void part that no file can leave out, or None.

    It is an array or a map, a type inside one at any depth, or a struct of only void.
    """
    is_struct = isinstance(item.data_type, StructType)
    parts = _parts(item)
    voids = [part.data_type == VOID for part in parts]
    if any(voids) and (is_inside_list or not is_struct or all(voids)):
        return item.name
    inside = is_inside_list or not is_struct
    found = (placeless_void(part, is_inside_list=inside) for part in parts)
    return next((path for path in found if path is not None), None)


def _parts(item: StructField) -> tuple[StructField, ...]:
    """Return the direct parts of a field's type, named by their paths."""
    data_type, name = item.data_type, item.name
    if isinstance(data_type, StructType):
        return tuple(StructField(f"{name}.{part.name}", part.data_type) for part in data_type)
    if isinstance(data_type, ArrayType):
        return (StructField(f"{name}.element", data_type.element_type),)
    if isinstance(data_type, MapType):
        key = StructField(f"{name}.key", data_type.key_type)
        return (key, StructField(f"{name}.value", data_type.value_type))
    return ()


def _empty_struct(item: StructField) -> str | None:
    """Return the path of a struct without fields, at any depth, or None."""
    if isinstance(item.data_type, StructType) and not len(item.data_type):
        return item.name
    return next((path for path in map(_empty_struct, _parts(item)) if path is not None), None)


def ensure_storable(schema: StructType, partition_columns: Collection[str]) -> None:
    """Refuse a table for which no data file can be written.

    Raises:
        SchemaError: A struct has no fields (`DELTA_CANNOT_WRITE_EMPTY_SCHEMA.STRUCT_NO_FIELDS`,
            fields `column`, `path`). Void is in an array or a map, or is all of a struct
            (`DELTA_COMPLEX_TYPE_COLUMN_CONTAINS_NULL_TYPE`, fields `column`, `path`) or of the
            table (`DELTA_EMPTY_DATA`). Or only partition columns have values
            (`DELTA_NON_PARTITION_COLUMN_ABSENT`).
    """
    for item in schema:
        empty = _empty_struct(item)
        if empty is not None:
            raise SchemaError(
                f"The column {shown(item.name)} of type {shown(item.data_type)} can't be written: "
                f"the struct at {shown(empty)} has no fields, and Parquet has no such structs. "
                "Nothing was written. Give it a field, or drop it.",
                kind="DELTA_CANNOT_WRITE_EMPTY_SCHEMA.STRUCT_NO_FIELDS",
                column=item.name,
                path=empty,
            )
        path = placeless_void(item)
        if path is not None:
            raise no_place_for_void(item, path)
    present = {item.name for item in schema if item.data_type != VOID}
    if not present:
        raise SchemaError(
            "All columns are void, the type of a bare NULL, for which data files hold no "
            "values. Nothing was written. Cast one of them to a type, as in CAST(NULL AS "
            "STRING), or give the table's column another type.",
            kind="DELTA_EMPTY_DATA",
        )
    if not present - set(partition_columns):
        raise SchemaError(
            "All columns with values are partition columns, so no column is left for the data "
            "files. Nothing was written. Partition by fewer columns.",
            kind="DELTA_NON_PARTITION_COLUMN_ABSENT",
        )


def no_place_for_void(item: StructField, path: str) -> SchemaError:
    """Return the error for a column with a part that no file can leave out."""
    return SchemaError(
        f"The column {shown(item.name)} of type {shown(item.data_type)} can't hold values "
        f"at {shown(path)}, where its type is void, the type of a bare NULL. Nothing was "
        "written. Cast the NULL to a type, or drop it; a column of the table gets another type by "
        "ALTER TABLE.",
        kind="DELTA_COMPLEX_TYPE_COLUMN_CONTAINS_NULL_TYPE",
        column=item.name,
        path=path,
    )
