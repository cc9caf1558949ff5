"""Delta's schema types as frozen values, and their JSON form (protocol "Schema Serialization").

`arrow_types.py` turns them into Arrow types and back; `schema_checks.py` judges a schema.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from optimist.core.errors import SchemaError

__all__ = [
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
    "schema_from_json",
    "schema_to_json",
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
_DECIMAL = re.compile(r"^decimal\(\s*(\d+)\s*,\s*(-?\d+)\s*\)$")


@dataclass(frozen=True, slots=True)
class PrimitiveType:
    """A type without parts; `name` is one of `PRIMITIVE_NAMES`."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class DecimalType:
    """An exact decimal number; 1 <= precision <= 38, 0 <= scale <= precision."""

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
    """A named field; `metadata` holds any JSON values, those of column mapping among them."""

    name: str
    data_type: DataType
    nullable: bool = True
    metadata: Mapping[str, object] = field(default_factory=dict)

    @property
    def physical_name(self) -> str:
        """The name in data files, statistics and partition values (spec 10.8)."""
        return str(self.metadata.get("delta.columnMapping.physicalName", self.name))


@dataclass(frozen=True, slots=True)
class StructType:
    """Fields in order; the type of a table's rows."""

    fields: tuple[StructField, ...] = ()

    def __iter__(self) -> Iterator[StructField]:
        return iter(self.fields)

    def __len__(self) -> int:
        return len(self.fields)

    def __str__(self) -> str:
        return f"struct<{','.join(f'{item.name}:{item.data_type}' for item in self.fields)}>"

    @property
    def names(self) -> tuple[str, ...]:
        """The top-level names, in order."""
        return tuple(item.name for item in self.fields)

    def find(self, name: str) -> StructField | None:
        """The top-level field of that name, whatever its case; an exact match is preferred."""
        folded = name.lower()
        matches = [item for item in self.fields if item.name.lower() == folded]
        return next((item for item in matches if item.name == name), next(iter(matches), None))

    def map_fields(self, change: Callable[[StructField], StructField]) -> StructType:
        """The schema with `change` done to every field at any depth, inner ones first."""

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
        """The schema without some keys in the metadata of its fields, at any depth."""

        def strip(item: StructField) -> StructField:
            kept = {key: value for key, value in item.metadata.items() if not is_unwanted(key)}
            return replace(item, metadata=kept)

        return self.map_fields(strip)

    def as_nullable(self) -> StructType:
        """The same with every field, element and value nullable."""
        nullable = _as_nullable(self)
        assert isinstance(nullable, StructType)
        return nullable


DataType: TypeAlias = PrimitiveType | DecimalType | ArrayType | MapType | StructType


def schema_from_json(text: str) -> StructType:
    """A table's schema from `metaData.schemaString`.

    Raises:
        SchemaError: The text is no schema (kind `OPTIMIST_MALFORMED_SCHEMA`).
    """
    try:
        parsed = data_type_from_json(json.loads(text))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        if isinstance(error, SchemaError):
            raise
        raise SchemaError(
            f"The table's schema can't be read: {error!r} in {text[:200]!r}.",
            kind="OPTIMIST_MALFORMED_SCHEMA",
        ) from None
    if not isinstance(parsed, StructType):
        raise SchemaError(
            f"The table's schema is a {parsed}, not a struct.", kind="OPTIMIST_MALFORMED_SCHEMA"
        )
    return parsed


def schema_to_json(schema: StructType) -> str:
    """The text for `metaData.schemaString`."""
    return json.dumps(data_type_to_json(schema), separators=(",", ":"), ensure_ascii=False)


def data_type_from_json(value: object) -> DataType:
    """A type from its parsed JSON (a name, or an object with `type`)."""
    if isinstance(value, str):
        return _named_type(value)
    if not isinstance(value, dict):
        raise SchemaError(f"{value!r} is no type.", kind="OPTIMIST_MALFORMED_SCHEMA")
    kind = value["type"]
    if kind == "struct":
        return StructType(tuple(_field_from_json(item) for item in value["fields"]))
    if kind == "array":
        return ArrayType(
            data_type_from_json(value["elementType"]), bool(value.get("containsNull", True))
        )
    if kind == "map":
        return MapType(
            data_type_from_json(value["keyType"]),
            data_type_from_json(value["valueType"]),
            bool(value.get("valueContainsNull", True)),
        )
    raise SchemaError(f"Unknown type {kind!r} in the schema.", kind="OPTIMIST_UNKNOWN_TYPE")


def data_type_to_json(data_type: DataType) -> object:
    """The JSON value of a type."""
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


def _named_type(name: str) -> DataType:
    if name == "decimal":
        return DecimalType(10, 0)
    match = _DECIMAL.match(name)
    if match:
        return DecimalType(int(match.group(1)), int(match.group(2)))
    if name not in PRIMITIVE_NAMES:
        raise SchemaError(
            f"Unknown type {name!r} in the schema.", kind="OPTIMIST_UNKNOWN_TYPE", type=name
        )
    return PrimitiveType(name)


def _field_from_json(value: Mapping[str, object]) -> StructField:
    metadata = value.get("metadata") or {}
    if not isinstance(metadata, dict):
        raise TypeError(f"field metadata is {metadata!r}")
    return StructField(
        str(value["name"]),
        data_type_from_json(value["type"]),
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
        return StructType(
            tuple(
                replace(item, data_type=_as_nullable(item.data_type), nullable=True)
                for item in data_type.fields
            )
        )
    if isinstance(data_type, ArrayType):
        return ArrayType(_as_nullable(data_type.element_type), True)
    if isinstance(data_type, MapType):
        return MapType(_as_nullable(data_type.key_type), _as_nullable(data_type.value_type), True)
    return data_type
