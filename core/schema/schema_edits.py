"""Edits of a schema at a path of names (spec 10.9).

A path goes through structs by the names of fields, through arrays by `element`, and through maps by
`key` and `value`, as in ALTER TABLE.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

from optimist.core.schema.types import ArrayType, DataType, MapType, StructField, StructType

__all__ = ["Path", "field_at", "is_inside", "path_text", "type_at", "with_type_at"]

Path: TypeAlias = tuple[str, ...]
_PLAIN_NAME = re.compile(r"[a-zA-Z0-9_]+")


def type_at(schema: StructType, path: Path) -> tuple[Path, DataType] | None:
    """Return the path in the schema's spelling and the type there, or None."""
    names: list[str] = []
    level: DataType = schema
    for wanted in path:
        found = _find_part(level, wanted)
        if found is None:
            return None
        names.append(found.name)
        level = found.data_type
    return tuple(names), level


def field_at(schema: StructType, path: Path) -> tuple[Path, StructField] | None:
    """Return the path in the schema's spelling and the field there, or None.

    A part of an array or a map is returned as a field without metadata.
    """
    parent = type_at(schema, path[:-1]) if path else None
    found = None if parent is None else _find_part(parent[1], path[-1])
    return None if parent is None or found is None else ((*parent[0], found.name), found)


def with_type_at(
    schema: StructType, path: Path, change: Callable[[DataType], DataType]
) -> StructType:
    """Return the schema with another type at a path, which must have the schema's spelling."""
    changed = _change_type_at(schema, path, change)
    if not isinstance(changed, StructType):
        raise TypeError("the type of a table's rows is a struct")
    return changed


def path_text(path: Path) -> str:
    """Return a path as Spark and Delta write it: with dots, unusual names in back-ticks."""
    return ".".join(map(_quote_if_needed, path))


def is_inside(path: Path, outer: Path) -> bool:
    """Return whether a path leads to a column, or to a part of it, in any case."""
    folded = [part.lower() for part in path[: len(outer)]]
    return folded == [part.lower() for part in outer]


def _quote_if_needed(name: str) -> str:
    if _PLAIN_NAME.fullmatch(name) and not name.isdigit():
        return name
    return "`" + name.replace("`", "``") + "`"


def _find_part(level: DataType, name: str) -> StructField | None:
    """Find the field or part of a type by its name."""
    if isinstance(level, StructType):
        return level.find(name)
    part = name.lower()
    if isinstance(level, ArrayType) and part == "element":
        return StructField(part, level.element_type, level.contains_null)
    if isinstance(level, MapType) and part == "key":
        return StructField(part, level.key_type, nullable=False)
    if isinstance(level, MapType) and part == "value":
        return StructField(part, level.value_type, level.value_contains_null)
    return None


def _change_type_at(
    level: DataType, path: Path, change: Callable[[DataType], DataType]
) -> DataType:
    if not path:
        return change(level)
    name, rest = path[0], path[1:]
    if isinstance(level, StructType):
        fields = (
            replace(item, data_type=_change_type_at(item.data_type, rest, change))
            if item.name == name
            else item
            for item in level
        )
        return StructType(tuple(fields))
    if isinstance(level, ArrayType):
        return replace(level, element_type=_change_type_at(level.element_type, rest, change))
    if isinstance(level, MapType) and name == "key":
        return replace(level, key_type=_change_type_at(level.key_type, rest, change))
    if isinstance(level, MapType):
        return replace(level, value_type=_change_type_at(level.value_type, rest, change))
    raise LookupError(name)
