"""Delta's schema types as frozen values, and their JSON form (protocol "Schema Serialization").

`arrow_types.py` turns them into Arrow types and back. `schema_checks.py` validates a schema.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from optimist.core.errors import SchemaError
from optimist.core.errors.foreign_text import quoted, shown
from optimist.core.errors.kinds import UNKNOWN_TYPE
from optimist.core.errors.short_repr import short_repr
from optimist.core.values.foreign_json import NestedTooDeepError, parse_json

__all__ = [
    "COLLATIONS",
    "COLUMN_ID",
    "COLUMN_MAPPING_PREFIX",
    "DECLARED_TYPE",
    "GENERATION_EXPRESSION",
    "MAX_TYPE_DEPTH",
    "PHYSICAL_NAME",
    "PRIMITIVE_NAMES",
    "ArrayType",
    "DataType",
    "DecimalType",
    "MapType",
    "PrimitiveType",
    "StructField",
    "StructType",
    "data_type_from_json",
    "data_type_to_json",
    "holds_type",
    "schema_from_json",
    "schema_to_json",
    "walk_fields",
]

PRIMITIVE_NAMES = (
    "string",
    "long",
    "integer",
    "short",
    "byte",
    "float",
    "double",
    "boolean",
    "binary",
    "date",
    "timestamp",
    "timestamp_ntz",
    "variant",
    "void",
)
_SHOWN = 180
MAX_TYPE_DEPTH = 30
"""The deepest allowed nesting of structs, arrays and maps within a column.

Deeper types fail elsewhere. Arrow can't send more than 64 levels, of which a map takes two. Parquet
readers refuse 50 nested lists. Messages of Spark Connect end at 100 levels, of which a struct takes
three.
"""
COLUMN_MAPPING_PREFIX = "delta.columnMapping."
"""The prefix of column mapping's keys, in the metadata of fields and in properties (spec 10.8)."""
COLUMN_ID = COLUMN_MAPPING_PREFIX + "id"
PHYSICAL_NAME = COLUMN_MAPPING_PREFIX + "physicalName"
GENERATION_EXPRESSION = "delta.generationExpression"
"""The key in a field's metadata with the SQL that computes the column (spec 10.4)."""
COLLATIONS = "__COLLATIONS"
"""The key in a field's metadata by which Spark marks texts with a collation."""
DECLARED_TYPE = "__CHAR_VARCHAR_TYPE_STRING"
"""The key in a field's metadata that keeps the type a string column was declared with (spec 10.5).

`char(n)` and `varchar(n)` are strings to Delta. For a nested column the value is the whole type.
"""
_DECIMAL = re.compile(r"^decimal\(\s*(\d{1,3})\s*,\s*(-?\d{1,3})\s*\)$")


@dataclass(frozen=True, slots=True)
class PrimitiveType:
    """A type without parts. `name` is one of `PRIMITIVE_NAMES`."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class DecimalType:
    """An exact decimal number, with 1 <= precision <= 38 and 0 <= scale <= precision."""

    precision: int
    scale: int

    def __str__(self) -> str:
        return f"decimal({self.precision},{self.scale})"


@dataclass(frozen=True, slots=True)
class ArrayType:
    """A list of one type."""

    element_type: DataType
    contains_null: bool = True

    def __str__(self) -> str:
        return f"array<{self.element_type}>"


@dataclass(frozen=True, slots=True)
class MapType:
    """A map from one type to another."""

    key_type: DataType
    value_type: DataType
    value_contains_null: bool = True

    def __str__(self) -> str:
        return f"map<{self.key_type},{self.value_type}>"


@dataclass(frozen=True, slots=True)
class StructField:
    """A named field. `metadata` holds any JSON values, also those of column mapping."""

    name: str
    data_type: DataType
    nullable: bool = True
    metadata: Mapping[str, object] = field(default_factory=dict)

    __repr__ = short_repr

    @property
    def physical_name(self) -> str:
        """The name in data files, statistics and partition values (spec 10.8)."""
        return str(self.metadata.get(PHYSICAL_NAME, self.name))


@dataclass(frozen=True, slots=True)
class StructType:
    """Fields in order: the type of a table's rows."""

    fields: tuple[StructField, ...] = ()

    def __iter__(self) -> Iterator[StructField]:
        return iter(self.fields)

    def __len__(self) -> int:
        return len(self.fields)

    def __repr__(self) -> str:
        return f"StructType({quoted(str(self), _SHOWN)})"

    def __str__(self) -> str:
        return f"struct<{','.join(f'{item.name}:{item.data_type}' for item in self.fields)}>"

    @property
    def names(self) -> tuple[str, ...]:
        """The top-level names, in order."""
        return tuple(item.name for item in self.fields)

    def find(self, name: str) -> StructField | None:
        """Return the top-level field of that name in any case, the exact match first, or None."""
        folded = name.lower()
        matches = [item for item in self.fields if item.name.lower() == folded]
        return next((item for item in matches if item.name == name), next(iter(matches), None))

    def map_fields(self, change: Callable[[StructField], StructField]) -> StructType:
        """Apply `change` to every field at any depth, inner fields first."""

        def inside(data_type: DataType) -> DataType:
            if isinstance(data_type, StructType):
                return data_type.map_fields(change)
            if isinstance(data_type, ArrayType):
                return replace(data_type, element_type=inside(data_type.element_type))
            if isinstance(data_type, MapType):
                return replace(
                    data_type,
                    key_type=inside(data_type.key_type),
                    value_type=inside(data_type.value_type),
                )
            return data_type

        return StructType(
            tuple(change(replace(item, data_type=inside(item.data_type))) for item in self)
        )

    def without_field_keys(self, is_unwanted: Callable[[str], bool]) -> StructType:
        """Return the schema without the unwanted keys in its fields' metadata, at any depth."""

        def strip(item: StructField) -> StructField:
            kept = {key: value for key, value in item.metadata.items() if not is_unwanted(key)}
            return replace(item, metadata=kept)

        return self.map_fields(strip)

    def as_nullable(self) -> StructType:
        """Return the schema with every field, array element and map value nullable."""
        return StructType(
            tuple(
                replace(item, data_type=_as_nullable(item.data_type), nullable=True)
                for item in self.fields
            )
        )


