"""A column's path in the table, from its names in data files or a caller's spelling.

A result of None means that no such column exists.
"""

from __future__ import annotations

from collections.abc import Callable

from optimist.core.schema.types import ArrayType, DataType, MapType, StructField, StructType

__all__ = [
    "logical_path",
    "named_path",
    "path_of_sql",
    "physical_path",
    "spelled_path",
    "type_of_column",
]


def logical_path(path: tuple[str, ...], schema: StructType) -> tuple[str, ...] | None:
    """Return the logical path of a column with these physical names (spec 10.8), or None."""

    def find(struct: StructType, wanted: str) -> StructField | None:
        return next((item for item in struct if item.physical_name == wanted), None)

    return _walk_path(path, schema, find)


def physical_path(path: tuple[str, ...], schema: StructType) -> tuple[str, ...]:
    """Return the path in data files of the column at this logical path (spec 10.8).

    Raises:
        LookupError: The schema has no such column.
    """
    names: list[str] = []
    level: DataType = schema
    for wanted in path:
        found = level.find(wanted) if isinstance(level, StructType) else None
        if found is None:
            raise LookupError(f"no column {wanted}")
        names.append(found.physical_name)
        level = found.data_type
    return tuple(names)


def named_path(path: tuple[str, ...], schema: StructType) -> tuple[str, ...] | None:
    """Return a column's path in the table's spelling for a path in any case, or None."""
    return _walk_path(path, schema, StructType.find)


def spelled_path(path: tuple[str, ...], schema: StructType) -> tuple[str, ...]:
    """Return a path in the table's spelling, as far as it leads through structs."""
    for depth in range(len(path), 0, -1):
        found = named_path(path[:depth], schema)
        if found is not None:
            return (*found, *path[depth:])
    return path


def path_of_sql(path: tuple[str, ...], schema: StructType) -> tuple[str, ...]:
    """Return the path that a dotted SQL name stands for, as in ALTER TABLE (spec 10.9).

    In SQL `a.x` is a field of all structs in an array, and `m.k` is a value of a map by its key.
    Here these are `a.element.x` and `m.value`. The path ends where the schema has no such part.
    """
    found: list[str] = []
    level: DataType = schema
    for name in path:
        while isinstance(level, ArrayType):
            found.append("element")
            level = level.element_type
        if isinstance(level, MapType):
            found.append("value")
            level = level.value_type
            continue
        item = level.find(name) if isinstance(level, StructType) else None
        if item is None:
            break
        found.append(item.name)
        level = item.data_type
    return tuple(found)


def type_of_column(path: tuple[str, ...], schema: StructType) -> DataType | None:
    """Return the type of a column or a struct's field, or None for any other path."""
    level: DataType = schema
    for name in path:
        found = level.find(name) if isinstance(level, StructType) else None
        if found is None:
            return None
        level = found.data_type
    return level


def _walk_path(
    path: tuple[str, ...],
    schema: StructType,
    find: Callable[[StructType, str], StructField | None],
) -> tuple[str, ...] | None:
    names: list[str] = []
    level: DataType = schema
    for wanted in path:
        found = find(level, wanted) if isinstance(level, StructType) else None
        if found is None:
            return None
        names.append(found.name)
        level = found.data_type
    return tuple(names)
