"""Casts of nested values to column types: the fields of structs are found by their names.

The types inside must be the same on both sides, or the column's must be wider, or both must be
integers; every other cast is left to `stored_values`.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from optimist.core.data.column_shape import arrow_rows
from optimist.core.local.stored_values import stored_as
from optimist.core.predicates.functions.value import INTEGERS, Value
from optimist.core.schema.column_mapping import without_mapping
from optimist.core.schema.types import (
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    StructField,
    StructType,
)

__all__ = ["shaped_as"]


def shaped_as(
    value: Value, target: DataType, what: str, *, may_lack_fields: bool, zone: str
) -> Value:
    """Cast a value to the type of a column, and give structs the fields of the column.

    Args:
        value: The value.
        target: The column's type.
        what: The name of the column, for errors.
        may_lack_fields: Whether structs may lack fields of the column; those become null.
        zone: The session's time zone.

    Raises:
        UsageError: Only Spark can do the cast exactly (kind `OPTIMIST_NEEDS_SPARK`).
        SchemaError: The constant does not fit (kind `OPTIMIST_VALUE_DOES_NOT_FIT`).
    """
    is_nested = isinstance(target, (StructType, ArrayType, MapType))
    if not is_nested or not _fits(value.data_type, target, may_lack_fields):
        return stored_as(value, target, what, zone)
    schema = StructType((StructField("value", target),))
    plain = without_mapping(schema)

    def compute(rows: pa.Table) -> Any:
        values = value.compute(rows)
        return arrow_rows(pa.table([values], names=["value"]), plain)["value"]

    return Value(target, compute, value.columns)


def _fits(source: DataType, target: DataType, may_lack_fields: bool) -> bool:
    """Check whether only the fields differ, or types inside between which values are exact."""
    if isinstance(source, StructType) and isinstance(target, StructType):
        if not may_lack_fields and len(source) < len(target):
            return False
        found = [(item, target.find(item.name)) for item in source]
        return all(
            other is not None and _fits(item.data_type, other.data_type, may_lack_fields)
            for item, other in found
        )
    if isinstance(source, ArrayType) and isinstance(target, ArrayType):
        return _fits(source.element_type, target.element_type, may_lack_fields)
    if isinstance(source, MapType) and isinstance(target, MapType):
        keys = _fits(source.key_type, target.key_type, may_lack_fields)
        return keys and _fits(source.value_type, target.value_type, may_lack_fields)
    return source == target or _is_exact(source, target)


def _is_exact(source: DataType, target: DataType) -> bool:
    """Check whether a value stays the same or, among integers, does not fit."""
    names = (str(source), str(target))
    if set(names) <= set(INTEGERS):
        return True
    if isinstance(source, DecimalType) and isinstance(target, DecimalType):
        whole = target.precision - target.scale >= source.precision - source.scale
        return whole and target.scale >= source.scale
    return names == ("float", "double")
