"""The decision whether data fits a table, and how a write changes its schema (spec 10.1)."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from optimist.core.errors import SchemaError
from optimist.core.errors.foreign_text import listed, shown
from optimist.core.protocol.schema_checks import ensure_no_duplicate_columns
from optimist.core.protocol.widening import WideningRule
from optimist.core.schema.generated_columns import generation_expression, referenced_columns
from optimist.core.schema.identity_columns import is_identity_column
from optimist.core.schema.type_widening import is_stored_alike
from optimist.core.schema.types import (
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    StructField,
    StructType,
)
from optimist.core.schema.void_columns import VOID, no_place_for_void, placeless_void

__all__ = [
    "SchemaAction",
    "SchemaDecision",
    "SchemaWrite",
    "decide_schema",
    "ensure_values_possible",
    "merge_schemas",
    "without_internal_metadata",
]

_DEFAULT_KEYS = ("CURRENT_DEFAULT", "EXISTS_DEFAULT")


class SchemaAction(enum.Enum):
    """The effect of a write on the table's schema."""

    CREATE = "create"
    """No table exists yet. The write creates one with this schema and partitioning."""
    KEEP = "keep"
    """The data fits, and the metadata stays the same."""
    EVOLVE = "evolve"
    """The metadata gets the merged schema."""
    OVERWRITE = "overwrite"
    """The metadata gets the data's schema and partitioning in place of its own."""


@dataclass(frozen=True, slots=True)
class SchemaWrite:
    """The data and options of a caller's write.

    Attributes:
        schema: The data's schema.
        partition_columns: The partitioning that the caller asks for. None or empty if it asks for
            none.
        is_overwrite: The write replaces the whole table.
        merge_schema: New columns may be added (option `mergeSchema`, or the conf for it).
        overwrite_schema: Schema and partitioning may be replaced (option `overwriteSchema`).
        data_change: False for a write that only rearranges rows.
        is_plain: The write is a method of `DeltaLog`, which has no options of Spark's writer, so
            that errors must not name them.
        keeps_not_null: A new or replaced schema has NOT NULL columns where the data has. Only at
            the top: what is nested can be null.
    """

    schema: StructType
    partition_columns: Sequence[str] | None = None
    is_overwrite: bool = False
    merge_schema: bool = False
    overwrite_schema: bool = False
    data_change: bool = True
    is_plain: bool = False
    keeps_not_null: bool = False


@dataclass(frozen=True, slots=True)
class SchemaDecision:
    """The effect of a write, and the table's schema and partitioning after it."""

    action: SchemaAction
    schema: StructType
    partition_columns: tuple[str, ...]


def decide_schema(
    table: StructType | None,
    table_partition_columns: Sequence[str],
    write: SchemaWrite,
    *,
    constraints: Mapping[str, str] | None = None,
    may_widen: WideningRule | None = None,
) -> SchemaDecision:
    """Decide how a write changes the table's schema, or refuse the write.

    Args:
        table: The table's schema, or None without a table.
        table_partition_columns: The table's partitioning.
        write: The data and options of the write.
        constraints: The table's CHECK constraints, name to SQL. A column that one reads must keep
            its type.
        may_widen: The widenings that the table allows (see `allowed_widening`).

    Raises:
        SchemaError: The data does not fit and no option given allows the change
            (`DELTA_METADATA_MISMATCH`; fields `columns`, `options`); types can't be merged
            (`DELTA_FAILED_TO_MERGE_FIELDS`, see `merge_schemas`); names occur twice in the data
            (`DELTA_DUPLICATE_COLUMNS_FOUND.DATA`); the data lacks a NOT NULL column
            (`DELTA_NOT_NULL_COLUMN_NOT_FOUND_IN_STRUCT`); a constraint or a generated column relies
            on a column's type (`DELTA_CONSTRAINT_DATA_TYPE_MISMATCH`,
            `DELTA_GENERATED_COLUMNS_DATA_TYPE_MISMATCH`); a write that only rearranges rows would
            change the metadata (`DELTA_DATA_CHANGE_FALSE`); the data has no columns
            (`DELTA_EMPTY_DATA`); a new column of structs, arrays or maps has a part that is void
            (`DELTA_COMPLEX_TYPE_COLUMN_CONTAINS_NULL_TYPE`); a partition column does not exist
            (`DELTA_PARTITION_COLUMN_NOT_FOUND`).
    """
    ensure_no_duplicate_columns(write.schema, kind=_DUPLICATES_IN_DATA, where=_DATA)
    decision = _decide(table, tuple(table_partition_columns), write, constraints or {}, may_widen)
    ensure_values_possible(decision.schema, table)
    return decision


