"""The positions of columns in a schema, and their descriptions in the history (spec 8.1, 10.9)."""

from __future__ import annotations

from optimist.core.data.declared_text import with_declared_types
from optimist.core.errors import SchemaError
from optimist.core.errors.foreign_text import listed, shown
from optimist.core.requests.columns import Position
from optimist.core.schema.schema_edits import Path, path_text
from optimist.core.schema.types import (
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
)

__all__ = ["as_struct", "column_not_found", "described", "inserted", "with_types_declared_at"]


def as_struct(data_type: DataType) -> StructType:
    """Return the type, which must be a struct."""
    if not isinstance(data_type, StructType):
        raise TypeError(f"{data_type} is not a struct")
    return data_type


def inserted(struct: StructType, item: StructField, position: Position) -> StructType:
    """Return the struct with a field at a position, or at the end without a position.

    Raises:
        SchemaError: The field to put it after does not exist (kind
            `DELTA_COLUMN_NOT_FOUND_IN_SCHEMA`).
    """
    fields = list(struct)
    if position.first:
        fields.insert(0, item)
    elif position.after is None:
        fields.append(item)
    else:
        neighbour = struct.find(position.after)
        if neighbour is None:
            raise column_not_found((position.after,), struct)
        fields.insert(fields.index(neighbour) + 1, item)
    return StructType(tuple(fields))


def with_types_declared_at(schema: StructType, path: Path) -> StructType:
    """Prepare the schema for a change inside the column that a path leads into.

    The declared lengths of its strings are then stored at the strings; see `with_declared_types`.
    """
    if len(path) < 2:
        return schema
    return StructType(
        tuple(
            with_declared_types(item) if item.name.lower() == path[0].lower() else item
            for item in schema
        )
    )


def column_not_found(path: Path, schema: StructType) -> SchemaError:
    """Return the error for a column that a table or a struct does not have."""
    return SchemaError(
        f"There is no column {shown(path_text(path))}; the columns are {listed(schema.names)}. "
        "Nothing was written. Use one of these.",
        kind="DELTA_COLUMN_NOT_FOUND_IN_SCHEMA",
        column=path_text(path),
        candidates=schema.names,
    )


def described(parents: Path, item: StructField) -> dict[str, object]:
    """Describe a column for the history.

    A nested type is described by its kind only.
    """
    return {
        "name": path_text((*parents, item.name)),
        "type": _kind_of_type(item.data_type),
        "nullable": item.nullable,
        "metadata": dict(item.metadata),
    }


def _kind_of_type(data_type: DataType) -> str:
    if isinstance(data_type, StructType):
        return "struct"
    if isinstance(data_type, ArrayType):
        return "array"
    return "map" if isinstance(data_type, MapType) else str(data_type)
