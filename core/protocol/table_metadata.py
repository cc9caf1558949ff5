"""`TableMetadata`: a table's metadata, parsed once (spec 6.3, 7.1).

A `Metadata` action holds texts, as the log has them. A transaction needs their meaning dozens of
times, and again for every commit that it rebases past, so this class keeps it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache

from optimist.core.errors import SchemaError
from optimist.core.errors.foreign_text import quoted
from optimist.core.protocol.actions import Metadata
from optimist.core.protocol.properties import TableProperties
from optimist.core.schema.column_mapping import mapping_problems, without_mapping
from optimist.core.schema.type_widening import TYPE_CHANGES, unknown_type_changes
from optimist.core.schema.types import (
    COLUMN_ID,
    COLUMN_MAPPING_PREFIX,
    StructType,
    schema_from_json,
    walk_fields,
)

__all__ = ["TableMetadata"]

_MAPPING_MODE = "delta.columnMapping.mode"


@dataclass(frozen=True, eq=False)
class TableMetadata:
    """A table's schema, partition columns and properties.

    Reading the properties never raises. The schema is parsed on first use, so that a table with a
    damaged schema still has properties. Threads may share an instance. At worst, two of them parse
    at once.

    Attributes:
        schema_string: The schema as JSON text.
        partition_columns: The logical names of the partition columns, in order.
        properties: The table properties.
    """

    schema_string: str
    partition_columns: tuple[str, ...]
    properties: TableProperties

    @staticmethod
    def of(metadata: Metadata) -> TableMetadata:
        """Return the parsed form of a metadata action. Equal metadata share one instance."""
        # A log may hold values that are not texts.
        properties = tuple((key, str(text)) for key, text in metadata.configuration.items())
        return _parse_metadata(
            metadata.schema_string, tuple(metadata.partition_columns), properties
        )

    @property
    def is_mapped(self) -> bool:
        """Whether column mapping is on: files may have the columns under other names."""
        return self.properties.column_mapping_mode != "none"

    @cached_property
    def declared_schema(self) -> StructType:
        """The schema exactly as the log has it.

        Raises:
            SchemaError: `schemaString` is not a schema (see `schema_from_json`).
        """
        return _parse_schema(self.schema_string)

    @cached_property
    def schema(self) -> StructType:
        """The table's columns, partition columns included.

        Without column mapping, physical names and ids are dropped: columns may carry some from a
        table that they were copied from, but the files use the table's own names.

        Raises:
            SchemaError: `schemaString` is not a schema (see `schema_from_json`), or two columns
                have the same name (kind `OPTIMIST_MALFORMED_SCHEMA`).
        """
        schema = self.declared_schema
        _ensure_distinct(schema)
        if self.is_mapped or COLUMN_MAPPING_PREFIX not in self.schema_string:
            return schema
        return without_mapping(schema)

    @cached_property
    def is_found_alike(self) -> bool:
        """Whether files have the columns under the table's names, by every way of looking them up.

        Raises:
            SchemaError: As `declared_schema`.
        """
        if COLUMN_MAPPING_PREFIX not in self.schema_string:
            return True
        may_be_by_id = (
            self.properties.column_mapping_mode == "id" or _MAPPING_MODE in self.properties.unparsed
        )
        return not any(
            item.physical_name != item.name or (may_be_by_id and COLUMN_ID in item.metadata)
            for _, item in walk_fields(self.declared_schema)
        )

    @cached_property
    def mapping_problems(self) -> tuple[str, ...]:
        """The faults in the columns' ids and physical names, if the columns are mapped.

        Raises:
            SchemaError: As `declared_schema`.
        """
        return tuple(mapping_problems(self.declared_schema)) if self.is_mapped else ()

    @cached_property
    def unknown_type_changes(self) -> tuple[str, ...]:
        """Recorded changes of columns' types that this engine does not know.

        Raises:
            SchemaError: As `declared_schema`.
        """
        if TYPE_CHANGES not in self.schema_string:
            return ()
        return unknown_type_changes(self.declared_schema)


@lru_cache(maxsize=64)  # a process works with few tables at a time
def _parse_metadata(
    schema_string: str, partition_columns: tuple[str, ...], properties: Iterable[tuple[str, str]]
) -> TableMetadata:
    parsed = TableProperties.from_configuration(dict(properties))
    return TableMetadata(schema_string, partition_columns, parsed)


@lru_cache(maxsize=64)  # a change of properties keeps the schema
def _parse_schema(text: str) -> StructType:
    return schema_from_json(text)


def _ensure_distinct(schema: StructType) -> None:
    """Refuse two columns of one name. Names that differ in case pass: deltalake makes such."""
    seen: set[tuple[str, ...]] = set()
    for path, _ in walk_fields(schema):
        if path in seen:
            raise SchemaError(
                f"The table's schema has the column {quoted('.'.join(path))} twice, which no Delta "
                "writer allows: the log was damaged. Nothing was read or written. Read an older "
                "version.",
                kind="OPTIMIST_MALFORMED_SCHEMA",
            )
        seen.add(path)
