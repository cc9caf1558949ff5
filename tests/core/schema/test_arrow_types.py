from __future__ import annotations

import pyarrow as pa
import pytest

from optimist.core.errors import SchemaError
from optimist.core.schema.arrow_types import (
    from_arrow_schema,
    from_arrow_type,
    to_arrow_schema,
    to_arrow_type,
)
from optimist.core.schema.types import (
    ArrayType,
    DecimalType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
)


@pytest.mark.parametrize(
    ("name", "arrow"),
    [
        ("string", pa.string()),
        ("long", pa.int64()),
        ("integer", pa.int32()),
        ("short", pa.int16()),
        ("byte", pa.int8()),
        ("float", pa.float32()),
        ("double", pa.float64()),
        ("boolean", pa.bool_()),
        ("binary", pa.binary()),
        ("date", pa.date32()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        ("timestamp_ntz", pa.timestamp("us")),
        ("void", pa.null()),
    ],
)
def test_each_primitive_has_one_arrow_type_and_comes_back(name: str, arrow: pa.DataType) -> None:
    assert to_arrow_type(PrimitiveType(name)) == arrow
    assert from_arrow_type(arrow) == PrimitiveType(name)


@pytest.mark.parametrize(
    ("arrow", "delta"),
    [
        (pa.uint8(), PrimitiveType("short")),
        (pa.uint16(), PrimitiveType("integer")),
        (pa.uint32(), PrimitiveType("long")),
        (pa.float16(), PrimitiveType("float")),
        (pa.large_string(), PrimitiveType("string")),
        (pa.string_view(), PrimitiveType("string")),
        (pa.large_binary(), PrimitiveType("binary")),
        (pa.binary(16), PrimitiveType("binary")),
        (pa.date64(), PrimitiveType("date")),
        (pa.timestamp("ns"), PrimitiveType("timestamp_ntz")),
        (pa.timestamp("s", tz="Europe/Berlin"), PrimitiveType("timestamp")),
        (pa.dictionary(pa.int32(), pa.string()), PrimitiveType("string")),
        (pa.dictionary(pa.int8(), pa.large_string()), PrimitiveType("string")),
        (pa.run_end_encoded(pa.int32(), pa.int64()), PrimitiveType("long")),
        (pa.decimal256(30, 4), DecimalType(30, 4)),
        (pa.large_list(pa.int64()), ArrayType(PrimitiveType("long"))),
        (pa.list_(pa.int64(), 3), ArrayType(PrimitiveType("long"))),
    ],
)
def test_types_that_delta_lacks_become_one_that_holds_them(arrow: pa.DataType, delta) -> None:
    assert from_arrow_type(arrow) == delta


@pytest.mark.parametrize(
    "arrow",
    [
        pa.uint64(),
        pa.time32("s"),
        pa.time64("us"),
        pa.duration("s"),
        pa.month_day_nano_interval(),
        pa.decimal256(60, 2),
        pa.decimal128(5, -2),
    ],
)
def test_type_without_a_home_in_delta_is_refused_by_column(arrow: pa.DataType) -> None:
    schema = pa.schema([("a", pa.struct([("b", pa.list_(arrow))]))])
    with pytest.raises(SchemaError) as caught:
        from_arrow_schema(schema)
    assert caught.value.kind == "DELTA_UNSUPPORTED_DATA_TYPES"
    assert caught.value.fields["column"] == "a.b.element"
    assert caught.value.fields["type"] == str(arrow)
    assert "a.b.element" in str(caught.value)


def test_map_key_and_value_are_named_in_errors() -> None:
    with pytest.raises(SchemaError) as caught:
        from_arrow_type(pa.map_(pa.string(), pa.uint64()), "m")
    assert caught.value.fields["column"] == "m.value"


def test_decimal_out_of_range_is_refused() -> None:
    with pytest.raises(SchemaError) as caught:
        to_arrow_type(DecimalType(39, 0))
    assert caught.value.kind == "DELTA_UNSUPPORTED_DATA_TYPES"


def test_void_that_is_declared_not_null_is_nullable_in_arrow() -> None:
    schema = StructType((StructField("v", PrimitiveType("void"), False),))
    assert to_arrow_schema(schema).field("v").nullable


def test_map_with_void_keys_is_refused() -> None:
    with pytest.raises(SchemaError) as caught:
        to_arrow_type(MapType(PrimitiveType("void"), PrimitiveType("long")))
    assert caught.value.kind == "DELTA_UNSUPPORTED_DATA_TYPES"


def test_variant_is_two_binaries_and_comes_back_at_any_depth() -> None:
    variant = PrimitiveType("variant")
    schema = StructType(
        (
            StructField("v", variant),
            StructField("vs", ArrayType(variant, False)),
            StructField("m", MapType(PrimitiveType("string"), variant)),
        )
    )
    arrow = to_arrow_schema(schema)
    assert [item.name for item in arrow.field("v").type] == ["value", "metadata"]
    assert from_arrow_schema(arrow) == schema


def test_struct_of_the_shape_of_a_variant_stays_a_struct() -> None:
    shape = pa.struct([pa.field("value", pa.binary()), pa.field("metadata", pa.binary())])
    assert isinstance(from_arrow_type(shape), StructType)


def test_extension_type_is_taken_for_what_it_is_stored_as() -> None:
    assert from_arrow_type(pa.json_(pa.large_string())) == PrimitiveType("string")


def test_parquets_own_variant_is_a_variant() -> None:
    class ParquetVariant(pa.ExtensionType):
        def __init__(self) -> None:
            shape = pa.struct([pa.field("metadata", pa.binary()), pa.field("value", pa.binary())])
            super().__init__(shape, "arrow.parquet.variant")

        def __arrow_ext_serialize__(self) -> bytes:
            return b""

        @classmethod
        def __arrow_ext_deserialize__(cls, storage_type, serialized):
            return cls()

    assert from_arrow_type(ParquetVariant()) == PrimitiveType("variant")


def test_field_metadata_keeps_the_types_of_its_values() -> None:
    metadata = {"a": 1, "b": "1", "c": [True, None], "d": {"e": 1.5}, "comment": "ünï"}
    schema = StructType((StructField("x", PrimitiveType("long"), True, metadata),))
    assert from_arrow_schema(to_arrow_schema(schema)).fields[0].metadata == metadata


def test_foreign_field_metadata_is_taken_as_text_and_parquet_ids_are_dropped() -> None:
    item = pa.field("x", pa.int64(), metadata={"origin": "a sensor", "PARQUET:field_id": "4"})
    assert from_arrow_schema(pa.schema([item])).fields[0].metadata == {"origin": "a sensor"}


def test_column_mapping_id_is_also_the_parquet_field_id() -> None:
    inner = StructField("y", PrimitiveType("long"), True, {"delta.columnMapping.id": 2})
    outer = StructField("x", StructType((inner,)), True, {"delta.columnMapping.id": 1})
    arrow = to_arrow_schema(StructType((outer,)))
    assert arrow.field("x").metadata[b"PARQUET:field_id"] == b"1"
    assert arrow.field("x").type.field("y").metadata[b"PARQUET:field_id"] == b"2"


def test_nullability_of_elements_and_values_is_kept() -> None:
    strict = ArrayType(MapType(PrimitiveType("long"), PrimitiveType("date"), False), False)
    assert from_arrow_type(to_arrow_type(strict)) == strict
