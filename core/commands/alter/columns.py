"""ADD COLUMNS, RENAME COLUMN and DROP COLUMNS (spec 10.8, 10.9)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from optimist.core.commands.alter.alteration import Alteration, with_schema
from optimist.core.commands.alter.column_places import (
    as_struct,
    column_not_found,
    described,
    inserted,
    with_types_declared_at,
)
from optimist.core.commands.alter.column_readers import ensure_not_read
from optimist.core.data.declared_text import with_declared_types
from optimist.core.errors import SchemaError, UsageError
from optimist.core.errors.foreign_text import listed, shown
from optimist.core.protocol.actions import Metadata
from optimist.core.protocol.clustering import clustering_columns
from optimist.core.protocol.schema_merge import ensure_values_possible
from optimist.core.protocol.table_metadata import TableMetadata
from optimist.core.requests.columns import NewColumn
from optimist.core.schema.schema_edits import (
    Path,
    field_at,
    is_inside,
    path_text,
    type_at,
    with_type_at,
)
from optimist.core.schema.stats_property import (
    STATS_COLUMNS,
    with_renamed_column,
    without_column,
)
from optimist.core.schema.types import DataType, StructField, StructType, walk_fields
from optimist.core.transaction.conflicts.operations import Operation, json_text
from optimist.core.transaction.optimistic import OptimisticTransaction

__all__ = [
    "add_columns",
    "drop_columns",
    "ensure_may_be_added",
    "rename_column",
    "without_columns",
]

_NOT_MAPPED = (
    "Set the table property delta.columnMapping.mode to 'name' first; readers must know column "
    "mapping from then on."
)


def add_columns(txn: OptimisticTransaction, columns: Sequence[NewColumn]) -> Alteration:
    """Add columns, at the end or at the positions that they name.

    Existing rows get null.

    Raises:
        SchemaError: A column is NOT NULL (`DELTA_OPERATION_NOT_ALLOWED`), has a default
            (`WRONG_COLUMN_DEFAULTS_FOR_DELTA_ALTER_TABLE_ADD_COLUMN_NOT_SUPPORTED`), exists already
            (`DELTA_DUPLICATE_COLUMNS_FOUND`), would be in something that is not a struct
            (`DELTA_ADD_COLUMN_PARENT_NOT_STRUCT`) or does not exist
            (`DELTA_COLUMN_NOT_FOUND_IN_SCHEMA`), or has a name or type that is not allowed.
    """
    schema = txn.table_metadata.declared_schema
    described_columns = []
    for column in columns:
        item = column.field
        ensure_may_be_added(column, item)
        schema = with_types_declared_at(schema, column.path)
        schema = _with_column(schema, column, with_declared_types(item))
        about: dict[str, object] = {"column": described(column.path[:-1], item)}
        described_columns.append(about | ({"position": column.text} if column.text else {}))
    ensure_values_possible(schema, txn.table_metadata.declared_schema)
    return Alteration(
        Operation("ADD COLUMNS", {"columns": json_text(described_columns)}),
        with_schema(txn.metadata, schema),
    )


def rename_column(txn: OptimisticTransaction, path: Path, new_name: str) -> Alteration:
    """Rename a column, or a field of a struct.

    Files keep its physical name.

    Raises:
        SchemaError: The table has no column mapping (`DELTA_UNSUPPORTED_RENAME_COLUMN`), the column
            does not exist (`DELTA_COLUMN_NOT_FOUND_IN_SCHEMA`), a rule reads it (see
            `ensure_not_read`), it is part of an array or a map (`DELTA_UNSUPPORTED_RENAME_COLUMN`),
            or another column has the name (`DELTA_DUPLICATE_COLUMNS_FOUND`).
    """
    if not new_name:
        raise UsageError(
            f"The new name of the column {shown(path_text(path))} is empty. Nothing was written. "
            "Give a name.",
            kind="OPTIMIST_INVALID_ARGUMENT",
            argument="new_name",
        )
    table = txn.table_metadata
    _ensure_mapped(table, "renamed", "DELTA_UNSUPPORTED_RENAME_COLUMN")
    old = _field_path(table.declared_schema, path)
    _ensure_has_name(table.declared_schema, old)
    ensure_not_read(table, old, "renamed")
    new = (*old[:-1], new_name)

    def rename_field(struct: DataType) -> DataType:
        fields = as_struct(struct).fields
        return StructType(
            tuple(replace(item, name=new_name) if item.name == old[-1] else item for item in fields)
        )

    partitioning = txn.metadata.partition_columns
    if len(old) == 1:
        partitioning = tuple(new_name if name == old[0] else name for name in partitioning)
    schema = with_types_declared_at(table.declared_schema, old)
    metadata = with_schema(txn.metadata, with_type_at(schema, old[:-1], rename_field))
    named = table.properties.data_skipping_stats_columns
    return Alteration(
        Operation(
            "RENAME COLUMN",
            {"oldColumnPath": _history_path(old), "newColumnPath": _history_path(new)},
        ),
        _with_stats_columns(
            replace(metadata, partition_columns=partitioning),
            None if named is None else with_renamed_column(named, old, new),
        ),
    )


def drop_columns(
    txn: OptimisticTransaction, paths: Sequence[Path], *, if_exists: bool
) -> Alteration:
    """Drop columns, or fields of structs.

    Files keep the values, which nobody sees again.

    Raises:
        SchemaError: The table has no column mapping (`DELTA_UNSUPPORTED_DROP_COLUMN`), a column
            does not exist (`DELTA_COLUMN_NOT_FOUND_IN_SCHEMA`), the table is partitioned or
            clustered by it (`DELTA_UNSUPPORTED_DROP_PARTITION_COLUMN`,
            `DELTA_UNSUPPORTED_DROP_CLUSTERING_COLUMN`), a rule reads it (see `ensure_not_read`), it
            is part of an array or a map
            (`DELTA_UNSUPPORTED_DROP_NESTED_COLUMN_FROM_NON_STRUCT_TYPE`), or no column would be
            left (`DELTA_DROP_COLUMN_ON_SINGLE_FIELD_SCHEMA`).
    """
    table = txn.table_metadata
    _ensure_mapped(table, "dropped", "DELTA_UNSUPPORTED_DROP_COLUMN")
    found = [
        _field_path(table.declared_schema, path)
        for path in paths
        if not if_exists or field_at(table.declared_schema, path) is not None
    ]
    return Alteration(
        Operation("DROP COLUMNS", {"columns": json_text(list(map(path_text, found)))}),
        without_columns(txn, found),
    )


def without_columns(txn: OptimisticTransaction, paths: Sequence[Path]) -> Metadata:
    """Return the metadata without columns, given in the table's spelling.

    Raises:
        SchemaError: One of them can't be dropped; see `drop_columns`.
    """
    table = txn.table_metadata
    schema, named = table.declared_schema, table.properties.data_skipping_stats_columns
    _ensure_not_laid_out_by(txn, paths)
    for path in paths:
        ensure_not_read(table, path, "dropped")
        schema = _without_column(with_types_declared_at(schema, path), path)
        named = None if named is None else without_column(named, path)
    return _with_stats_columns(with_schema(txn.metadata, schema), named)


def ensure_may_be_added(column: NewColumn, item: StructField) -> None:
    """Refuse a column that existing rows could not have (see `add_columns`)."""
    name = shown(path_text(column.path))
    inside = (inner for _, inner in walk_fields(item.data_type))
    if not item.nullable or any(not inner.nullable for inner in inside):
        raise SchemaError(
            f"The column {name} can't be added as NOT NULL, because existing rows have no value "
            "for it. Nothing was written. Add it as a nullable column, fill it, then set NOT "
            "NULL.",
            kind="DELTA_OPERATION_NOT_ALLOWED",
            column=path_text(column.path),
        )
    if column.default is not None:
        raise SchemaError(
            f"The column {name} can't be added together with a default value, because existing "
            "rows would not have it. Nothing was written. Add the column first, then set its "
            "default.",
            kind="WRONG_COLUMN_DEFAULTS_FOR_DELTA_ALTER_TABLE_ADD_COLUMN_NOT_SUPPORTED",
            column=path_text(column.path),
        )


def _with_column(schema: StructType, column: NewColumn, item: StructField) -> StructType:
    parent = type_at(schema, column.path[:-1])
    if parent is None:
        raise column_not_found(column.path[:-1], schema)
    parent_path, level = parent
    if not isinstance(level, StructType):
        raise SchemaError(
            f"The column {shown(path_text(column.path))} can't be added to "
            f"{shown(path_text(parent_path))}, which is not a struct but of type {shown(level)}. "
            "Nothing was written. Name a struct; the elements of an array are called element, the "
            "parts of a map key and value.",
            kind="DELTA_ADD_COLUMN_PARENT_NOT_STRUCT",
            column=path_text(column.path),
            type=str(level),
        )
    return with_type_at(
        schema, parent_path, lambda struct: inserted(as_struct(struct), item, column)
    )


def _without_column(schema: StructType, path: Path) -> StructType:
    if field_at(schema, path) is None:
        return schema  # it was dropped with the struct around it
    level = type_at(schema, path[:-1])
    if level is None or not isinstance(level[1], StructType):
        raise SchemaError(
            f"{shown(path_text(path))} is a part of an array or a map, which can't be dropped. "
            "Nothing was written. Drop the column around it.",
            kind="DELTA_UNSUPPORTED_DROP_NESTED_COLUMN_FROM_NON_STRUCT_TYPE",
            column=path_text(path),
        )
    if len(level[1]) == 1:
        raise SchemaError(
            f"The column {shown(path_text(path))} is the only one; a table or a struct must have "
            "at least one. Nothing was written. Add another one first, or drop the whole struct.",
            kind="DELTA_DROP_COLUMN_ON_SINGLE_FIELD_SCHEMA",
            column=path_text(path),
        )

    def drop_field(struct: DataType) -> DataType:
        return StructType(tuple(item for item in as_struct(struct) if item.name != path[-1]))

    return with_type_at(schema, path[:-1], drop_field)


def _ensure_not_laid_out_by(txn: OptimisticTransaction, paths: Iterable[Path]) -> None:
    """Refuse to drop a column that the table is partitioned or clustered by."""
    schema = txn.table_metadata.schema
    partitioned = [(name,) for name in txn.metadata.partition_columns]
    clustered = clustering_columns(txn.snapshot.domain_metadata, schema)
    for path in paths:
        for how, columns, kind in (
            ("partitioned", partitioned, "DELTA_UNSUPPORTED_DROP_PARTITION_COLUMN"),
            ("clustered", clustered, "DELTA_UNSUPPORTED_DROP_CLUSTERING_COLUMN"),
        ):
            if any(is_inside(column, path) for column in columns):
                raise SchemaError(
                    f"The column {shown(path_text(path))} can't be dropped, because the table is "
                    f"{how} by {listed(map(path_text, columns))}. Nothing was written. "
                    "Keep it, or lay the table out by other columns first.",
                    kind=kind,
                    columns=(path_text(path),),
                )


def _ensure_has_name(schema: StructType, path: Path) -> None:
    """Refuse an element of an array, and a key or a value of a map."""
    level = type_at(schema, path[:-1])
    if level is None or not isinstance(level[1], StructType):
        raise SchemaError(
            f"{shown(path_text(path))} is a part of an array or a map, which has no name of its "
            "own. Nothing was written. Rename the column around it.",
            kind="DELTA_UNSUPPORTED_RENAME_COLUMN",
            column=path_text(path),
        )


def _field_path(schema: StructType, path: Path) -> Path:
    found = field_at(schema, path)
    if found is None:
        raise column_not_found(path, schema)
    return found[0]


def _ensure_mapped(table: TableMetadata, what: str, kind: str) -> None:
    if not table.is_mapped:
        raise SchemaError(
            f"Columns of this table can't be {what}, because its files know them by their names "
            f"(delta.columnMapping.mode is none). Nothing was written. {_NOT_MAPPED}",
            kind=kind,
        )


def _with_stats_columns(metadata: Metadata, names: Sequence[str] | None) -> Metadata:
    if names is None or STATS_COLUMNS not in metadata.configuration:
        return metadata
    changed = {**metadata.configuration, STATS_COLUMNS: ",".join(names)}
    return replace(metadata, configuration=changed)


def _history_path(path: Path) -> str:
    """Format a path as Delta's history does: only names with dots are in back-ticks."""
    return ".".join(f"`{name}`" if "." in name else name for name in path)
