"""Delta's schema types as Arrow types, and back.

| Delta | Arrow |
|---|---|
| string, binary, boolean, date, void | string, binary, bool, date32, null |
| byte, short, integer, long, float, double | int8, int16, int32, int64, float32, float64 |
| timestamp, timestamp_ntz | timestamp[us, UTC], timestamp[us] |
| decimal(p,s) | decimal128(p, s) |
| variant | a struct of `value` and `metadata`, both binary, marked in the field's metadata |

Field metadata is converted both ways, as JSON values under the same keys. A column mapping id is
also written as `PARQUET:field_id`, where Parquet readers and writers look for it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

import pyarrow as pa

from optimist.core.errors import SchemaError
from optimist.core.errors.foreign_text import shown
from optimist.core.schema.types import (
    COLUMN_ID,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
)
from optimist.core.values.arrow_lists import is_list
from optimist.core.values.foreign_json import parse_json

__all__ = [
    "from_arrow_schema",
    "from_arrow_type",
    "num_leaves",
    "storage_type",
    "to_arrow_schema",
    "to_arrow_type",
    "with_signed_integers",
]

_TO_ARROW: Mapping[str, pa.DataType] = {
    "string": pa.string(),
    "long": pa.int64(),
    "integer": pa.int32(),
    "short": pa.int16(),
    "byte": pa.int8(),
    "float": pa.float32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "void": pa.null(),
}
_FROM_ARROW: Mapping[pa.DataType, str] = {
    **{arrow: name for name, arrow in _TO_ARROW.items() if not name.startswith("timestamp")},
    # Delta has no unsigned types. Each becomes the next wider signed one, which holds every value.
    pa.uint8(): "short",
    pa.uint16(): "integer",
    pa.uint32(): "long",
    pa.float16(): "float",
    pa.large_string(): "string",
    pa.string_view(): "string",
    pa.date64(): "date",
    pa.large_binary(): "binary",
    pa.binary_view(): "binary",
}
_VOID = PrimitiveType("void")  # Arrow's null type is always nullable
_FIELD_ID = b"PARQUET:field_id"
_KIND_MARK = b"optimist.type"
_VARIANT = pa.struct(
    [pa.field("value", pa.binary(), nullable=False), pa.field("metadata", pa.binary(), False)]
)


def to_arrow_schema(schema: StructType) -> pa.Schema:
    """Return the Arrow schema of a table's rows. `from_arrow_schema` converts it back."""
    return pa.schema([_to_arrow_field(item) for item in schema])


def to_arrow_type(data_type: DataType) -> pa.DataType:
    """Return the Arrow type of a Delta type.

    A variant becomes a struct. Inside an array, a map or a struct, the metadata of its field marks
    it as a variant. `variant` alone has no field, so `from_arrow_type` reads it as a struct.

    Raises:
        SchemaError: A decimal is out of range, or a map's keys are void (kind
            `DELTA_UNSUPPORTED_DATA_TYPES`).
    """
    if isinstance(data_type, PrimitiveType):
        return _VARIANT if data_type.name == "variant" else _TO_ARROW[data_type.name]
    if isinstance(data_type, DecimalType):
        return _to_arrow_decimal(data_type)
    if isinstance(data_type, ArrayType):
        return pa.list_(_to_arrow_part("element", data_type.element_type, data_type.contains_null))
    if isinstance(data_type, MapType):
        if data_type.key_type == _VOID:
            raise _void_key(data_type)
        return pa.map_(
            _to_arrow_part("key", data_type.key_type, False),
            _to_arrow_part("value", data_type.value_type, data_type.value_contains_null),
        )
    return pa.struct([_to_arrow_field(item) for item in data_type])


