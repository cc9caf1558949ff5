"""A check of the version that a frame which follows its table is about to read."""

from __future__ import annotations

from optimist.core.errors import TableError
from optimist.core.errors.foreign_text import shown
from optimist.core.schema.column_mapping import file_schema
from optimist.core.schema.types import ArrayType, DataType, MapType, StructType, walk_fields
from optimist.core.snapshot import Snapshot

__all__ = ["ensure_same_columns", "stored_types"]


def ensure_same_columns(name: str, before: Snapshot, newest: Snapshot, *more: str) -> None:
    """Refuse a version in which columns of a frame are missing or changed.

    New columns are allowed. A NOT NULL column must still be NOT NULL, since Spark has optimised
    null checks away.

    Args:
        name: The table's name in errors.
        before: The version that the frame was made with.
        newest: The version to read.
        more: Other columns of the frame that have changed.

    Raises:
        TableError: A column has changed (kind `DELTA_SCHEMA_CHANGE_SINCE_ANALYSIS`).
    """
    known, found = (stored_types(snapshot.schema) for snapshot in (before, newest))
    changed = [column for column, types in known.items() if found.get(column) != types]
    changed += [
        path[0] for path in _paths_never_null(before.schema) - _paths_never_null(newest.schema)
    ]
    if changed or more:
        column = (*changed, *more)[0]
        raise TableError(
            f"The column {shown(column)} of {shown(name)} was renamed, dropped, given another "
            f"type or allowed to hold nulls after version {before.version}, with which this frame "
            "was made. Nothing was read. Make the frame again, or read that version "
            f"({before.version}).",
            kind="DELTA_SCHEMA_CHANGE_SINCE_ANALYSIS",
            column=column,
            version=before.version,
        )


def stored_types(schema: StructType) -> dict[str, tuple[str, str]]:
    """Return each column's type and its form in files, since a name may be used again."""
    stored = zip(schema, file_schema(schema), strict=True)
    return {item.name: (str(item.data_type), f"{own.name}:{own.data_type}") for item, own in stored}


def _paths_never_null(schema: StructType) -> set[tuple[str, ...]]:
    """Return the paths of fields, elements and values that the schema declares never null."""
    own = {path for path, item in walk_fields(schema) if not item.nullable}
    return own.union(
        *(_parts_never_null(item.data_type, path) for path, item in walk_fields(schema))
    )


def _parts_never_null(data_type: DataType, path: tuple[str, ...]) -> set[tuple[str, ...]]:
    """Return the paths of parts of an array or map that are never null.

    Fields of structs are left out.
    """
    if isinstance(data_type, ArrayType):
        here = () if data_type.contains_null else ((*path, "[]"),)
        return {*here, *_parts_never_null(data_type.element_type, (*path, "[]"))}
    if isinstance(data_type, MapType):
        here = () if data_type.value_contains_null else ((*path, "{}"),)
        keys = _parts_never_null(data_type.key_type, (*path, "keys"))
        return {*here, *keys, *_parts_never_null(data_type.value_type, (*path, "{}"))}
    return set()
