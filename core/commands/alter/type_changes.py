"""The types that ALTER TABLE may give a column (spec 6.3, 10.5, 10.9)."""

from __future__ import annotations

import re
from dataclasses import replace

from optimist.core.data.declared_text import with_declared_types
from optimist.core.errors import SchemaError
from optimist.core.errors.foreign_text import shown
from optimist.core.protocol.widening import allowed_widening, is_widening_enabled
from optimist.core.schema.identity_columns import is_identity_column
from optimist.core.schema.schema_edits import Path, path_text
from optimist.core.schema.type_widening import is_lasting_widening, is_stored_alike
from optimist.core.schema.types import (
    ArrayType,
    DataType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
)
from optimist.core.transaction.optimistic import OptimisticTransaction

__all__ = ["changed_type", "described_by", "ensure_may_become", "have_one_type"]

_STRING, _VOID = PrimitiveType("string"), PrimitiveType("void")
_LENGTH = re.compile(r"(?P<kind>char|varchar)\((?P<length>\d+)\)")
_PARTS = (
    (StructType, "DELTA_CANNOT_UPDATE_STRUCT_FIELD"),
    (MapType, "DELTA_CANNOT_UPDATE_MAP_FIELD"),
    (ArrayType, "DELTA_CANNOT_UPDATE_ARRAY_FIELD"),
)


def changed_type(
    item: StructField, declared: StructField, path: Path, txn: OptimisticTransaction
) -> StructField:
    """Return the field with another type, or with new attributes for its structs' fields.

    Args:
        item: The field.
        declared: A field of the other type; its metadata may declare `char(n)` or `varchar(n)`.
        path: The path of the field.
        txn: The transaction, for the table's features.

    Raises:
        SchemaError: Files could not be read as the new type, the table does not have type widening,
            or a field of a struct would become NOT NULL (kind
            `DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP`, fields `column`, `table_type`,
            `new_type`); or a struct, map or array was to change as a whole
            (`DELTA_CANNOT_UPDATE_STRUCT_FIELD`, `DELTA_CANNOT_UPDATE_MAP_FIELD`,
            `DELTA_CANNOT_UPDATE_ARRAY_FIELD`); or it is an identity column
            (`DELTA_IDENTITY_COLUMNS_UNSUPPORTED_DATA_TYPE`).
    """
    plain = with_declared_types(item)
    old, new = plain.data_type, with_declared_types(declared).data_type
    if str(old).lower() == str(new).lower():
        return replace(plain, data_type=_redescribe(old, new, path))
    ensure_may_become(old, new, item, path, txn)
    return replace(plain, data_type=new)


def described_by(known: StructField, wanted: StructField) -> StructField:
    """Return the field with the nullability and metadata of another, but its own name and type."""
    metadata = {**known.metadata, **wanted.metadata}
    return replace(known, nullable=wanted.nullable, metadata=metadata)


def have_one_type(first: StructField, second: StructField) -> bool:
    """Tell whether expressions see the same type.

    Strings of all declared lengths are equal.
    """
    types = [with_declared_types(item).data_type for item in (first, second)]
    return types[0] == types[1] or all(map(_is_text, types))


def ensure_may_become(
    old: DataType, new: DataType, item: StructField, path: Path, txn: OptimisticTransaction
) -> None:
    """Refuse a type that a column, or a part of it, can't get (see `changed_type`)."""
    for kind_of_type, kind in _PARTS:
        if isinstance(old, kind_of_type):
            raise SchemaError(
                f"The column {shown(path_text(path))} of type {shown(old)} can't be given another "
                "type as a whole. Nothing was written. Change, add or drop its parts by their "
                "names; those of arrays and maps are element, key and value.",
                kind=kind,
                column=path_text(path),
            )
    if is_identity_column(item):
        raise SchemaError(
            f"The identity column {shown(path_text(path))} must stay of type long. Nothing was "
            "written.",
            kind="DELTA_IDENTITY_COLUMNS_UNSUPPORTED_DATA_TYPE",
            column=path_text(path),
        )
    if old == _VOID:
        return
    if _is_text(old) and _is_text(new):
        if not _holds_all(old, new):
            raise _cannot_become(path, old, new, "values could be too long for it")
        return
    if not is_lasting_widening(old, new):
        raise _cannot_become(path, old, new, "its values could not be kept")
    rule = allowed_widening(txn.metadata, txn.protocol)
    is_free = rule is None and is_stored_alike(old, new)
    if not (is_free or is_widening_enabled(txn.metadata, txn.protocol)):
        raise _cannot_become(
            path,
            old,
            new,
            "the table does not have type widening; set delta.enableTypeWidening to true first",
        )


def _redescribe(old: DataType, new: DataType, path: Path) -> DataType:
    """Return a type with the nullability and metadata of another type of the same shape."""
    if isinstance(old, StructType) and isinstance(new, StructType):
        pairs = zip(old, new, strict=True)
        return StructType(tuple(_redescribe_field(one, two, path) for one, two in pairs))
    if isinstance(old, ArrayType) and isinstance(new, ArrayType):
        inner = _redescribe(old.element_type, new.element_type, (*path, "element"))
        return replace(old, element_type=inner)
    if isinstance(old, MapType) and isinstance(new, MapType):
        key = _redescribe(old.key_type, new.key_type, (*path, "key"))
        value = _redescribe(old.value_type, new.value_type, (*path, "value"))
        return replace(old, key_type=key, value_type=value)
    return old


def _redescribe_field(known: StructField, wanted: StructField, path: Path) -> StructField:
    field_path = (*path, known.name)
    if known.nullable and not wanted.nullable:
        raise SchemaError(
            f"The column {shown(path_text(field_path))} can't become NOT NULL by the type around "
            "it. Nothing was written. Change it by its name, so that its rows are checked.",
            kind="DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP",
            column=path_text(field_path),
        )
    inner = _redescribe(known.data_type, wanted.data_type, field_path)
    return replace(described_by(known, wanted), data_type=inner)


def _is_text(data_type: DataType) -> bool:
    return data_type == _STRING or _LENGTH.fullmatch(str(data_type)) is not None


def _holds_all(old: DataType, new: DataType) -> bool:
    """Tell whether all strings of one declared type fit the other one."""
    if new == _STRING:
        return True
    before, after = (_LENGTH.fullmatch(str(item)) for item in (old, new))
    if before is None or after is None or after["kind"] == "char":
        return False
    return int(before["length"]) <= int(after["length"])


def _cannot_become(path: Path, old: object, new: object, reason: str) -> SchemaError:
    return SchemaError(
        f"The column {shown(path_text(path))} can't go from {shown(old)} to {shown(new)}: "
        f"{reason}. Nothing was written.",
        kind="DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP",
        column=path_text(path),
        table_type=str(old),
        new_type=str(new),
    )