def from_arrow_schema(schema: pa.Schema) -> StructType:
    """Return the Delta schema that holds the rows of an Arrow table.

    A type that Delta lacks becomes the Delta type that holds all its values: an unsigned integer
    becomes the next wider signed one, a dictionary its values' type, a large or view type the plain
    one, and a timestamp of any unit one in microseconds.

    Raises:
        SchemaError: A column has a type that no Delta type holds without loss, such as uint64, time
            or duration (kind `DELTA_UNSUPPORTED_DATA_TYPES`, fields `column`, `type`).
    """
    return StructType(tuple(_from_arrow_field(item, (item.name,)) for item in schema))


def from_arrow_type(data_type: pa.DataType, column: str = "") -> DataType:
    """Return the Delta type that holds an Arrow type's values. Errors name `column`.

    Raises:
        SchemaError: See `from_arrow_schema`.
    """
    return _from_arrow(data_type, (column,) if column else ())


def storage_type(data_type: pa.DataType) -> pa.DataType:
    """Return the type itself, or that of the values of an extension type, such as a point's struct.

    A program registers such types, and then pyarrow finds them in the notes of its own files.
    """
    is_extension = isinstance(data_type, pa.BaseExtensionType)
    return data_type.storage_type if is_extension else data_type


def num_leaves(data_type: pa.DataType) -> int:
    """Return how many columns of a Parquet file hold the values of a type."""
    stored = storage_type(data_type)
    if not pa.types.is_nested(stored):
        return 1
    return sum(num_leaves(stored.field(index).type) for index in range(stored.num_fields))


def with_signed_integers(schema: pa.Schema) -> pa.Schema:
    """Return the schema with int64 in place of uint64, for rows whose values are checked."""
    return pa.schema([_signed_field(item) for item in schema], metadata=schema.metadata)


def _signed_field(item: pa.Field) -> pa.Field:
    return item.with_type(_signed(item.type))


def _signed(data_type: pa.DataType) -> pa.DataType:
    if isinstance(data_type, pa.BaseExtensionType):
        return data_type
    if data_type == pa.uint64():
        return pa.int64()
    if pa.types.is_dictionary(data_type) or pa.types.is_run_end_encoded(data_type):
        is_found = data_type.value_type == pa.uint64()
        return pa.int64() if is_found else data_type
    if is_list(data_type):
        return pa.list_(_signed_field(data_type.value_field))
    if pa.types.is_map(data_type):
        return pa.map_(_signed_field(data_type.key_field), _signed_field(data_type.item_field))
    if pa.types.is_struct(data_type):
        return pa.struct([_signed_field(item) for item in data_type])
    return data_type


def _void_key(data_type: MapType) -> SchemaError:
    return SchemaError(
        f"The type {shown(data_type)} can't be held in Arrow, because its keys have no type. Give "
        "the keys a type.",
        kind="DELTA_UNSUPPORTED_DATA_TYPES",
        type=str(data_type),
    )


def _to_arrow_decimal(data_type: DecimalType) -> pa.DataType:
    if not (1 <= data_type.precision <= 38 and 0 <= data_type.scale <= data_type.precision):
        raise SchemaError(
            f"The type {shown(data_type)} is not a Delta type: the precision must be from 1 to 38, "
            "and the scale from 0 to the precision.",
            kind="DELTA_UNSUPPORTED_DATA_TYPES",
            type=str(data_type),
        )
    return pa.decimal128(data_type.precision, data_type.scale)


def _to_arrow_field(item: StructField) -> pa.Field:
    metadata = {key: _to_text(value) for key, value in item.metadata.items()}
    column_id = item.metadata.get(COLUMN_ID)
    encoded = {key.encode(): text.encode() for key, text in metadata.items()}
    if isinstance(column_id, int):
        encoded[_FIELD_ID] = str(column_id).encode()
    return pa.field(
        item.name,
        to_arrow_type(item.data_type),
        item.nullable or item.data_type == _VOID,
        metadata={**encoded, **_variant_mark(item.data_type)} or None,
    )


