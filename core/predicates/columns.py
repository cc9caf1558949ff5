"""The columns of an Arrow table as typed arrays, found by their names in any case."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.predicates.tree import Column
from optimist.core.schema.arrow_types import to_arrow_type
from optimist.core.schema.types import (
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    PrimitiveType,
    StructType,
)

__all__ = ["Lookup", "TypedArray", "table_lookup"]

Array: TypeAlias = Any
"""A pyarrow.Array or pyarrow.ChunkedArray."""


@dataclass(frozen=True, slots=True)
class TypedArray:
    """A column and its Delta type. Timestamps are microseconds, in UTC if they are instants."""

    values: Array
    data_type: DataType


Lookup: TypeAlias = Callable[[Column], TypedArray | None]


def table_lookup(table: pa.Table) -> Lookup:
    """Return a function that finds the columns of a table, and the fields of its structs."""

    def lookup(column: Column) -> TypedArray | None:
        values = _top_level(table, column.path[0])
        for name in column.path[1:]:
            values = None if values is None else _find_child(values, name)
        return None if values is None else _add_type(values)

    return lookup


def _top_level(table: pa.Table, name: str) -> Array | None:
    index = _find_index(table.schema.names, name)
    return None if index is None else table.column(index)


def _find_child(values: Array, name: str) -> Array | None:
    if not pa.types.is_struct(values.type):
        return None
    names = [values.type.field(i).name for i in range(values.type.num_fields)]
    index = _find_index(names, name)
    return None if index is None else pc.struct_field(values, [index])


def _find_index(names: list[str], name: str) -> int | None:
    """Return the index of a name, the exact match first, or None if several match."""
    for candidates in (
        [i for i, item in enumerate(names) if item == name],
        [i for i, item in enumerate(names) if item.lower() == name.lower()],
    ):
        if candidates:
            return candidates[0] if len(candidates) == 1 else None
    return None


_ARROW_NAMES = {
    pa.int8(): "byte",
    pa.int16(): "short",
    pa.int32(): "integer",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.bool_(): "boolean",
    pa.string(): "string",
    pa.large_string(): "string",
    pa.binary(): "binary",
    pa.large_binary(): "binary",
    pa.date32(): "date",
}


def _add_type(values: Array) -> TypedArray:
    """Return the column with its Delta type. An unknown type counts as a struct."""
    arrow_type = values.type
    if pa.types.is_dictionary(arrow_type):
        return _add_type(values.cast(arrow_type.value_type))
    if arrow_type in _ARROW_NAMES:
        return TypedArray(values, PrimitiveType(_ARROW_NAMES[arrow_type]))
    if pa.types.is_decimal(arrow_type) and arrow_type.precision <= 38 and arrow_type.scale >= 0:
        wide = pa.decimal128(arrow_type.precision, arrow_type.scale)
        return TypedArray(values.cast(wide), DecimalType(arrow_type.precision, arrow_type.scale))
    if pa.types.is_timestamp(arrow_type) and arrow_type.unit != "ns":
        name = "timestamp_ntz" if arrow_type.tz is None else "timestamp"
        plain = pa.timestamp("us", tz=None if arrow_type.tz is None else "UTC")
        return TypedArray(values.cast(plain), PrimitiveType(name))
    if str(arrow_type) == "string_view":
        return TypedArray(values.cast(pa.large_string()), PrimitiveType("string"))
    return TypedArray(values, _nested_type(arrow_type))


def _nested_type(arrow_type: pa.DataType) -> DataType:
    """Return the type of a list or a map of leaves; any other type counts as a struct."""
    if pa.types.is_list(arrow_type):
        element = _type_of_elements(arrow_type.value_type)
        return StructType() if element is None else ArrayType(element)
    if pa.types.is_map(arrow_type):
        key = _type_of_elements(arrow_type.key_type)
        item = _type_of_elements(arrow_type.item_type)
        return StructType() if key is None or item is None else MapType(key, item)
    return StructType()


def _type_of_elements(arrow_type: pa.DataType) -> DataType | None:
    """Return a type whose arrays need no cast, or None for any other type."""
    found = _add_type(pa.array([], arrow_type)).data_type
    is_struct = isinstance(found, StructType)
    return None if is_struct or to_arrow_type(found) != arrow_type else found