def _decide(
    table: StructType | None,
    partitioning: tuple[str, ...],
    write: SchemaWrite,
    constraints: Mapping[str, str],
    may_widen: WideningRule | None,
) -> SchemaDecision:
    if table is None:
        return _decide_create(write)
    if write.is_overwrite and write.overwrite_schema:
        return _decide_overwrite(table, partitioning, write)
    merge = _Merge(may_widen)
    merged = merge.structs(table, _as_new_columns(write.schema), ())
    merge.ensure_no_conflicts(is_plain=write.is_plain)
    wanted = _resolved_partitioning(write, merged)
    repartitions = bool(wanted) and wanted != partitioning
    if repartitions or (merged != table and not write.merge_schema):
        raise _schema_mismatch(merge, partitioning, wanted if repartitions else (), write)
    _ensure_not_null_columns_present(table, write.schema, ())
    if merged == table:
        return SchemaDecision(SchemaAction.KEEP, table, partitioning)
    _ensure_data_change(write, "change the schema of the table")
    _ensure_types_free_to_change(table, merged, constraints)
    return SchemaDecision(SchemaAction.EVOLVE, merged, partitioning)


def merge_schemas(
    table: StructType, data: StructType, *, may_widen: WideningRule | None = None
) -> StructType:
    """Return the table's schema with the new fields and wider types of the data.

    New fields go to the end of their struct. Integers and void become the wider type. The result
    equals `table` exactly if the data fits without a change of schema. The table's spelling,
    nullability and field metadata win, and the data's nullability does not count. New fields are
    nullable, and come without the metadata that tables keep in fields for themselves (see
    `without_internal_metadata`).

    Raises:
        SchemaError: Types can't be merged (kind `DELTA_FAILED_TO_MERGE_FIELDS`), or a name occurs
            twice in the data (`DELTA_DUPLICATE_COLUMNS_FOUND.DATA`). In the former, the field
            `columns` names all such columns, and `column`, `table_type`, `data_type` and `cause`
            describe the first. `cause` is `DELTA_MERGE_INCOMPATIBLE_DATATYPE` or
            `DELTA_MERGE_INCOMPATIBLE_DECIMAL_TYPE`.
    """
    ensure_no_duplicate_columns(data, kind=_DUPLICATES_IN_DATA, where=_DATA)
    merge = _Merge(may_widen)
    merged = merge.structs(table, _as_new_columns(data), ())
    merge.ensure_no_conflicts()
    return merged


def without_internal_metadata(schema: StructType) -> StructType:
    """Return the schema without the field metadata that is a table's own: `delta.*` and defaults.

    Data read from another table brings such metadata along, but its column ids, constraints and
    generation expressions mean nothing here. Comments, declared char lengths and users' own keys
    stay.
    """
    return schema.without_field_keys(lambda key: key.startswith("delta.") or key in _DEFAULT_KEYS)


_DATA = "the data to write"
_DUPLICATES_IN_DATA = "DELTA_DUPLICATE_COLUMNS_FOUND.DATA"


@dataclass(frozen=True, slots=True)
class _Difference:
    """A field that differs between table and data. `table` is None if the table lacks it."""

    column: str
    table: DataType | None
    data: DataType


@dataclass(slots=True)
class _Merge:
    """One merge of two schemas, which collects the differences."""

    may_widen: WideningRule | None
    changes: list[_Difference] = field(default_factory=list)
    conflicts: list[_Difference] = field(default_factory=list)

    def structs(self, table: StructType, data: StructType, path: tuple[str, ...]) -> StructType:
        by_name = {item.name.lower(): item for item in data}
        merged: list[StructField] = []
        for item in table:
            other = by_name.pop(item.name.lower(), None)
            if other is None:
                merged.append(item)
                continue
            merged_type = self.types(item.data_type, other.data_type, (*path, item.name))
            merged.append(replace(item, data_type=merged_type))
        for item in by_name.values():
            self.changes.append(_Difference(".".join((*path, item.name)), None, item.data_type))
        return StructType((*merged, *by_name.values()))

    def types(self, table: DataType, data: DataType, path: tuple[str, ...]) -> DataType:
        if isinstance(table, StructType) and isinstance(data, StructType):
            return self.structs(table, data, path)
        if isinstance(table, ArrayType) and isinstance(data, ArrayType):
            element = self.types(table.element_type, data.element_type, (*path, "element"))
            return replace(table, element_type=element)
        if isinstance(table, MapType) and isinstance(data, MapType):
            key = self.types(table.key_type, data.key_type, (*path, "key"))
            value = self.types(table.value_type, data.value_type, (*path, "value"))
            return replace(table, key_type=key, value_type=value)
        return self.leaves(table, data, ".".join(path))

    def leaves(self, table: DataType, data: DataType, column: str) -> DataType:
        if data in (table, VOID):
            return table
        wider = self.wider(table, data)
        if wider is None:
            self.conflicts.append(_Difference(column, table, data))
            return table
        if wider != table:
            self.changes.append(_Difference(column, table, data))
        return wider

    def wider(self, table: DataType, data: DataType) -> DataType | None:
        may_widen = self.may_widen or is_stored_alike
        if table == VOID or may_widen(table, data):
            return data
        # Narrower data may come from a writer that does not know the wider type yet.
        return table if may_widen(data, table) or is_stored_alike(data, table) else None

    def ensure_no_conflicts(self, *, is_plain: bool = False) -> None:
        if not self.conflicts:
            return
        first = self.conflicts[0]
        both_decimal = isinstance(first.table, DecimalType) and isinstance(first.data, DecimalType)
        remedy = (
            "replace the table's schema by write with mode='overwrite' and schema_mode='overwrite'"
            if is_plain
            else "replace the table's schema with mode overwrite and the option overwriteSchema"
        )
        raise SchemaError(
            "The data has columns whose types can't be merged with the table's: "
            f"{'; '.join(map(_describe, self.conflicts))}. Nothing was written. Cast the data to "
            f"the table's types, or {remedy}.",
            kind="DELTA_FAILED_TO_MERGE_FIELDS",
            cause=(
                "DELTA_MERGE_INCOMPATIBLE_DECIMAL_TYPE"
                if both_decimal
                else "DELTA_MERGE_INCOMPATIBLE_DATATYPE"
            ),
            columns=tuple(item.column for item in self.conflicts),
            column=first.column,
            table_type=str(first.table),
            data_type=str(first.data),
            options=() if is_plain else ("overwriteSchema",),
        )


