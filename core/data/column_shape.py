"""Columns as a data file has them, in the shape of the table (spec 6.3, 10.1, 10.8).

A file may be older than the table's schema: columns and nested fields that came later are null in
it, and columns that were widened are narrower in it. Fields are found by their physical names, or
by their ids where the table's columns are mapped by id.
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from optimist.core.errors import TableError
from optimist.core.schema.arrow_types import to_arrow_type
from optimist.core.schema.types import (
    ArrayType,
    DataType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
)

__all__ = ["conform_column", "find_field", "find_name"]

_FIELD_ID = b"PARQUET:field_id"
_VARIANT = PrimitiveType("variant")


def conform_column(
    values: pa.Array, data_type: DataType, *, column: str = "", by_id: bool = False
) -> pa.Array:
    """The values as the Arrow type of a Delta type.

    Args:
        values: One column of a data file, or of rows that become one.
        data_type: The column's type in the table.
        column: For the error's message.
        by_id: Nested fields are found by their ids; else by their physical names.

    Raises:
        TableError: The values do not fit the type (kind `OPTIMIST_DATA_FILE_TYPE_MISMATCH`).
    """
    target = to_arrow_type(data_type)
    if isinstance(values, pa.ExtensionArray):
        values = values.storage
    if values.type == target:
        return values
    if isinstance(data_type, StructType) and pa.types.is_struct(values.type):
        return _struct(values, data_type, column=column, by_id=by_id)
    if isinstance(data_type, ArrayType) and _is_list(values.type):
        return _list(values, data_type, column=column, by_id=by_id)
    if isinstance(data_type, MapType) and pa.types.is_map(values.type):
        return _map(values, data_type, column=column, by_id=by_id)
    try:
        if data_type == _VARIANT:
            return _variant(values, target)
        # What is finer than microseconds is cut off, as Spark does; all else must fit.
        return values.cast(target, safe=not _is_in_nanoseconds(values.type))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise TableError(
            f"The column {column or '?'} has the type {values.type} in a data file, and its values "
            f"do not fit {data_type}, the column's type in the table: {error}. The file was "
            "written by an engine that broke the schema; restore an older version of the table.",
            kind="OPTIMIST_DATA_FILE_TYPE_MISMATCH",
            column=column,
            type=str(data_type),
        ) from None


def find_field(fields: Iterable[pa.Field], item: StructField, *, by_id: bool) -> int | None:
    """Where among a file's fields a field of the table stands; None if the file lacks it.

    Args:
        fields: The fields of one level of the file.
        item: The field of the table.
        by_id: Look for its id. Its name is looked for if it has none, or no field of the level has.
    """
    listed = list(fields)
    number = item.metadata.get("delta.columnMapping.id")
    if by_id and number is not None:
        ids = [(field.metadata or {}).get(_FIELD_ID) for field in listed]
        if any(found is not None for found in ids):
            wanted = str(number).encode()
            return ids.index(wanted) if wanted in ids else None
    names = [field.name for field in listed]
    name = find_name(names, item.physical_name)
    return None if name is None else names.index(name)


def find_name(names: Iterable[str], wanted: str) -> str | None:
    """The name among some that means the wanted one: the same spelling first, else any case."""
    listed = list(names)
    if wanted in listed:
        return wanted
    folded = wanted.lower()
    return next((name for name in listed if name.lower() == folded), None)


def _struct(values: pa.Array, data_type: StructType, *, column: str, by_id: bool) -> pa.Array:
    target = to_arrow_type(data_type)
    children = values.flatten()
    parts = []
    for item, arrow_field in zip(data_type, target, strict=True):
        index = find_field(values.type, item, by_id=by_id)
        if index is None:
            parts.append(pa.nulls(len(values), arrow_field.type))
        else:
            path = f"{column}.{item.name}"
            child = conform_column(children[index], item.data_type, column=path, by_id=by_id)
            parts.append(child)
    if not parts:
        return values.cast(target)
    return pa.StructArray.from_arrays(parts, fields=list(target), mask=values.is_null())


def _list(values: pa.Array, data_type: ArrayType, *, column: str, by_id: bool) -> pa.Array:
    target = to_arrow_type(data_type)
    whole = _from_offset_zero(values.cast(pa.list_(values.type.value_field)))
    path = f"{column}.element"
    elements = conform_column(whole.values, data_type.element_type, column=path, by_id=by_id)
    return pa.ListArray.from_arrays(whole.offsets, elements, type=target, mask=whole.is_null())


def _map(values: pa.Array, data_type: MapType, *, column: str, by_id: bool) -> pa.Array:
    target = to_arrow_type(data_type)
    whole = _from_offset_zero(values)
    keys = conform_column(whole.keys, data_type.key_type, column=f"{column}.key", by_id=by_id)
    items = conform_column(whole.items, data_type.value_type, column=f"{column}.value", by_id=by_id)
    return pa.MapArray.from_arrays(whole.offsets, keys, items, target, mask=whole.is_null())


def _variant(values: pa.Array, target: pa.DataType) -> pa.Array:
    """A variant's two binaries, whatever order they have in the file; shredded ones do not fit."""
    present = values.type.names if pa.types.is_struct(values.type) else []
    if sorted(present) != ["metadata", "value"]:
        raise pa.ArrowInvalid("it is shredded, or no variant at all")
    children = dict(zip(present, values.flatten(), strict=True))
    parts = [children[item.name].cast(item.type).fill_null(b"") for item in target]
    return pa.StructArray.from_arrays(parts, fields=list(target), mask=values.is_null())


def _is_in_nanoseconds(arrow_type: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(arrow_type) and arrow_type.unit == "ns")


def _is_list(arrow_type: pa.DataType) -> bool:
    return bool(
        pa.types.is_list(arrow_type)
        or pa.types.is_large_list(arrow_type)
        or pa.types.is_fixed_size_list(arrow_type)
    )


def _from_offset_zero(values: pa.Array) -> pa.Array:
    """The same values in memory of their own where they are a slice: masks need that."""
    return pa.concat_arrays([values]) if values.offset else values
