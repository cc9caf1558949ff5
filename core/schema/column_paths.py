"""Finds a column's path in the table from its names in data files or a caller's spelling.

A result of None means that there is no such column.
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
    """The logical path of a column given by its physical names (spec 10.8), or None."""

    def find(struct: StructType, wanted: str) -> StructField | None:
        return next((item for item in struct if item.physical_name == wanted), None)

    return _walked(path, schema, find)


def physical_path(path: tuple[str, ...], schema: StructType) -> tuple[str, ...]:
    """The path in data files of a column that the schema has at this logical path (spec 10.8).

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
    """The path of a column as the table spells it, given in any case, or None."""
    return _walked(path, schema, StructType.find)


def spelled_path(path: tuple[str, ...], schema: StructType) -> tuple[str, ...]:
    """A path as the table spells it, as far as it leads through structs; the rest as it is."""
    for depth in range(len(path), 0, -1):
        found = named_path(path[:depth], schema)
        if found is not None:
            return (*found, *path[depth:])
    return path


def path_of_sql(path: tuple[str, ...], schema: StructType) -> tuple[str, ...]:
    """The path of what SQL names by names with dots, as ALTER TABLE writes it (spec 10.9).

    In SQL `a.x` is the field of all structs in an array, and `m.k` a value of a map by its key, so
    these are `a.element.x` and `m.value` here. The path ends where the schema has no such part.
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
    """The type of a column or a field of a struct; None where SQL takes a part in another way."""
    level: DataType = schema
    for name in path:
        found = level.find(name) if isinstance(level, StructType) else None
        if found is None:
            return None
        level = found.data_type
    return level


def _walked(
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
