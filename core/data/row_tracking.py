"""The columns of row tracking: each row's id, and the version that last changed it.

The log gives both for a whole file, as `baseRowId` and `defaultRowCommitVersion`. Rows that moved
to another file carry their own values there, in columns that no schema names (spec 6.5).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.errors import TableError
from optimist.core.errors.foreign_text import shown
from optimist.core.protocol.actions import Metadata, Protocol
from optimist.core.protocol.gates import is_active
from optimist.core.protocol.properties import (
    MATERIALIZED_ROW_COMMIT_VERSION,
    MATERIALIZED_ROW_ID,
)
from optimist.core.protocol.table_metadata import TableMetadata
from optimist.core.schema.types import PHYSICAL_NAME, PrimitiveType, StructField, StructType

__all__ = [
    "carried_columns",
    "is_tracking_column",
    "tracking_columns",
    "with_defaults",
    "with_ids_of",
]

_ROW_ID, _ROW_COMMIT_VERSION = "_metadata.row_id", "_metadata.row_commit_version"
_PROPERTIES = {
    _ROW_ID: MATERIALIZED_ROW_ID,
    _ROW_COMMIT_VERSION: MATERIALIZED_ROW_COMMIT_VERSION,
}
_MARK = "optimist.rowTracking"


def tracking_columns(configuration: Mapping[str, str]) -> StructType:
    """Return `_metadata.row_id` and `_metadata.row_commit_version` as fields for a reader.

    Args:
        configuration: The properties of a table with `delta.enableRowTracking`.
    """
    return StructType(
        tuple(
            StructField(
                name,
                PrimitiveType("long"),
                True,
                {_MARK: name, PHYSICAL_NAME: configuration.get(key, "")},
            )
            for name, key in _PROPERTIES.items()
        )
    )


def carried_columns(metadata: Metadata, protocol: Protocol) -> StructType:
    """Return the columns that carry ids and versions of rows to another file, id first.

    They have their names in files. A row that moves keeps its id. It keeps its commit version only
    if its values stay the same. Else the version is null, and the new file's version counts.

    Args:
        metadata: The table's metadata. Without row tracking there are no such columns.
        protocol: The table's protocol. Without the feature, the property alone tracks nothing.

    Raises:
        TableError: The table tracks rows, but its properties name no columns for that, or names
            that other columns have (kind `OPTIMIST_MALFORMED_ROW_TRACKING`).
    """
    if not is_active("rowTracking", protocol, metadata):
        return StructType()
    table = TableMetadata.of(metadata)
    fields = [
        replace(item, name=item.physical_name) for item in tracking_columns(metadata.configuration)
    ]
    names = {item.name.lower() for item in fields}
    taken = {name.lower() for item in table.schema for name in (item.name, item.physical_name)}
    if len(names - taken - {""}) < len(fields):
        raise TableError(
            "The table tracks rows, but its properties do not say in which columns files keep the "
            f"ids and versions of rows that move: {shown(sorted(names))}. Nothing was written. Set "
            f"{MATERIALIZED_ROW_ID} and {MATERIALIZED_ROW_COMMIT_VERSION} to names that no column "
            "has, with the engine that enabled row tracking.",
            kind="OPTIMIST_MALFORMED_ROW_TRACKING",
        )
    return StructType(tuple(fields))


def with_ids_of(before: pa.Table, changed: pa.Table) -> pa.Table:
    """Return changed rows with their earlier ids, and without a version of their own.

    Args:
        before: The rows before the change, perhaps with `carried_columns` as their last ones.
        changed: The same rows with their new values, without such columns.
    """
    carried = before.column_names[changed.num_columns :]
    if not carried:
        return changed
    row_id, version = carried
    unknown = pa.nulls(changed.num_rows, pa.int64())
    return changed.append_column(row_id, before[row_id]).append_column(version, unknown)


def is_tracking_column(item: StructField) -> bool:
    """Return whether a field is one of `tracking_columns`, not a table's own column."""
    return _MARK in item.metadata


def with_defaults(
    stored: pa.Array,
    item: StructField,
    positions: pa.Array,
    *,
    base_row_id: int | None,
    commit_version: int | None,
) -> pa.Array:
    """Return one tracking column's values: those in the file, else those from the log.

    Args:
        stored: The file's values, null where it has none.
        item: One of `tracking_columns`.
        positions: The positions of the rows in the file.
        base_row_id: The file's `baseRowId`.
        commit_version: The file's `defaultRowCommitVersion`.
    """
    if item.metadata[_MARK] == _ROW_COMMIT_VERSION:
        return pc.coalesce(stored, pa.scalar(commit_version, pa.int64()))
    return pc.coalesce(stored, pc.add(positions, pa.scalar(base_row_id, pa.int64())))
