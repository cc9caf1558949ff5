"""Metadata of tables with column mapping: ids and physical names for new columns (spec 10.8)."""

from __future__ import annotations

from dataclasses import replace

from optimist.core.errors import SchemaError
from optimist.core.errors.foreign_text import shown
from optimist.core.protocol.actions import Metadata
from optimist.core.protocol.table_metadata import TableMetadata
from optimist.core.runtime.clock import Clock
from optimist.core.schema.column_mapping import largest_column_id, with_mapping
from optimist.core.schema.types import COLUMN_MAPPING_PREFIX, StructType, schema_to_json

__all__ = ["with_column_mapping"]

_MODE = COLUMN_MAPPING_PREFIX + "mode"
_MAX_ID = COLUMN_MAPPING_PREFIX + "maxColumnId"


def with_column_mapping(
    metadata: Metadata,
    current: Metadata | None,
    clock: Clock,
    *,
    is_overwrite: bool,
    may_change_mode: bool = False,
) -> Metadata:
    """Map every column of the metadata, if its mode says so.

    Args:
        metadata: The metadata as it is to be.
        current: The table's metadata until now, or None for a new table.
        clock: Gives the UUIDs in new physical names.
        is_overwrite: The commit removes all files, so columns need not keep their ids.
        may_change_mode: Whether the mode may be another one, since the table is replaced.

    Raises:
        SchemaError: The mode can't be changed like this (kind
            `DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE`), or the table has mapping metadata
            although it is not mapped (kind
            `DELTA_ENABLING_COLUMN_MAPPING_DISALLOWED_WHEN_COLUMN_MAPPING_METADATA_ALREADY_EXISTS`).
    """
    table = TableMetadata.of(metadata)
    before = None if current is None else TableMetadata.of(current)
    if before is not None and not may_change_mode:
        _ensure_mode_may_change(before, table)
    if not table.is_mapped:
        return metadata
    known = StructType() if before is None else before.schema
    largest = max(
        table.properties.max_column_id,
        0 if before is None else before.properties.max_column_id,
        largest_column_id(table.declared_schema),
        largest_column_id(known),
    )
    mapped = with_mapping(
        table.declared_schema,
        known,
        max_id=largest,
        new_uuid=clock.new_uuid,
        is_overwrite=is_overwrite,
    )
    largest = max(largest, largest_column_id(mapped))
    return replace(
        metadata,
        schema_string=schema_to_json(mapped),
        configuration={**metadata.configuration, _MAX_ID: str(largest)},
    )


def _ensure_mode_may_change(before: TableMetadata, after: TableMetadata) -> None:
    old, new = before.properties.column_mapping_mode, after.properties.column_mapping_mode
    if old == new:
        return
    if (old, new) != ("none", "name"):
        raise SchemaError(
            f"The table property {_MODE} can't go from {shown(old)} to {shown(new)}: an existing "
            "table only goes from none to name, because its files have the columns under their "
            "names and without ids. Nothing was written. Copy the rows into a new table.",
            kind="DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE",
            old_mode=old,
            new_mode=new,
        )
    if COLUMN_MAPPING_PREFIX in before.schema_string:
        raise SchemaError(
            "The table's columns carry ids and physical names although the table is not mapped, "
            f"so {_MODE} can't be set: files may have the columns under other names. Nothing was "
            "written. Remove that metadata first, or copy the rows into a new table.",
            kind="DELTA_ENABLING_COLUMN_MAPPING_DISALLOWED_WHEN_COLUMN_MAPPING_METADATA_ALREADY_EXISTS",
        )