DataType: TypeAlias = PrimitiveType | DecimalType | ArrayType | MapType | StructType


def schema_from_json(text: str) -> StructType:
    """Parse a table's schema from `metaData.schemaString`.

    Raises:
        SchemaError: The text is not a schema (kind `OPTIMIST_MALFORMED_SCHEMA`), names a type that
            Delta does not have (`OPTIMIST_UNKNOWN_TYPE`), or nests its types deeper than
            `MAX_TYPE_DEPTH` (`OPTIMIST_SCHEMA_TOO_DEEP`).
    """
    try:
        parsed = data_type_from_json(parse_json(text))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        if isinstance(error, SchemaError):
            raise
        if isinstance(error, NestedTooDeepError):
            raise _too_deep() from None
        raise SchemaError(
            f"The table's schema can't be read: {shown(repr(error))} in {quoted(text)}. Nothing "
            "was read or written. Read an older version of the table.",
            kind="OPTIMIST_MALFORMED_SCHEMA",
        ) from None
    if not isinstance(parsed, StructType):
        raise SchemaError(
            f"The table's schema is of type {shown(parsed)}, not a struct. Nothing was read or "
            "written. Read an older version of the table.",
            kind="OPTIMIST_MALFORMED_SCHEMA",
        )
    return parsed


def schema_to_json(schema: StructType) -> str:
    """Return the text for `metaData.schemaString`.

    Raises:
        SchemaError: The schema nests its types deeper than `MAX_TYPE_DEPTH` (kind
            `OPTIMIST_SCHEMA_TOO_DEEP`).
    """
    # Go level by level: recursion would break on the very schemas that this has to refuse.
    level: list[DataType] = [schema]
    depth = -1
    while level:
        level = [inner for outer in level for inner in _containers_inside(outer)]
        depth += 1
        _ensure_shallow(depth)
    return json.dumps(data_type_to_json(schema), separators=(",", ":"), ensure_ascii=False)


def walk_fields(
    data_type: DataType, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], StructField]]:
    """Yield every field at any depth with its path.

    Arrays and maps add `element`, `key` and `value` to the paths of the fields inside them.
    """
    if isinstance(data_type, StructType):
        for item in data_type:
            yield (*path, item.name), item
            yield from walk_fields(item.data_type, (*path, item.name))
    elif isinstance(data_type, ArrayType):
        yield from walk_fields(data_type.element_type, (*path, "element"))
    elif isinstance(data_type, MapType):
        yield from walk_fields(data_type.key_type, (*path, "key"))
        yield from walk_fields(data_type.value_type, (*path, "value"))


def data_type_from_json(value: object) -> DataType:
    """Make a type from its parsed JSON (a name, or an object with `type`).

    Raises:
        SchemaError: The type is neither text nor an object, lacks a part, has a malformed part, is
            unknown, or is nested too deeply. The kinds are those of `schema_from_json`.
    """
    try:
        return _type_from_json(value, 0)
    except (KeyError, TypeError, AttributeError) as error:
        raise SchemaError(
            f"The schema has {quoted(value)} where a type must be.",
            kind="OPTIMIST_MALFORMED_SCHEMA",
        ) from error


