"""SYNC IDENTITY: move an identity column's high-water mark past its rows (spec 10.7)."""

from __future__ import annotations

from dataclasses import replace

from optimist.core.commands.alter.alteration import Alteration, with_schema
from optimist.core.commands.alter.column_places import column_not_found, described
from optimist.core.commands.alter.row_checks import RowChecks
from optimist.core.errors import UsageError
from optimist.core.errors.foreign_text import shown
from optimist.core.schema.identity_columns import (
    HIGH_WATER_MARK,
    identity_columns,
    with_high_water_marks,
)
from optimist.core.schema.schema_edits import Path, path_text
from optimist.core.schema.types import StructField
from optimist.core.transaction.conflicts.operations import Operation, json_text
from optimist.core.transaction.optimistic import OptimisticTransaction

__all__ = ["sync_identity"]


def sync_identity(txn: OptimisticTransaction, path: Path, checks: RowChecks) -> Alteration:
    """Move the mark past the numbers in the rows, including those inserted by hand.

    The mark never moves backwards. A row that another commit adds meanwhile is a conflict.

    Raises:
        SchemaError: The column does not exist (kind `DELTA_COLUMN_NOT_FOUND_IN_SCHEMA`).
        UsageError: It is not an identity column (kind
            `DELTA_IDENTITY_COLUMNS_ALTER_NON_IDENTITY_COLUMN`).
    """
    table = txn.table_metadata
    item = table.schema.find(path[0]) if len(path) == 1 else None
    if item is None:
        raise column_not_found(path, table.schema)
    found = [column for column in identity_columns(table.schema) if column.name == item.name]
    if not found:
        raise UsageError(
            f"The column {shown(path_text(path))} is not an identity column. Nothing was "
            "written. Name an identity column.",
            kind="DELTA_IDENTITY_COLUMNS_ALTER_NON_IDENTITY_COLUMN",
            column=path_text(path),
        )
    farthest = checks.farthest_number(txn, found[0])
    schema = table.declared_schema
    if farthest is not None:
        schema = with_high_water_marks(schema, {item.name: farthest})
    return Alteration(
        Operation("CHANGE COLUMN", {"column": json_text(described((), _without_mark(item)))}),
        with_schema(txn.metadata, schema),
    )


def _without_mark(item: StructField) -> StructField:
    """Return the column for the history, without the mark, which users do not set."""
    kept = {key: value for key, value in item.metadata.items() if key != HIGH_WATER_MARK}
    return replace(item, metadata=kept)
