"""The types whose values can be stored in a column of another type (spec 10.1).

These are the casts of Spark's store assignment in ANSI mode, as far as Arrow makes them exactly
(`store_cast` in `core/data`). Values that do not fit are an error then.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from optimist.core.schema.types import (
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    StructField,
    StructType,
)

__all__ = ["assigned_columns", "can_store"]

_INTEGERS = frozenset({"byte", "short", "integer", "long"})
_FLOATS = frozenset({"float", "double"})
_TEXTS_OF = _INTEGERS | {"boolean"}
_TIMES = frozenset(
    {
        ("date", "timestamp"),
        ("date", "timestamp_ntz"),
        ("timestamp", "timestamp_ntz"),
        ("timestamp_ntz", "timestamp"),
        ("string", "date"),
    }
)
"""Times without a zone are in UTC."""


def can_store(source: DataType, target: DataType) -> bool:
    """Return whether values without parts can be stored in a column of another type."""
    name, wanted = str(source), str(target)
    if isinstance(target, DecimalType):
        return isinstance(source, DecimalType) or name in _INTEGERS
    if wanted in _INTEGERS or wanted in _FLOATS:
        return isinstance(source, DecimalType) or name in _INTEGERS or name in _FLOATS
    if wanted == "string":
        return name in _TEXTS_OF
    return (name, wanted) in _TIMES


def assigned_columns(
    given: StructType, table: StructType, keeps: Callable[[DataType, DataType], bool]
) -> StructType:
    """Return the columns of rows with the table's types, where their values can be stored as such.

    Args:
        given: The columns of the rows.
        table: The table's columns.
        keeps: Returns whether a type of the table (first) rather changes to that of the rows.
    """
    return StructType(tuple(_assigned_field(item, table, keeps) for item in given))


def _assigned_field(
    item: StructField, table: StructType, keeps: Callable[[DataType, DataType], bool]
) -> StructField:
    own = table.find(item.name)
    if own is None:
        return item
    return replace(item, data_type=_assigned_type(item.data_type, own.data_type, keeps))


def _assigned_type(
    given: DataType, table: DataType, keeps: Callable[[DataType, DataType], bool]
) -> DataType:
    if isinstance(given, StructType) and isinstance(table, StructType):
        return assigned_columns(given, table, keeps)
    if isinstance(given, ArrayType) and isinstance(table, ArrayType):
        element = _assigned_type(given.element_type, table.element_type, keeps)
        return replace(given, element_type=element)
    if isinstance(given, MapType) and isinstance(table, MapType):
        key = _assigned_type(given.key_type, table.key_type, keeps)
        value = _assigned_type(given.value_type, table.value_type, keeps)
        return replace(given, key_type=key, value_type=value)
    if can_store(given, table) and not keeps(table, given):
        return table
    return given
