"""Schemas and types as deltalake's Python has them, made of the core's types.

`to_arrow` returns objects of pyarrow, where deltalake has those of arro3. Both can be given to
whatever takes Arrow's C interface.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, ClassVar, TypeAlias, TypeVar, Union

import pyarrow as pa

from optimist.core.errors import SchemaError
from optimist.core.errors.argument_types import ensure_kind, ensure_mapping, wrong_type
from optimist.core.requests.arguments import several
from optimist.core.schema import arrow_types
from optimist.core.schema import types as core
from optimist.core.schema.arrow_types import to_arrow_schema
from optimist.core.schema.types import (
    data_type_from_json,
    data_type_to_json,
    schema_from_json,
)

__all__ = [
    "ArrayType",
    "DataType",
    "Field",
    "MapType",
    "PrimitiveType",
    "Schema",
    "StructType",
    "VariantType",
]

_Kind = TypeVar("_Kind")

_INVARIANTS = "delta.invariants"
_NO_PRIMITIVES = ("decimal", "variant")


class _Type:
    """What all types share: equality, JSON, and Arrow's C interface."""

    _core: core.DataType
    __hash__ = None  # type: ignore[assignment]  # as in deltalake

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Type) and self._core == other._core

    def to_json(self) -> str:
        """Return the type as JSON of Delta's log."""
        return json.dumps(data_type_to_json(self._core), separators=(",", ":"), ensure_ascii=False)

    def to_arrow(self) -> pa.DataType:
        """Return the type of pyarrow that holds the values."""
        return arrow_types.to_arrow_type(self._core)

    def __arrow_c_schema__(self) -> Any:
        """Export the type by Arrow's C data interface."""
        return self.to_arrow().__arrow_c_schema__()


class PrimitiveType(_Type):
    """A type without parts, such as `long` or `decimal(10,2)`.

    Args:
        data_type: Its name in Delta's log.

    Raises:
        ValueError: No primitive type has that name.
    """

    def __init__(self, data_type: str) -> None:
        try:
            found = None if data_type in _NO_PRIMITIVES else data_type_from_json(data_type)
        except (SchemaError, TypeError):
            found = None
        if not isinstance(found, core.PrimitiveType | core.DecimalType):
            raise ValueError(  # noqa: TRY004 - as in deltalake
                f"{data_type!r} is no primitive type of Delta. Use one such as 'long', 'string' or "
                "'decimal(10,2)'."
            )
        self._core = found

    @property
    def type(self) -> str:
        """The name of the type."""
        return str(self._core)

    def __repr__(self) -> str:
        return f'PrimitiveType("{self.type}")'

    @staticmethod
    def from_json(json: str) -> PrimitiveType:
        """Read the type from JSON, a text in quotes."""
        return PrimitiveType(_parsed(json))

    @staticmethod
    def from_arrow(type: Any) -> PrimitiveType:
        """Return the type that holds the values of a type of Arrow.

        Raises:
            TypeError: It is not primitive.
        """
        return _checked(_of_arrow(type), PrimitiveType)


class VariantType(_Type):
    """Delta's type `variant`."""

    type: ClassVar[str] = "variant"
    _core = core.PrimitiveType("variant")

    def __repr__(self) -> str:
        return "VariantType()"

    @staticmethod
    def from_json(json: str) -> VariantType:
        """Read the type from JSON."""
        return _checked(_wrapped(_read_type(_parsed(json))), VariantType)

    @staticmethod
    def from_arrow(type: Any) -> VariantType:
        """Return the type for Arrow's extension type of variants."""
        return _checked(_of_arrow(type), VariantType)


class ArrayType(_Type):
    """A list of one type.

    Args:
        element_type: The type of the elements; a text means a primitive type.
        contains_null: Whether an element may be null.
    """

    type: ClassVar[str] = "array"

    def __init__(self, element_type: DataType | str, contains_null: bool = True) -> None:
        self._core: core.ArrayType = core.ArrayType(_core_of(element_type), contains_null)

    @property
    def element_type(self) -> DataType:
        """The type of the elements."""
        return _wrapped(self._core.element_type)

    @property
    def contains_null(self) -> bool:
        """Whether an element may be null."""
        return self._core.contains_null

    def __repr__(self) -> str:
        return f"ArrayType({self.element_type!r}, contains_null={self.contains_null})"

    @staticmethod
    def from_json(json: str) -> ArrayType:
        """Read the type from JSON of Delta's log."""
        return _checked(_wrapped(_read_type(_parsed(json))), ArrayType)

    @staticmethod
    def from_arrow(type: Any) -> ArrayType:
        """Return the type for a list type of Arrow."""
        return _checked(_of_arrow(type), ArrayType)


