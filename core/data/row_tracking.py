"""The columns of tables that track rows: each row's id, and the version that last changed it.

The log gives both for a whole file, as `baseRowId` and `defaultRowCommitVersion`. Rows that were
moved to another file carry their own values there, in columns that no schema names (spec 6.5).
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.protocol.properties import (
    MATERIALIZED_ROW_COMMIT_VERSION,
    MATERIALIZED_ROW_ID,
)
from optimist.core.schema.types import PHYSICAL_NAME, PrimitiveType, StructField, StructType

__all__ = ["is_tracking_column", "tracking_columns", "with_defaults"]

_ROW_ID, _ROW_COMMIT_VERSION = "_metadata.row_id", "_metadata.row_commit_version"
_PROPERTIES = {
    _ROW_ID: MATERIALIZED_ROW_ID,
    _ROW_COMMIT_VERSION: MATERIALIZED_ROW_COMMIT_VERSION,
}
_MARK = "optimist.rowTracking"


def tracking_columns(configuration: Mapping[str, str]) -> StructType:
    """`_metadata.row_id` and `_metadata.row_commit_version`, as fields that a reader understands.

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


def is_tracking_column(item: StructField) -> bool:
    """Whether a field is one of `tracking_columns`, not a table's own column of the same name."""
    return _MARK in item.metadata


def with_defaults(
    stored: pa.Array,
    item: StructField,
    positions: pa.Array,
    *,
    base_row_id: int | None,
    commit_version: int | None,
) -> pa.Array:
    """The values of one of the columns: those in the file, else those that the log gives.

    Args:
        stored: What the file holds; null where it holds nothing.
        item: One of `tracking_columns`.
        positions: The positions of the rows in the file.
        base_row_id: The file's `baseRowId`.
        commit_version: The file's `defaultRowCommitVersion`.
    """
    if item.metadata[_MARK] == _ROW_COMMIT_VERSION:
        return pc.coalesce(stored, pa.scalar(commit_version, pa.int64()))
    return pc.coalesce(stored, pc.add(positions, pa.scalar(base_row_id, pa.int64())))
