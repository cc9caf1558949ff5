"""REPLACE COLUMNS: set all columns with their order, types and comments (spec 10.9)."""

from __future__ import annotations

from collections.abc import Sequence

from optimist.core.commands.alter.alteration import Alteration, with_schema
from optimist.core.commands.alter.column_changes import changed_field
from optimist.core.commands.alter.column_places import described
from optimist.core.commands.alter.columns import ensure_may_be_added, without_columns
from optimist.core.commands.alter.row_checks import RowChecks
from optimist.core.commands.alter.struct_changes import rearranged_type
from optimist.core.errors import SchemaError, UsageError
from optimist.core.errors.foreign_text import listed, shown
from optimist.core.requests.columns import ColumnChange, NewColumn
from optimist.core.schema.identity_columns import is_identity_column
from optimist.core.schema.schema_edits import path_text
from optimist.core.schema.types import StructField, StructType
from optimist.core.transaction.conflicts.operations import Operation, json_text
from optimist.core.transaction.optimistic import OptimisticTransaction

__all__ = ["replace_columns"]


def replace_columns(
    txn: OptimisticTransaction, columns: Sequence[NewColumn], checks: RowChecks
) -> Alteration:
    """Give the table exactly these columns, in this order.

    Existing columns keep their values.

    Raises:
        UsageError: A column has a position of its own, or is a field of a struct (kind
            `OPTIMIST_INVALID_ARGUMENT`).
        SchemaError: Columns would be dropped although the table is not mapped; or some would be
            dropped and others added, which may be meant as renaming (kind
            `DELTA_UNSUPPORTED_ALTER_TABLE_REPLACE_COL_OP`); or the table has an identity column
            (`DELTA_IDENTITY_COLUMNS_REPLACE_COLUMN_NOT_SUPPORTED`); or adding, dropping or changing
            a column would be refused.
    """
    table = txn.table_metadata
    schema = table.declared_schema
    _ensure_no_identity(schema)
    for column in columns:
        _ensure_whole_and_in_order(column)
    listed_names = {column.path[0].lower() for column in columns}
    lost = [item.name for item in schema if item.name.lower() not in listed_names]
    new = [column.path[0] for column in columns if schema.find(column.path[0]) is None]
    if lost and (new or not table.is_mapped):
        raise SchemaError(
            f"The columns {listed(lost)} are not among the new ones"
            + (f", and {listed(new)} are not in the table" if new else "")
            + ". Nothing was written. Rename, drop and add columns one by one; that needs column "
            "mapping (delta.columnMapping.mode = 'name').",
            kind="DELTA_UNSUPPORTED_ALTER_TABLE_REPLACE_COL_OP",
            columns=tuple(lost),
        )
    metadata = without_columns(txn, [(name,) for name in lost])
    fields = tuple(_field_of(txn, column, schema, checks) for column in columns)
    described_columns = [described((), item) for item in fields]
    return Alteration(
        Operation("REPLACE COLUMNS", {"columns": json_text(described_columns)}),
        with_schema(metadata, StructType(fields)),
    )


def _field_of(
    txn: OptimisticTransaction, column: NewColumn, schema: StructType, checks: RowChecks
) -> StructField:
    """Return the field of a new column, or of an existing column after its change."""
    known, item = schema.find(column.path[0]), column.field
    if known is None:
        ensure_may_be_added(column, item)
        return item
    change = ColumnChange(
        (known.name,), column.data_type, column.nullable, column.comment, column.default
    )
    return changed_field(txn, (known.name,), known, change, checks, retyped=rearranged_type)


def _ensure_whole_and_in_order(column: NewColumn) -> None:
    """Refuse a field of a struct, and a position other than the one in the list."""
    if len(column.path) > 1:
        what, argument = "is a field of a struct, which a list of columns can't hold", "column"
        remedy = "Give the struct with all of its fields; put a name with a dot in back-ticks."
    elif column.text is not None:
        what, argument = f"has a position of its own ({shown(column.text)})", "after"
        remedy = "The order of the list is that of the columns."
    else:
        return
    raise UsageError(
        f"The column {shown(path_text(column.path))} {what}. Nothing was written. {remedy}",
        kind="OPTIMIST_INVALID_ARGUMENT",
        argument=argument,
    )


def _ensure_no_identity(schema: StructType) -> None:
    found = [item.name for item in schema if is_identity_column(item)]
    if found:
        raise SchemaError(
            f"The table has the identity columns {listed(found)}, which a list of columns can't "
            "describe. Nothing was written. Add and change columns one by one.",
            kind="DELTA_IDENTITY_COLUMNS_REPLACE_COLUMN_NOT_SUPPORTED",
            columns=tuple(found),
        )
