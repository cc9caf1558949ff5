"""Columns as a data file has them, in the shape of the table (spec 6.3, 10.1, 10.8).

A file may be older than the table's schema: columns and nested fields that came later are null in
it, and columns that were widened are narrower in it. Fields are found by their physical names.
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from optimist.core.arrow_types import to_arrow_type
from optimist.core.errors import TableError
from optimist.core.schema import ArrayType, DataType, MapType, StructType

__all__ = ["conform_column", "find_name"]


def conform_column(values: pa.Array, data_type: DataType, *, column: str = "") -> pa.Array:
    """The values as the Arrow type of a Delta type, nested fields by their physical names.

    Args:
        values: One column of a data file, or of rows that become one.
        data_type: The column's type in the table.
        column: For the error's message.

    Raises:
        TableError: The values do not fit the type (kind `OPTIMIST_DATA_FILE_TYPE_MISMATCH`).
    """
    target = to_arrow_type(data_type)
    if values.type == target:
        return values
    if isinstance(data_type, StructType) and pa.types.is_struct(values.type):
        return _struct(values, data_type, target, column)
    if isinstance(data_type, ArrayType) and _is_list(values.type):
        return _list(values, data_type, target, column)
    if isinstance(data_type, MapType) and pa.types.is_map(values.type):
        return _map(values, data_type, target, column)
    try:
        return values.cast(target)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise TableError(
            f"The column {column or '?'} has the type {values.type} in a data file, and its values "
            f"do not fit {data_type}, the column's type in the table: {error}. The file was "
            "written by an engine that broke the schema; restore an older version of the table.",
            kind="OPTIMIST_DATA_FILE_TYPE_MISMATCH",
            column=column,
            type=str(data_type),
        ) from None


def find_name(names: Iterable[str], wanted: str) -> str | None:
    """The name among some that means the wanted one: the same spelling first, else any case."""
    listed = list(names)
    if wanted in listed:
        return wanted
    folded = wanted.lower()
    return next((name for name in listed if name.lower() == folded), None)


def _struct(values: pa.Array, data_type: StructType, target: pa.DataType, column: str) -> pa.Array:
    names = [item.name for item in values.type]
    children = dict(zip(names, values.flatten(), strict=True))
    parts = []
    for item, arrow_field in zip(data_type, target, strict=True):
        name = find_name(names, item.physical_name)
        if name is None:
            parts.append(pa.nulls(len(values), arrow_field.type))
        else:
            path = f"{column}.{item.name}"
            parts.append(conform_column(children[name], item.data_type, column=path))
    if not parts:
        return values.cast(target)
    return pa.StructArray.from_arrays(parts, fields=list(target), mask=values.is_null())


def _list(values: pa.Array, data_type: ArrayType, target: pa.DataType, column: str) -> pa.Array:
    whole = _from_offset_zero(values.cast(pa.list_(values.type.value_field)))
    path = f"{column}.element"
    elements = conform_column(whole.values, data_type.element_type, column=path)
    return pa.ListArray.from_arrays(whole.offsets, elements, type=target, mask=whole.is_null())


def _map(values: pa.Array, data_type: MapType, target: pa.DataType, column: str) -> pa.Array:
    whole = _from_offset_zero(values)
    keys = conform_column(whole.keys, data_type.key_type, column=f"{column}.key")
    items = conform_column(whole.items, data_type.value_type, column=f"{column}.value")
    return pa.MapArray.from_arrays(whole.offsets, keys, items, target, mask=whole.is_null())


def _is_list(arrow_type: pa.DataType) -> bool:
    return bool(
        pa.types.is_list(arrow_type)
        or pa.types.is_large_list(arrow_type)
        or pa.types.is_fixed_size_list(arrow_type)
    )


def _from_offset_zero(values: pa.Array) -> pa.Array:
    """The same values in memory of their own where they are a slice: masks need that."""
    return pa.concat_arrays([values]) if values.offset else values
