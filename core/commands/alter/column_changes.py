"""CHANGE COLUMN: types, NOT NULL, comments, defaults and positions of columns (spec 10.9)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

from optimist.core.commands.alter.alteration import Alteration, with_schema
from optimist.core.commands.alter.column_places import (
    as_struct,
    column_not_found,
    described,
    inserted,
    with_types_declared_at,
)
from optimist.core.commands.alter.column_readers import ensure_not_read
from optimist.core.commands.alter.constant_sql import ensure_constant
from optimist.core.commands.alter.default_values import invalid_default
from optimist.core.commands.alter.row_checks import RowChecks
from optimist.core.commands.alter.type_changes import changed_type, have_one_type
from optimist.core.commands.stored_sql import canonical_sql
from optimist.core.errors import SchemaError
from optimist.core.errors.foreign_text import shown
from optimist.core.requests.columns import ColumnChange
from optimist.core.schema.generated_columns import (
    ensure_type_is_of_expression,
    generation_expression,
)
from optimist.core.schema.identity_columns import is_identity_column
from optimist.core.schema.schema_edits import Path, field_at, path_text, type_at, with_type_at
from optimist.core.schema.types import (
    DECLARED_TYPE,
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
)
from optimist.core.transaction.conflicts.operations import Operation, json_text
from optimist.core.transaction.optimistic import OptimisticTransaction

__all__ = ["change_columns", "changed_field"]

_DEFAULT = "CURRENT_DEFAULT"
Retyping: TypeAlias = Callable[[StructField, StructField, Path, OptimisticTransaction], StructField]
"""A function like `changed_type`."""


def change_columns(
    txn: OptimisticTransaction, changes: Sequence[ColumnChange], checks: RowChecks
) -> Alteration:
    """Change columns one after the other, in one commit.

    Raises:
        SchemaError: The column does not exist (`DELTA_COLUMN_NOT_FOUND_IN_SCHEMA`); or its type
            can't be changed so (see `changed_type`); or a rule reads a column whose type would
            change (see `ensure_not_read`); or a row has no value for a column that would be NOT
            NULL (`DELTA_NEW_NOT_NULL_VIOLATION`); or NOT NULL would be inside an array or a map
            (`DELTA_NESTED_NOT_NULL_CONSTRAINT`); or more than the type of a part of an array or a
            map would change (`DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP`); or a default does not
            fit (`INVALID_DEFAULT_VALUE`).
    """
    schema = txn.table_metadata.declared_schema
    described_changes = []
    for change in changes:
        schema = with_types_declared_at(schema, change.path)
        found = field_at(schema, change.path)
        if found is None:
            raise column_not_found(change.path, schema)
        path, item = found
        changed = changed_field(txn, path, item, change, checks)
        schema = _with_field(schema, path, changed, change)
        about: dict[str, object] = {"column": described(path[:-1], changed)}
        described_changes.append(about | ({"position": change.text} if change.text else {}))
    return Alteration(_change_operation(described_changes), with_schema(txn.metadata, schema))


def _change_operation(described_changes: Sequence[dict[str, object]]) -> Operation:
    if len(described_changes) != 1:
        return Operation("CHANGE COLUMNS", {"columns": json_text(described_changes)})
    (only,) = described_changes
    column = {"column": json_text(_as_mapping(only["column"]))}
    return Operation("CHANGE COLUMN", {**only, **column})


def _as_mapping(value: object) -> dict[str, object]:
    """Return a described column as a mapping (see `described`)."""
    if not isinstance(value, dict):
        raise TypeError(f"{value!r} does not describe a column")
    return value


def changed_field(
    txn: OptimisticTransaction,
    path: Path,
    item: StructField,
    change: ColumnChange,
    checks: RowChecks,
    *,
    retyped: Retyping = changed_type,
) -> StructField:
    """Return the field after a change, and check each part of the change.

    Args:
        txn: The transaction.
        path: The path of the field.
        item: The field.
        change: The requested change.
        checks: Checks rules and rows.
        retyped: Gives the field another type.

    Raises:
        SchemaError: See `change_columns`.
    """
    changed, table = item, txn.table_metadata
    declared = change.declared
    if declared is not None:
        changed = retyped(changed, declared, path, txn)
        if not have_one_type(item, changed):
            ensure_not_read(table, path, "given another type")
            ensure_type_is_of_expression(changed, table.declared_schema)
    if change.nullable is not None and change.nullable != item.nullable:
        if not change.nullable:
            _ensure_may_be_required(path, table.declared_schema)
            checks.ensure_no_null(txn, path)
        changed = replace(changed, nullable=change.nullable)
    metadata = dict(changed.metadata)
    if change.comment is not None:
        metadata["comment"] = change.comment
    if change.drop_default:
        metadata.pop(_DEFAULT, None)
    elif change.default is not None:
        default = canonical_sql(change.default, StructType(()), keeps_texts=checks.keeps_texts)
        _ensure_may_have_default(path, changed, default)
        checks.ensure_default_fits(txn, changed, default)
        metadata[_DEFAULT] = default
    return replace(changed, metadata=metadata)


def _ensure_may_be_required(path: Path, schema: StructType) -> None:
    """Refuse NOT NULL inside arrays and maps, where no writer enforces it."""
    for depth in range(1, len(path)):
        found = type_at(schema, path[:depth])
        if found is not None and isinstance(found[1], ArrayType | MapType):
            column = path_text(path)
            raise SchemaError(
                f"The column {shown(column)} can't be set to NOT NULL, which can't be enforced "
                "inside arrays and maps. Nothing was written. Set the column around it instead.",
                kind="DELTA_NESTED_NOT_NULL_CONSTRAINT",
                column=column,
                part=path[depth],
            )


def _ensure_may_have_default(path: Path, item: StructField, sql: str) -> None:
    column = path_text(path)
    if generation_expression(item) is not None or is_identity_column(item):
        raise invalid_default(column, sql, "the column's values are computed already")
    if len(path) > 1:
        raise invalid_default(column, sql, "only whole columns can have one")
    ensure_constant(column, sql)


def _with_field(
    schema: StructType, path: Path, changed: StructField, change: ColumnChange
) -> StructType:
    parent = type_at(schema, path[:-1])
    if parent is None or not isinstance(parent[1], StructType):
        _ensure_only_type(path, schema, changed, change)
        return with_type_at(schema, path, lambda _: changed.data_type)

    def put(struct: DataType) -> DataType:
        fields = as_struct(struct).fields
        if change.text is None or (change.after or "").lower() == path[-1].lower():
            return StructType(tuple(changed if item.name == path[-1] else item for item in fields))
        others = StructType(tuple(item for item in fields if item.name != path[-1]))
        return inserted(others, changed, change)

    return with_type_at(schema, path[:-1], put)


def _ensure_only_type(
    path: Path, schema: StructType, changed: StructField, change: ColumnChange
) -> None:
    """Refuse any change but the type's for a part of an array or a map."""
    found = field_at(schema, path)
    was_nullable = found is not None and found[1].nullable
    if (
        set(changed.metadata) - {DECLARED_TYPE}
        or changed.nullable != was_nullable
        or change.text is not None
    ):
        raise SchemaError(
            f"{shown(path_text(path))} is part of an array or a map; only its type can change, "
            "not its comment, NOT NULL, default or position. Nothing was written. Change the "
            "column around it.",
            kind="DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP",
            column=path_text(path),
        )
