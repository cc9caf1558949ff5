"""REPLACE COLUMNS for nested columns: reordered and new fields of structs."""

from __future__ import annotations

from dataclasses import replace

from optimist.core.commands.alter.columns import ensure_may_be_added
from optimist.core.commands.alter.type_changes import described_by, ensure_may_become
from optimist.core.data.declared_text import with_declared_types
from optimist.core.errors import SchemaError
from optimist.core.errors.foreign_text import listed, shown
from optimist.core.requests.columns import NewColumn
from optimist.core.schema.schema_edits import Path, path_text
from optimist.core.schema.types import ArrayType, DataType, MapType, StructField, StructType
from optimist.core.transaction.optimistic import OptimisticTransaction

__all__ = ["rearranged_type"]


def rearranged_type(
    item: StructField, declared: StructField, path: Path, txn: OptimisticTransaction
) -> StructField:
    """Return the field with another type, whose structs keep all their fields by name.

    Args:
        item: The field.
        declared: A field of the other type; see `changed_type`.
        path: The path of the field.
        txn: The transaction, for the table's features.

    Raises:
        SchemaError: A struct would lose a field, or an existing field would become NOT NULL (kind
            `DELTA_UNSUPPORTED_ALTER_TABLE_REPLACE_COL_OP`); or adding a new field or changing a
            part's type would be refused.
    """
    plain = with_declared_types(item)
    old, new = plain.data_type, with_declared_types(declared).data_type
    return replace(plain, data_type=_rearrange_type(old, new, plain, path, txn))


def _rearrange_type(
    old: DataType, new: DataType, item: StructField, path: Path, txn: OptimisticTransaction
) -> DataType:
    if isinstance(old, StructType) and isinstance(new, StructType):
        _ensure_none_lost(old, new, path)
        return StructType(
            tuple(_rearrange_field(old.find(one.name), one, path, txn) for one in new)
        )
    if isinstance(old, ArrayType) and isinstance(new, ArrayType):
        inner = _rearrange_type(old.element_type, new.element_type, item, (*path, "element"), txn)
        return replace(old, element_type=inner)
    if isinstance(old, MapType) and isinstance(new, MapType):
        key = _rearrange_type(old.key_type, new.key_type, item, (*path, "key"), txn)
        value = _rearrange_type(old.value_type, new.value_type, item, (*path, "value"), txn)
        return replace(old, key_type=key, value_type=value)
    if old != new:
        ensure_may_become(old, new, item, path, txn)
    return new


def _rearrange_field(
    known: StructField | None, wanted: StructField, path: Path, txn: OptimisticTransaction
) -> StructField:
    """Return a new field, or an existing field after its change."""
    if known is None:
        column = NewColumn((*path, wanted.name), wanted.data_type, nullable=wanted.nullable)
        ensure_may_be_added(column, wanted)
        return wanted
    field_path = (*path, known.name)
    if known.nullable and not wanted.nullable:
        raise _cannot_replace(field_path, "a field of a struct can't become NOT NULL in this way")
    inner = _rearrange_type(known.data_type, wanted.data_type, known, field_path, txn)
    return replace(described_by(known, wanted), data_type=inner)


def _ensure_none_lost(old: StructType, new: StructType, path: Path) -> None:
    lost = [item.name for item in old if new.find(item.name) is None]
    if lost:
        raise _cannot_replace(path, f"it would lose the fields {listed(lost)}; drop or rename them")


def _cannot_replace(path: Path, reason: str) -> SchemaError:
    return SchemaError(
        f"The column {shown(path_text(path))} can't be replaced: {reason}. Nothing was written. "
        "Change its parts by their names, one by one.",
        kind="DELTA_UNSUPPORTED_ALTER_TABLE_REPLACE_COL_OP",
        columns=(path_text(path),),
    )