class MapType(_Type):
    """A map from one type to another.

    Args:
        key_type: The type of the keys; a text means a primitive type.
        value_type: The type of the values; a text means a primitive type.
        value_contains_null: Whether a value may be null.
    """

    type: ClassVar[str] = "map"

    def __init__(
        self,
        key_type: DataType | str,
        value_type: DataType | str,
        value_contains_null: bool = True,
    ) -> None:
        self._core: core.MapType = core.MapType(
            _core_of(key_type), _core_of(value_type), value_contains_null
        )

    @property
    def key_type(self) -> DataType:
        """The type of the keys."""
        return _wrapped(self._core.key_type)

    @property
    def value_type(self) -> DataType:
        """The type of the values."""
        return _wrapped(self._core.value_type)

    @property
    def value_contains_null(self) -> bool:
        """Whether a value may be null."""
        return self._core.value_contains_null

    def __repr__(self) -> str:
        return (
            f"MapType({self.key_type!r}, {self.value_type!r}, "
            f"value_contains_null={self.value_contains_null})"
        )

    @staticmethod
    def from_json(json: str) -> MapType:
        """Read the type from JSON of Delta's log."""
        return _checked(_wrapped(_read_type(_parsed(json))), MapType)

    @staticmethod
    def from_arrow(type: Any) -> MapType:
        """Return the type for a map type of Arrow."""
        return _checked(_of_arrow(type), MapType)


class Field:
    """A column, or a field of a struct.

    Args:
        name: Its name.
        type: Its type; a text means a primitive type.
        nullable: Whether its values may be null.
        metadata: JSON values by names, kept in the table's schema.

    Raises:
        ValueError: The type is none.
    """

    __hash__ = None  # type: ignore[assignment]  # as in deltalake

    def __init__(
        self,
        name: str,
        type: DataType | str,
        nullable: bool = True,
        metadata: dict[str, Any] | None = None,
    ) -> None:
        if metadata is not None:
            ensure_mapping(metadata, "metadata", "a dict of names and JSON values")
        self._core = core.StructField(name, _core_of(type), nullable, dict(metadata or {}))

    @classmethod
    def _of(cls, item: core.StructField) -> Field:
        field = cls.__new__(cls)
        field._core = item
        return field

    @property
    def name(self) -> str:
        """The name."""
        return self._core.name

    @property
    def type(self) -> DataType:
        """The type."""
        return _wrapped(self._core.data_type)

    @property
    def nullable(self) -> bool:
        """Whether values may be null."""
        return self._core.nullable

    @property
    def metadata(self) -> dict[str, Any]:
        """The metadata. Objects and lists in it are JSON text."""
        return {
            key: json.dumps(value, separators=(",", ":"))
            if isinstance(value, dict | list)
            else value
            for key, value in self._core.metadata.items()
        }

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Field) and self._core == other._core

    def __repr__(self) -> str:
        told = f", metadata={self.metadata!r}" if self._core.metadata else ""
        return f"Field({self.name}, {self.type!r}, nullable={self.nullable}{told})"

    def to_json(self) -> str:
        """Return the field as JSON of Delta's log."""
        (value,) = json.loads(core.schema_to_json(core.StructType((self._core,))))["fields"]
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False)

    @staticmethod
    def from_json(json: str) -> Field:
        """Read a field from JSON of Delta's log."""
        (field,) = StructType._read({"type": "struct", "fields": [_parsed(json)]}).fields
        return field

    def to_arrow(self) -> pa.Field:
        """Return the field of pyarrow."""
        return to_arrow_schema(core.StructType((self._core,))).field(0)

    @staticmethod
    def from_arrow(field: Any) -> Field:
        """Return the field for a field of Arrow."""
        try:
            given = field if isinstance(field, pa.Field) else pa.field(field)
        except (TypeError, ValueError):
            raise wrong_type("field", field, "a field of Arrow") from None
        return Field._of(arrow_types.from_arrow_schema(pa.schema([given])).fields[0])

    def __arrow_c_schema__(self) -> Any:
        """Export the field by Arrow's C data interface."""
        return self.to_arrow().__arrow_c_schema__()


class StructType(_Type):
    """Fields in order.

    Args:
        fields: The fields.
    """

    type: ClassVar[str] = "struct"
    _core: core.StructType

    def __init__(self, fields: Sequence[Field]) -> None:
        for item in several(fields, "fields"):
            ensure_kind(item, "fields", Field, "a list of Field")
        self._core = core.StructType(tuple(item._core for item in fields))

    @property
    def fields(self) -> list[Field]:
        """The fields, in order."""
        return [Field._of(item) for item in self._core.fields]

    def __repr__(self) -> str:
        return f"{type(self).__name__}([{', '.join(map(repr, self.fields))}])"

    @staticmethod
    def _read(value: object) -> StructType:
        return _checked(_wrapped(_read_type(value)), StructType)

    @staticmethod
    def from_json(json: str) -> StructType:
        """Read the type from JSON of Delta's log."""
        return StructType._read(_parsed(json))

    @staticmethod
    def from_arrow(type: Any) -> StructType:
        """Return the type for a struct type of Arrow."""
        return _checked(_of_arrow(type), StructType)


