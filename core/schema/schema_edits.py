"""Edits of a schema at a place given by the names on the way to it (spec 10.9).

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
    """The path as the schema spells it, given in any case, and the type there; None if none is."""
    names: list[str] = []
    level: DataType = schema
    for wanted in path:
        found = _step(level, wanted)
        if found is None:
            return None
        names.append(found.name)
        level = found.data_type
    return tuple(names), level


def field_at(schema: StructType, path: Path) -> tuple[Path, StructField] | None:
    """The path as the schema spells it, and the field there; None if there is none.

    A part of an array or a map comes as a field without metadata.
    """
    parent = type_at(schema, path[:-1]) if path else None
    found = None if parent is None else _step(parent[1], path[-1])
    return None if parent is None or found is None else ((*parent[0], found.name), found)


def with_type_at(
    schema: StructType, path: Path, change: Callable[[DataType], DataType]
) -> StructType:
    """The schema with another type at a path, which the schema has in that spelling."""
    changed = _changed(schema, path, change)
    if not isinstance(changed, StructType):
        raise TypeError("the type of a table's rows is a struct")
    return changed


def path_text(path: Path) -> str:
    """A path as Spark and Delta write it: names joined by dots, unusual ones in back-ticks."""
    return ".".join(map(_quoted_if_needed, path))


def is_inside(path: Path, outer: Path) -> bool:
    """Whether a path leads to a column, or to a part of it; upper and lower case are the same."""
    folded = [part.lower() for part in path[: len(outer)]]
    return folded == [part.lower() for part in outer]


def _quoted_if_needed(name: str) -> str:
    if _PLAIN_NAME.fullmatch(name) and not name.isdigit():
        return name
    return "`" + name.replace("`", "``") + "`"


def _step(level: DataType, name: str) -> StructField | None:
    """One step into a type, by the name of a field or of a part."""
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


def _changed(level: DataType, path: Path, change: Callable[[DataType], DataType]) -> DataType:
    if not path:
        return change(level)
    name, rest = path[0], path[1:]
    if isinstance(level, StructType):
        fields = (
            replace(item, data_type=_changed(item.data_type, rest, change))
            if item.name == name
            else item
            for item in level
        )
        return StructType(tuple(fields))
    if isinstance(level, ArrayType):
        return replace(level, element_type=_changed(level.element_type, rest, change))
    if isinstance(level, MapType) and name == "key":
        return replace(level, key_type=_changed(level.key_type, rest, change))
    if isinstance(level, MapType):
        return replace(level, value_type=_changed(level.value_type, rest, change))
    raise LookupError(name)
