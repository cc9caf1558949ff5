"""What a frame that follows its table needs of the version that it is to read."""

from __future__ import annotations

from optimist.core.errors import TableError
from optimist.core.errors.foreign_text import shown
from optimist.core.schema.column_mapping import file_schema
from optimist.core.schema.types import ArrayType, DataType, MapType, StructType, walk_fields
from optimist.core.snapshot import Snapshot

__all__ = ["ensure_same_columns", "stored_types"]


def ensure_same_columns(name: str, before: Snapshot, newest: Snapshot, *more: str) -> None:
    """Columns may have been added; what a frame has names and types for must be there still.

    What was NOT NULL must be so still, since Spark has left out what only nulls would need.

    Args:
        name: What to call the table.
        before: The version that the frame was made with.
        newest: The version that is to be read.
        more: Other columns of the frame that have changed.

    Raises:
        TableError: A column is not what it was (kind `DELTA_SCHEMA_CHANGE_SINCE_ANALYSIS`).
    """
    known, found = (stored_types(snapshot.schema) for snapshot in (before, newest))
    changed = [column for column, types in known.items() if found.get(column) != types]
    changed += [path[0] for path in _never_null(before.schema) - _never_null(newest.schema)]
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
    """For each column its type, and what it is in files: another column may get a name again."""
    stored = zip(schema, file_schema(schema), strict=True)
    return {item.name: (str(item.data_type), f"{own.name}:{own.data_type}") for item, own in stored}


def _never_null(schema: StructType) -> set[tuple[str, ...]]:
    """The ways to fields, elements and values of which the schema says that none is null."""
    own = {path for path, item in walk_fields(schema) if not item.nullable}
    return own.union(*(_parts(item.data_type, path) for path, item in walk_fields(schema)))


def _parts(data_type: DataType, path: tuple[str, ...]) -> set[tuple[str, ...]]:
    """The same within an array or a map, but for the fields of structs."""
    if isinstance(data_type, ArrayType):
        here = () if data_type.contains_null else ((*path, "[]"),)
        return {*here, *_parts(data_type.element_type, (*path, "[]"))}
    if isinstance(data_type, MapType):
        here = () if data_type.value_contains_null else ((*path, "{}"),)
        keys = _parts(data_type.key_type, (*path, "keys"))
        return {*here, *keys, *_parts(data_type.value_type, (*path, "{}"))}
    return set()
