"""Types as SQL text, as Spark shows them: for DESCRIBE TABLE and SHOW CREATE TABLE."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from optimist.core.predicates.text import quote_literal
from optimist.core.schema.types import (
    COLLATIONS,
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
)

__all__ = ["full_type_text", "short_type_text"]

_NAMES = {"long": "bigint", "integer": "int", "short": "smallint", "byte": "tinyint"}


def short_type_text(field: StructField) -> str:
    """Return the type of a column as `struct<a:int,b:string>`, without comments."""
    return _Texts(field, is_full=False).text(field.data_type, field.name)


def full_type_text(data_type: DataType) -> str:
    """Return a type that CREATE TABLE can make again, with what is said of its fields."""
    return _Texts(StructField("value", data_type), is_full=True).text(data_type, "value")


@dataclass(frozen=True, slots=True)
class _Texts:
    """The types within one column, whose field names their collations by paths."""

    field: StructField
    is_full: bool

    def text(self, data_type: DataType, path: str) -> str:
        if isinstance(data_type, ArrayType):
            return f"array<{self.text(data_type.element_type, f'{path}.element')}>"
        if isinstance(data_type, MapType):
            key = self.text(data_type.key_type, f"{path}.key")
            value = self.text(data_type.value_type, f"{path}.value")
            return f"map<{key}, {value}>" if self.is_full else f"map<{key},{value}>"
        if isinstance(data_type, StructType):
            if self.is_full:
                return f"struct<{', '.join(map(_full_field, data_type))}>"
            return f"struct<{','.join(f'{f.name}:{short_type_text(f)}' for f in data_type)}>"
        name = str(data_type)
        return _NAMES.get(name, name) + self._collation(path)

    def _collation(self, path: str) -> str:
        known = self.field.metadata.get(COLLATIONS)
        found = known.get(path) if isinstance(known, Mapping) else None
        return f" collate {found.rpartition('.')[2]}" if isinstance(found, str) else ""


def _full_field(field: StructField) -> str:
    name = field.name.replace("`", "``")
    text = _Texts(field, is_full=True).text(field.data_type, field.name)
    required = "" if field.nullable else " NOT NULL"
    comment = field.metadata.get("comment")
    told = f" COMMENT {quote_literal(comment, 'string')}" if isinstance(comment, str) else ""
    return f"`{name}`: {text}{required}{told}"
