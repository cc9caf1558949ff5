"""The columns of a table as its mode of column mapping has them (spec 6.3)."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from optimist.core.actions import Metadata
from optimist.core.properties import TableProperties
from optimist.core.schema import (
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
    schema_from_json,
)

__all__ = ["table_schema"]

_PREFIX = "delta.columnMapping."


def table_schema(metadata: Metadata) -> StructType:
    """The schema of a table.

    Without column mapping, the physical names and ids that its columns may carry, from a table they
    were copied from, mean nothing: the files have the columns under their own names.

    Raises:
        SchemaError: `schemaString` is no schema (kind `OPTIMIST_MALFORMED_SCHEMA`).
    """
    text = metadata.schema_string
    if _PREFIX not in text:
        return _parsed(text)
    properties = TableProperties.from_configuration(metadata.configuration)
    return _parsed(text) if properties.column_mapping_mode != "none" else _unmapped(text)


@lru_cache(maxsize=64)  # versions that follow each other mostly have one schema
def _parsed(text: str) -> StructType:
    return schema_from_json(text)


@lru_cache(maxsize=8)
def _unmapped(text: str) -> StructType:
    return StructType(tuple(_without_mapping(item) for item in schema_from_json(text)))


def _without_mapping(item: StructField) -> StructField:
    kept = {key: value for key, value in item.metadata.items() if not key.startswith(_PREFIX)}
    return replace(item, metadata=kept, data_type=_type_without_mapping(item.data_type))


def _type_without_mapping(data_type: DataType) -> DataType:
    if isinstance(data_type, StructType):
        return StructType(tuple(_without_mapping(item) for item in data_type))
    if isinstance(data_type, ArrayType):
        return replace(data_type, element_type=_type_without_mapping(data_type.element_type))
    if isinstance(data_type, MapType):
        return replace(
            data_type,
            key_type=_type_without_mapping(data_type.key_type),
            value_type=_type_without_mapping(data_type.value_type),
        )
    return data_type