def _describe(item: _Difference) -> str:
    if item.table is None:
        return (
            f"column {shown(item.column)} ({shown(item.data)}) is in the data but not in the table"
        )
    types = f"{shown(item.table)} in the table and {shown(item.data)} in the data"
    return f"column {shown(item.column)} is {types}"


def _as_new_columns(data: StructType) -> StructType:
    return without_internal_metadata(data.as_nullable())


def _decide_create(write: SchemaWrite) -> SchemaDecision:
    _ensure_data_change(write, "create a table")
    schema = _non_empty_schema(write)
    return SchemaDecision(SchemaAction.CREATE, schema, _resolved_partitioning(write, schema))


def _decide_overwrite(
    table: StructType, partitioning: tuple[str, ...], write: SchemaWrite
) -> SchemaDecision:
    schema = _non_empty_schema(write)
    wanted = _resolved_partitioning(write, schema)
    if schema == table and wanted == partitioning:
        return SchemaDecision(SchemaAction.KEEP, table, partitioning)
    _ensure_data_change(write, "replace the schema of the table")
    return SchemaDecision(SchemaAction.OVERWRITE, schema, wanted)


def _non_empty_schema(write: SchemaWrite) -> StructType:
    if not write.schema.fields:
        raise SchemaError(
            "The data has no columns, so it can't become a table. Nothing was written. Add a "
            "column.",
            kind="DELTA_EMPTY_DATA",
        )
    columns = _as_new_columns(write.schema)
    if not write.keeps_not_null:
        return columns
    return StructType(
        tuple(
            replace(item, nullable=given.nullable)
            for item, given in zip(columns, write.schema, strict=True)
        )
    )


def _resolved_partitioning(write: SchemaWrite, schema: StructType) -> tuple[str, ...]:
    """Return the requested partition columns, in the schema's spelling."""
    resolved = []
    for name in write.partition_columns or ():
        item = schema.find(name)
        if item is None:
            raise SchemaError(
                f"The column {shown(name)} to partition by does not exist; the columns are "
                f"{listed(schema.names)}. Nothing was written. Partition by one of these.",
                kind="DELTA_PARTITION_COLUMN_NOT_FOUND",
                column=name,
                candidates=schema.names,
            )
        resolved.append(item.name)
    return tuple(resolved)


def _schema_mismatch(
    merge: _Merge, partitioning: tuple[str, ...], wanted: tuple[str, ...], write: SchemaWrite
) -> SchemaError:
    problems = [_describe(item) for item in merge.changes]
    remedies: dict[str, str] = {}
    if merge.changes:
        remedies["mergeSchema"] = "set the option mergeSchema to true to change the table's schema"
    if wanted:
        problems.append(
            f"the table is partitioned by [{listed(partitioning)}] and the write asks "
            f"for [{listed(wanted)}]"
        )
        remedies = {}
    if wanted or write.is_overwrite:
        mode = "" if write.is_overwrite else " together with mode overwrite"
        remedies["overwriteSchema"] = (
            f"set the option overwriteSchema to true{mode} to replace schema and partitioning"
        )
    told = _plain_remedy(wanted) if write.is_plain else ", or ".join(remedies.values())
    return SchemaError(
        f"The data does not fit the table: {'; '.join(problems)}. Nothing was written. "
        f"Change the data, or {told}.",
        kind="DELTA_METADATA_MISMATCH",
        columns=tuple(item.column for item in merge.changes),
        options=() if write.is_plain else tuple(remedies),
        table_partition_columns=partitioning,
        partition_columns=wanted,
    )


