"""Types in SQL's spelling, `array<decimal(10,2)>`, read without Spark."""

from __future__ import annotations

import json
from collections.abc import Mapping

from optimist.core.errors import SchemaError
from optimist.core.errors.foreign_text import quoted
from optimist.core.expressions import NotSqlError, SqlType, parse_type
from optimist.core.expressions.types import SqlField
from optimist.core.schema.char_types import replace_char_varchar
from optimist.core.schema.types import StructField, schema_from_json

__all__ = ["column_of_sql"]

_PRIMITIVES: Mapping[str, str] = {
    "BIGINT": "long",
    "BINARY": "binary",
    "BOOLEAN": "boolean",
    "DATE": "date",
    "DOUBLE": "double",
    "FLOAT": "float",
    "INT": "integer",
    "SMALLINT": "short",
    "STRING": "string",
    "TIMESTAMP": "timestamp",
    "TIMESTAMP_LTZ": "timestamp",
    "TIMESTAMP_NTZ": "timestamp_ntz",
    "TINYINT": "byte",
    "VARIANT": "variant",
    "VOID": "void",
}
_DEFAULT_DECIMAL = (10, 0)


def column_of_sql(name: str, text: str) -> StructField:
    """Return a nullable column of the type that an SQL text names.

    The column's metadata keeps a declaration of `char(n)` or `varchar(n)` (spec 10.5).

    Args:
        name: The column's name.
        text: The type, such as `int` or `struct<a: varchar(3), b: array<date>>`.

    Raises:
        SchemaError: The text names no type (kind `DELTA_UNSUPPORTED_DATA_TYPES`).
    """
    try:
        column = {
            "name": name,
            "type": _type_to_json(parse_type(text)),
            "nullable": True,
            "metadata": {},
        }
        schema = json.dumps({"type": "struct", "fields": [column]}, ensure_ascii=False)
        return schema_from_json(replace_char_varchar(schema)).fields[0]
    except (NotSqlError, RecursionError, LookupError, ValueError):
        raise SchemaError(
            f"The type of the column {quoted(name)} can't be {quoted(text)}, which is not a type "
            "of Delta. Nothing was written. Spell it as SQL does, as in array<decimal(10,2)>.",
            kind="DELTA_UNSUPPORTED_DATA_TYPES",
            type=text,
        ) from None


def _type_to_json(spelled: SqlType) -> object:
    """Return the JSON of a type, with `char(n)` and `varchar(n)` as declared."""
    if spelled.name == "ARRAY":
        (element,) = spelled.parts
        return {"type": "array", "elementType": _type_to_json(element), "containsNull": True}
    if spelled.name == "MAP":
        key, value = spelled.parts
        return {
            "type": "map",
            "keyType": _type_to_json(key),
            "valueType": _type_to_json(value),
            "valueContainsNull": True,
        }
    if spelled.name == "STRUCT" and spelled.fields:
        return {"type": "struct", "fields": [_field_to_json(part) for part in spelled.fields]}
    if spelled.name in ("CHAR", "VARCHAR"):
        (length,) = spelled.parameters
        return f"{spelled.name.lower()}({length})"
    if spelled.name == "DECIMAL":
        precision, scale = (*spelled.parameters, *_DEFAULT_DECIMAL[len(spelled.parameters) :])
        return f"decimal({precision},{scale})"
    if spelled.collation is not None:
        raise ValueError("collations are not supported")
    return _PRIMITIVES[spelled.name]


def _field_to_json(spelled: SqlField) -> dict[str, object]:
    return {
        "name": spelled.name,
        "type": _type_to_json(spelled.type),
        "nullable": spelled.is_nullable,
        "metadata": {} if spelled.comment is None else {"comment": spelled.comment},
    }
