"""Finds a column's path in the table from its names in data files or a caller's spelling.

A result of None means that there is no such column.
"""

from __future__ import annotations

from collections.abc import Callable

from optimist.core.schema.types import DataType, StructField, StructType

__all__ = ["logical_path", "named_path", "physical_path", "spelled_path"]


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
