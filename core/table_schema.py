"""The columns of a table as its mode of column mapping has them (spec 6.3)."""

from __future__ import annotations

from functools import lru_cache

from optimist.core.protocol.actions import Metadata
from optimist.core.protocol.properties import TableProperties
from optimist.core.schema.types import StructType, schema_from_json

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
    return schema_from_json(text).without_field_keys(lambda key: key.startswith(_PREFIX))
