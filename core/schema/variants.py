"""Variants that come as the two binaries that make them up (spec 6.2, `variantType`)."""

from __future__ import annotations

from dataclasses import replace

from optimist.core.schema.types import (
    ArrayType,
    DataType,
    MapType,
    PrimitiveType,
    StructType,
)

__all__ = ["with_variants"]

_VARIANT, _BINARY = PrimitiveType("variant"), PrimitiveType("binary")
_PARTS = {"metadata": _BINARY, "value": _BINARY}


def with_variants(data: StructType, table: StructType) -> StructType:
    """Return the data's schema with variants where the table has them and the data two binaries.

    Args:
        data: The schema of data from Arrow, which has no type for variants.
        table: The schema of the table.
    """
    fields = []
    for item in data:
        wanted = table.find(item.name)
        if wanted is not None:
            item = replace(item, data_type=_with_variant(item.data_type, wanted.data_type))
        fields.append(item)
    return StructType(tuple(fields))


def _with_variant(data: DataType, table: DataType) -> DataType:
    if isinstance(data, StructType):
        if table == _VARIANT and {item.name: item.data_type for item in data} == _PARTS:
            return _VARIANT
        return with_variants(data, table) if isinstance(table, StructType) else data
    if isinstance(data, ArrayType) and isinstance(table, ArrayType):
        return replace(data, element_type=_with_variant(data.element_type, table.element_type))
    if isinstance(data, MapType) and isinstance(table, MapType):
        return replace(
            data,
            key_type=_with_variant(data.key_type, table.key_type),
            value_type=_with_variant(data.value_type, table.value_type),
        )
    return data
