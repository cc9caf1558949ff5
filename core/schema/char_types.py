"""`char(n)` and `varchar(n)`, which a table declares and stores as strings (spec 10.5)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from optimist.core.schema.types import DECLARED_TYPE
from optimist.core.values.foreign_json import parse_json

__all__ = ["replace_char_varchar"]


def replace_char_varchar(schema_string: str) -> str:
    """Replace `char(n)` and `varchar(n)` by strings, and keep the declarations in field metadata.

    A declaration inside an array, map or struct stays on the column around it as the column's whole
    type, `array<varchar(10)>`, where Spark looks for it (spec 10.5). A schema without either stays
    unchanged.
    """
    if "char(" not in schema_string:
        return schema_string
    try:
        parsed = parse_json(schema_string)
    except ValueError:
        return schema_string
    plain = _plain_type(parsed)
    if isinstance(parsed, dict) and isinstance(parsed.get("fields"), list):
        plain["fields"] = [_plain_column(item) for item in parsed["fields"]]
    return json.dumps(plain, separators=(",", ":"), ensure_ascii=False)


def _plain_type(value: Any) -> Any:
    """Return a type's JSON with char and varchar replaced."""
    if isinstance(value, str):
        return "string" if _is_char(value) else value
    if not isinstance(value, dict):
        return value
    changed = {
        key: _plain_type(part) if key in ("elementType", "keyType", "valueType") else part
        for key, part in value.items()
    }
    if isinstance(value.get("fields"), list):
        changed["fields"] = [
            {**item, "type": _plain_type(item["type"])} if _is_field(item) else item
            for item in value["fields"]
        ]
    return changed


def _is_field(item: Any) -> bool:
    return isinstance(item, dict) and "type" in item


def _plain_column(item: Any) -> Any:
    """Return a column's JSON without char and varchar, and the declared type in its metadata."""
    if not _is_field(item):
        return item
    changed = {**item, "type": _plain_type(item["type"])}
    if _declares_char(item["type"]):
        changed["metadata"] = {
            **(item.get("metadata") or {}),
            DECLARED_TYPE: _sql_type(item["type"]),
        }
    return changed


def _is_char(name: str) -> bool:
    return name.startswith(("char(", "varchar("))


def _declares_char(value: Any) -> bool:
    if isinstance(value, str):
        return _is_char(value)
    if not isinstance(value, dict):
        return False
    parts = [value.get(key) for key in ("elementType", "keyType", "valueType")]
    fields = value.get("fields")
    if isinstance(fields, list):
        parts += [item.get("type") for item in fields if isinstance(item, dict)]
    return any(map(_declares_char, parts))


_SQL_NAMES: Mapping[str, str] = {
    "long": "bigint",
    "integer": "int",
    "short": "smallint",
    "byte": "tinyint",
}


def _sql_type(value: Any) -> str:
    """Return the type in SQL, as Spark writes and parses the declaration."""
    if isinstance(value, str):
        return _SQL_NAMES.get(value, value)
    if value["type"] == "array":
        return f"array<{_sql_type(value['elementType'])}>"
    if value["type"] == "map":
        return f"map<{_sql_type(value['keyType'])},{_sql_type(value['valueType'])}>"
    inner = ",".join(f"{item['name']}:{_sql_type(item['type'])}" for item in value["fields"])
    return f"struct<{inner}>"
