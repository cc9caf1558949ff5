"""Types as SQL spells them, `array<decimal(10,2)>`, read without Spark."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import cast

from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError

from optimist.core.errors import SchemaError
from optimist.core.foreign_text import quoted
from optimist.core.schema.char_types import replace_char_varchar
from optimist.core.schema.types import DataType, StructField, schema_from_json

__all__ = ["column_of_sql", "type_of_sql"]

_PRIMITIVES: Mapping[str, str] = {
    "BIGINT": "long",
    "BINARY": "binary",
    "BOOLEAN": "boolean",
    "DATE": "date",
    "DOUBLE": "double",
    "FLOAT": "float",
    "INT": "integer",
    "NULL": "void",
    "SMALLINT": "short",
    "TEXT": "string",
    "TIMESTAMP": "timestamp",
    "TIMESTAMPLTZ": "timestamp",
    "TIMESTAMPNTZ": "timestamp_ntz",
    "TIMESTAMPTZ": "timestamp",
    "TINYINT": "byte",
    "VARIANT": "variant",
}
_DEFAULT_DECIMAL = (10, 0)


def type_of_sql(text: str) -> DataType:
    """The type that an SQL text names; `char(n)` and `varchar(n)` are strings to Delta.

    Raises:
        SchemaError: As `column_of_sql`.
    """
    return column_of_sql("value", text).data_type


def column_of_sql(name: str, text: str) -> StructField:
    """A nullable column of the type that an SQL text names.

    A declaration of `char(n)` or `varchar(n)` in it is kept in the column's metadata (spec 10.5).

    Args:
        name: The column's name.
        text: The type, such as `int` or `struct<a: varchar(3), b: array<date>>`.

    Raises:
        SchemaError: The text is no type (kind `OPTIMIST_UNKNOWN_TYPE`).
    """
    try:
        node = cast("exp.Expr", parse_one(text, into=exp.DataType, dialect="databricks"))
        column = {"name": name, "type": _type(node), "nullable": True, "metadata": {}}
        schema = json.dumps({"type": "struct", "fields": [column]}, ensure_ascii=False)
        return schema_from_json(replace_char_varchar(schema)).fields[0]
    except (SqlglotError, RecursionError, LookupError, ValueError):
        raise SchemaError(
            f"The type of the column {quoted(name)} can't be {quoted(text)}, which is no type of "
            "Delta. Nothing was written. Spell it as SQL does, as in array<decimal(10,2)>.",
            kind="OPTIMIST_UNKNOWN_TYPE",
            type=text,
        ) from None


def _type(node: exp.Expr) -> object:
    """The JSON of a type, with `char(n)` and `varchar(n)` as they are declared."""
    kind = getattr(node.this, "name", str(node.this))
    parts = node.expressions
    if kind == "ARRAY":
        (element,) = parts
        return {"type": "array", "elementType": _type(element), "containsNull": True}
    if kind == "MAP":
        key, value = parts
        return {
            "type": "map",
            "keyType": _type(key),
            "valueType": _type(value),
            "valueContainsNull": True,
        }
    if kind == "STRUCT" and parts:
        return {"type": "struct", "fields": [_field(part) for part in parts]}
    if kind in ("CHAR", "VARCHAR"):
        (length,) = parts
        return f"{kind.lower()}({int(length.name)})"
    if kind == "DECIMAL":
        digits = [int(part.name) for part in parts] or list(_DEFAULT_DECIMAL)
        precision, scale = digits if len(digits) == 2 else (*digits, 0)
        return f"decimal({precision},{scale})"
    if parts:
        raise ValueError(f"{kind} takes no parameters")
    return _PRIMITIVES[kind]


def _field(node: exp.Expr) -> dict[str, object]:
    constraints = [item.kind for item in node.args.get("constraints") or ()]
    comments = [item for item in constraints if isinstance(item, exp.CommentColumnConstraint)]
    required = any(isinstance(item, exp.NotNullColumnConstraint) for item in constraints)
    return {
        "name": node.this.name,
        "type": _type(node.args["kind"]),
        "nullable": not required,
        "metadata": {"comment": comments[0].this.name} if comments else {},
    }