def _type_from_json(value: object, depth: int) -> DataType:
    if isinstance(value, str):
        return _named_type(value)
    if not isinstance(value, dict):
        raise SchemaError(
            f"The schema has {quoted(value)} where a type must be.",
            kind="OPTIMIST_MALFORMED_SCHEMA",
        )
    _ensure_shallow(depth)
    kind, below = value["type"], depth + 1
    if kind == "struct":
        return StructType(tuple(_field_from_json(item, below) for item in value["fields"]))
    if kind == "array":
        return ArrayType(
            _type_from_json(value["elementType"], below), bool(value.get("containsNull", True))
        )
    if kind == "map":
        return MapType(
            _type_from_json(value["keyType"], below),
            _type_from_json(value["valueType"], below),
            bool(value.get("valueContainsNull", True)),
        )
    # The protocol also shows a variant as an object, so every type may come as one.
    if isinstance(kind, str):
        return _named_type(kind)
    raise SchemaError(
        f"The schema has {quoted(kind)} where the name of a type must be.",
        kind="OPTIMIST_MALFORMED_SCHEMA",
    )


def data_type_to_json(data_type: DataType) -> object:
    """Return the JSON value of a type."""
    if isinstance(data_type, StructType):
        return {"type": "struct", "fields": [_field_to_json(item) for item in data_type.fields]}
    if isinstance(data_type, ArrayType):
        return {
            "type": "array",
            "elementType": data_type_to_json(data_type.element_type),
            "containsNull": data_type.contains_null,
        }
    if isinstance(data_type, MapType):
        return {
            "type": "map",
            "keyType": data_type_to_json(data_type.key_type),
            "valueType": data_type_to_json(data_type.value_type),
            "valueContainsNull": data_type.value_contains_null,
        }
    return str(data_type)


def holds_type(data_type: DataType, wanted: DataType) -> bool:
    """Return whether a type is the wanted one, or has such a part at any depth."""
    return data_type == wanted or any(holds_type(part, wanted) for part in _parts(data_type))


def _parts(data_type: DataType) -> tuple[DataType, ...]:
    """Return the types directly inside a type."""
    if isinstance(data_type, StructType):
        return tuple(item.data_type for item in data_type.fields)
    if isinstance(data_type, ArrayType):
        return (data_type.element_type,)
    if isinstance(data_type, MapType):
        return (data_type.key_type, data_type.value_type)
    return ()


def _containers_inside(data_type: DataType) -> tuple[DataType, ...]:
    """Return the structs, arrays and maps directly inside a type."""
    containers = StructType | ArrayType | MapType
    return tuple(item for item in _parts(data_type) if isinstance(item, containers))


def _ensure_shallow(depth: int) -> None:
    # The table's own struct is the outermost and does not count.
    if depth > MAX_TYPE_DEPTH:
        raise _too_deep()


def _too_deep() -> SchemaError:
    return SchemaError(
        f"The schema nests structs, arrays and maps more than {MAX_TYPE_DEPTH} levels deep, which "
        "some readers can't process. Nothing was read or written. Make the schema flatter.",
        kind="OPTIMIST_SCHEMA_TOO_DEEP",
        max_depth=MAX_TYPE_DEPTH,
    )


def _named_type(name: str) -> DataType:
    if name == "decimal":
        return DecimalType(10, 0)
    match = _DECIMAL.match(name)
    if match and 0 <= int(match.group(2)) <= int(match.group(1)) <= 38 and int(match.group(1)):
        return DecimalType(int(match.group(1)), int(match.group(2)))
    if name not in PRIMITIVE_NAMES:
        raise SchemaError(
            f"The schema has the type {quoted(name)}, which this engine does not know.",
            kind=UNKNOWN_TYPE,
            type=name,
        )
    return PrimitiveType(name)


def _field_from_json(value: Mapping[str, object], depth: int) -> StructField:
    metadata = value.get("metadata") or {}
    if not isinstance(metadata, dict):
        raise TypeError(f"field metadata is {quoted(metadata)}")
    return StructField(
        str(value["name"]),
        _type_from_json(value["type"], depth),
        bool(value.get("nullable", True)),
        metadata,
    )


def _field_to_json(item: StructField) -> dict[str, object]:
    return {
        "name": item.name,
        "type": data_type_to_json(item.data_type),
        "nullable": item.nullable,
        "metadata": dict(item.metadata),
    }


def _as_nullable(data_type: DataType) -> DataType:
    if isinstance(data_type, StructType):
        return data_type.as_nullable()
    if isinstance(data_type, ArrayType):
        return ArrayType(_as_nullable(data_type.element_type), True)
    if isinstance(data_type, MapType):
        return MapType(_as_nullable(data_type.key_type), _as_nullable(data_type.value_type), True)
    return data_type