class Schema(StructType):
    """The columns of a table.

    Args:
        fields: The columns, in order.
    """

    @property
    def invariants(self) -> list[tuple[str, str]]:
        """The invariants of top-level columns, each with its column and its SQL."""
        found = ((item.name, item.metadata.get(_INVARIANTS)) for item in self._core)
        return [(name, _invariant_sql(text)) for name, text in found if isinstance(text, str)]

    def to_arrow(self, as_large_types: bool = False) -> pa.Schema:
        """Return the schema of pyarrow.

        Args:
            as_large_types: Whether texts, binaries and lists have 64-bit offsets.
        """
        schema = to_arrow_schema(self._core)
        if not as_large_types:
            return schema
        return pa.schema([item.with_type(_as_large(item.type)) for item in schema])

    @staticmethod
    def from_json(json: str) -> Schema:
        """Read a schema from JSON of Delta's log."""
        return Schema._of(schema_from_json(json))

    @staticmethod
    def from_arrow(type: Any) -> Schema:
        """Return the schema for the columns of Arrow.

        Raises:
            SchemaMismatchError: No type of Delta holds the values of a column.
        """
        try:
            given = type if isinstance(type, pa.Schema) else pa.schema(type)
        except (TypeError, ValueError):
            raise wrong_type("schema", type, "a schema of Arrow") from None
        return Schema._of(arrow_types.from_arrow_schema(given))

    @classmethod
    def _of(cls, columns: core.StructType) -> Schema:
        schema = cls.__new__(cls)
        schema._core = columns
        return schema


DataType: TypeAlias = Union[PrimitiveType, MapType, StructType, ArrayType, VariantType]  # noqa: UP007 - as in deltalake


def core_schema(schema: Schema | StructType) -> core.StructType:
    """Return the core's value of a schema."""
    return schema._core


def core_field(field: Field) -> core.StructField:
    """Return the core's value of a field."""
    return field._core


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (json.JSONDecodeError, TypeError) as error:
        raise ValueError(f"{text!r} is not JSON: {error}") from None


def _read_type(value: object) -> core.DataType:
    try:
        return data_type_from_json(value)
    except (SchemaError, LookupError, TypeError) as error:
        raise ValueError(f"{value!r} is no type of Delta: {error}") from None


def _of_arrow(given: Any) -> DataType:
    arrow = given if isinstance(given, pa.DataType) else pa.field(given).type
    return _wrapped(arrow_types.from_arrow_type(arrow))


def _core_of(given: object) -> core.DataType:
    if isinstance(given, str):
        return PrimitiveType(given)._core
    if isinstance(given, _Type):
        return given._core
    raise ValueError(f"{given!r} is no type of Delta.")


def _wrapped(data_type: core.DataType) -> DataType:
    if data_type == core.PrimitiveType("variant"):
        return VariantType()
    classes: dict[type[core.DataType], type[Any]] = {
        core.ArrayType: ArrayType,
        core.MapType: MapType,
        core.StructType: StructType,
    }
    wrapped: Any = object.__new__(classes.get(type(data_type), PrimitiveType))
    wrapped._core = data_type
    return wrapped  # type: ignore[no-any-return]


def _checked(found: object, wanted: type[_Kind]) -> _Kind:
    if not isinstance(found, wanted):
        raise TypeError(f"{found!r} is not a {wanted.__name__}.")
    return found


def _invariant_sql(text: str) -> str:
    """Return the SQL within Delta's JSON of an invariant, or the text if it is another."""
    try:
        return str(json.loads(text)["expression"]["expression"])
    except (LookupError, TypeError, ValueError):
        return text


def _as_large(data_type: pa.DataType) -> pa.DataType:
    if data_type == pa.string():
        return pa.large_string()
    if data_type == pa.binary():
        return pa.large_binary()
    if pa.types.is_list(data_type):
        return pa.large_list(_with_large_type(data_type.value_field))
    if pa.types.is_map(data_type):
        return pa.map_(
            _with_large_type(data_type.key_field), _with_large_type(data_type.item_field)
        )
    if pa.types.is_struct(data_type):
        return pa.struct([_with_large_type(item) for item in data_type])
    return data_type


def _with_large_type(item: pa.Field) -> pa.Field:
    return item.with_type(_as_large(item.type))