def _plain_remedy(wanted: Sequence[str]) -> str:
    if wanted:
        return (
            "leave partition_by out, or replace schema and partitioning by mode='overwrite' and "
            "schema_mode='overwrite'"
        )
    return "write with schema_mode='merge' to change the table's schema"


def ensure_values_possible(schema: StructType, table: StructType | None) -> None:
    """Refuse a new column of structs, arrays or maps in which void has no place.

    Parquet has no group without columns, so some readers can't read such columns, and Delta can't
    append to them. A column of plain void passes, and so do existing columns.
    """
    for item in schema:
        path = placeless_void(item)
        before = table.find(item.name) if table is not None else None
        if path is not None and (before is None or placeless_void(before) is None):
            raise no_place_for_void(item, path)


def _ensure_data_change(write: SchemaWrite, what: str) -> None:
    if not write.data_change:
        raise SchemaError(
            f"A write with dataChange=false only rearranges rows; it can't {what}. Nothing was "
            "written. Leave the option dataChange out.",
            kind="DELTA_DATA_CHANGE_FALSE",
        )


def _ensure_not_null_columns_present(
    table: StructType, data: StructType, path: tuple[str, ...]
) -> None:
    """Refuse data without a NOT NULL column, unless the engine computes it."""
    for item in table:
        other = data.find(item.name)
        own_path = (*path, item.name)
        if other is None and not item.nullable and not _is_computed(item):
            raise SchemaError(
                f"The column {shown('.'.join(own_path))} is NOT NULL, but the data does not have "
                "it. Nothing was written. Add it to the data.",
                kind="DELTA_NOT_NULL_COLUMN_NOT_FOUND_IN_STRUCT",
                column=".".join(own_path),
            )
        inner = other.data_type if other is not None else None
        if isinstance(item.data_type, StructType) and isinstance(inner, StructType):
            _ensure_not_null_columns_present(item.data_type, inner, own_path)


def _is_computed(item: StructField) -> bool:
    return (
        generation_expression(item) is not None
        or "CURRENT_DEFAULT" in item.metadata
        or is_identity_column(item)
    )


def _ensure_types_free_to_change(
    table: StructType, merged: StructType, constraints: Mapping[str, str]
) -> None:
    changed = {
        item.name.lower(): item.name
        for item, after in zip(table, merged, strict=False)
        if _has_changed(item.data_type, after.data_type)
    }
    if not changed:
        return
    for kind, name, sql in _readers_of_columns(table, constraints):
        own_name = (name,) if kind == _GENERATED_KIND else ()  # its expression has its type
        read = (*_columns_read(sql, table), *own_name)
        touched = [changed[column.lower()] for column in read if column.lower() in changed]
        if touched:
            what = "constraint" if kind == _CONSTRAINT_KIND else "generated column"
            raise SchemaError(
                f"The type of the column {shown(touched[0])} can't change, because the {what} "
                f"{shown(name)} ({shown(sql)}) needs it. Nothing was written. Drop the {what} "
                "first, or cast the data.",
                kind=kind,
                column=touched[0],
                reader=name,
                expression=sql,
            )


_CONSTRAINT_KIND = "DELTA_CONSTRAINT_DATA_TYPE_MISMATCH"
_GENERATED_KIND = "DELTA_GENERATED_COLUMNS_DATA_TYPE_MISMATCH"


def _readers_of_columns(
    table: StructType, constraints: Mapping[str, str]
) -> Iterator[tuple[str, str, str]]:
    for name, sql in constraints.items():
        yield _CONSTRAINT_KIND, name, sql
    for item in table:
        sql = generation_expression(item) or ""
        if sql:
            yield _GENERATED_KIND, item.name, sql


def _columns_read(sql: str, table: StructType) -> tuple[str, ...]:
    try:
        return referenced_columns(sql)
    except SchemaError:
        return table.names  # an expression that can't be parsed may read any column


def _has_changed(before: DataType, after: DataType) -> bool:
    """Return whether existing values have another type now. Added fields do not count."""
    if isinstance(before, StructType) and isinstance(after, StructType):
        return any(
            _has_changed(item.data_type, other.data_type)
            for item, other in zip(before, after, strict=False)
        )
    if isinstance(before, ArrayType) and isinstance(after, ArrayType):
        return _has_changed(before.element_type, after.element_type)
    if isinstance(before, MapType) and isinstance(after, MapType):
        return _has_changed(before.key_type, after.key_type) or _has_changed(
            before.value_type, after.value_type
        )
    return before != after