def _to_arrow_part(name: str, data_type: DataType, nullable: bool) -> pa.Field:
    arrow_type = to_arrow_type(data_type)
    is_nullable = nullable or data_type == _VOID
    return pa.field(name, arrow_type, is_nullable, metadata=_variant_mark(data_type) or None)


def _variant_mark(data_type: DataType) -> dict[bytes, bytes]:
    is_variant = isinstance(data_type, PrimitiveType) and data_type.name == "variant"
    return {_KIND_MARK: b"variant"} if is_variant else {}


def _to_text(value: object) -> str:
    """Return the value as JSON, strings too, so that `1` and `"1"` stay different."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _from_text(text: str) -> object:
    # Metadata of pandas and other writers is plain text.
    try:
        return parse_json(text)
    except ValueError:
        return text


def _from_arrow_field(item: pa.Field, path: tuple[str, ...]) -> StructField:
    raw: Mapping[bytes, bytes] = item.metadata or {}
    metadata = {
        key.decode("utf-8", "replace"): _from_text(text.decode("utf-8", "replace"))
        for key, text in raw.items()
        if key not in (_FIELD_ID, _KIND_MARK)
    }
    return StructField(item.name, _from_arrow_part(item, path), item.nullable, metadata)


def _from_arrow_part(item: pa.Field, path: tuple[str, ...]) -> DataType:
    if (item.metadata or {}).get(_KIND_MARK) == b"variant":
        return PrimitiveType("variant")
    return _from_arrow(item.type, path)


def _from_arrow(data_type: pa.DataType, path: tuple[str, ...]) -> DataType:
    if isinstance(data_type, pa.BaseExtensionType):  # first, because these need not be hashable
        return _from_extension(data_type, path)
    name = _FROM_ARROW.get(data_type)
    if name is not None:
        return PrimitiveType(name)
    if pa.types.is_timestamp(data_type):
        return PrimitiveType("timestamp_ntz" if data_type.tz is None else "timestamp")
    if pa.types.is_fixed_size_binary(data_type):
        return PrimitiveType("binary")
    if pa.types.is_decimal(data_type):
        return _from_decimal(data_type, path)
    if pa.types.is_dictionary(data_type) or pa.types.is_run_end_encoded(data_type):
        return _from_arrow(data_type.value_type, path)
    if is_list(data_type):
        element = data_type.value_field
        return ArrayType(_from_arrow_part(element, (*path, "element")), element.nullable)
    if pa.types.is_map(data_type):
        value = data_type.item_field
        return MapType(
            _from_arrow_part(data_type.key_field, (*path, "key")),
            _from_arrow_part(value, (*path, "value")),
            value.nullable,
        )
    if pa.types.is_struct(data_type):
        return StructType(tuple(_from_arrow_field(item, (*path, item.name)) for item in data_type))
    raise _unsupported_type(data_type, path)


def _from_extension(data_type: pa.BaseExtensionType, path: tuple[str, ...]) -> DataType:
    if data_type.extension_name in ("arrow.parquet.variant", "parquet.variant"):
        return PrimitiveType("variant")
    return _from_arrow(data_type.storage_type, path)


def _from_decimal(data_type: pa.DataType, path: tuple[str, ...]) -> DecimalType:
    if data_type.precision > 38 or not 0 <= data_type.scale <= data_type.precision:
        raise _unsupported_type(data_type, path)
    return DecimalType(data_type.precision, data_type.scale)


def _unsupported_type(data_type: pa.DataType, path: tuple[str, ...]) -> SchemaError:
    column = ".".join(path)
    subject = f"The column {column}" if column else "A column"
    return SchemaError(
        f"{shown(subject)} has the Arrow type {shown(data_type)}, which no Delta type holds "
        "without loss. Nothing was written. Cast it, for example to a string, a long or a decimal.",
        kind="DELTA_UNSUPPORTED_DATA_TYPES",
        column=column,
        type=str(data_type),
    )
