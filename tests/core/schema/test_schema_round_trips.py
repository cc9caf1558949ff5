"""Any schema survives the way to JSON and back, and to Arrow and back."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optimist.core.errors import SchemaError
from optimist.core.schema.arrow_types import from_arrow_schema, to_arrow_schema
from optimist.core.schema.types import (
    PRIMITIVE_NAMES,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
    data_type_to_json,
    schema_from_json,
    schema_to_json,
)

_names = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1, max_size=8)
_json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_names, inner, max_size=3),
    max_leaves=4,
)
_metadata = st.dictionaries(_names.map(lambda name: "k." + name), _json_values, max_size=3)
_decimals = st.integers(1, 38).flatmap(
    lambda precision: st.integers(0, precision).map(lambda scale: DecimalType(precision, scale))
)


_VOID = PrimitiveType("void")


def _parts(inner: st.SearchStrategy[DataType]) -> st.SearchStrategy[tuple[DataType, bool]]:
    """A type with whether nulls are allowed: void is nothing but null."""
    return st.tuples(inner, st.booleans()).map(lambda pair: (pair[0], pair[1] or pair[0] == _VOID))


def _structs(inner: st.SearchStrategy[DataType]) -> st.SearchStrategy[StructType]:
    fields = st.builds(
        lambda name, part, metadata: StructField(name, *part, metadata),
        _names,
        _parts(inner),
        _metadata,
    )
    unique = st.lists(fields, max_size=4, unique_by=lambda item: item.name)
    return unique.map(lambda items: StructType(tuple(items)))


_types: st.SearchStrategy[DataType] = st.recursive(
    st.sampled_from(PRIMITIVE_NAMES).map(PrimitiveType) | _decimals,
    lambda inner: (
        _parts(inner).map(lambda part: ArrayType(*part))
        | st.builds(
            lambda key, part: MapType(key, *part),
            inner.filter(lambda data_type: data_type != _VOID),
            _parts(inner),
        )
        | _structs(inner)
    ),
    max_leaves=8,
)
_schemas = _structs(_types)


@given(_schemas)
def test_schema_survives_json(schema: StructType) -> None:
    assert schema_from_json(schema_to_json(schema)) == schema


@given(_schemas)
def test_schema_survives_arrow(schema: StructType) -> None:
    assert from_arrow_schema(to_arrow_schema(schema)) == schema


@given(_schemas)
def test_schema_survives_arrow_ipc(schema: StructType) -> None:
    buffer = to_arrow_schema(schema).serialize()
    assert from_arrow_schema(pa.ipc.read_schema(buffer)) == schema


@given(_schemas)
def test_as_nullable_leaves_nothing_required_and_changes_nothing_else(schema: StructType) -> None:
    nullable = schema.as_nullable()
    text = schema_to_json(nullable)
    assert '"nullable":false' not in text
    assert '"containsNull":false' not in text
    assert '"valueContainsNull":false' not in text
    assert nullable.names == schema.names
    assert nullable.as_nullable() == nullable


def test_schema_survives_a_parquet_file(tmp_path) -> None:
    schema = StructType(
        (
            StructField("id", PrimitiveType("long"), False, {"delta.columnMapping.id": 7}),
            StructField("at", PrimitiveType("timestamp"), True, {"comment": "when"}),
            StructField("at_ntz", PrimitiveType("timestamp_ntz")),
            StructField("amount", DecimalType(9, 2)),
            StructField("tags", MapType(PrimitiveType("string"), PrimitiveType("integer"))),
        )
    )
    path = tmp_path / "rows.parquet"
    pq.write_table(to_arrow_schema(schema).empty_table(), path)
    assert from_arrow_schema(pq.read_schema(path)) == schema
    assert pq.ParquetFile(path).schema_arrow.field("id").metadata[b"PARQUET:field_id"] == b"7"


def test_json_form_is_the_protocols() -> None:
    schema = StructType(
        (
            StructField("a", ArrayType(PrimitiveType("short"), False), False, {"x": 1}),
            StructField("m", MapType(PrimitiveType("string"), DecimalType(5, 3))),
        )
    )
    assert data_type_to_json(schema) == {
        "type": "struct",
        "fields": [
            {
                "name": "a",
                "type": {"type": "array", "elementType": "short", "containsNull": False},
                "nullable": False,
                "metadata": {"x": 1},
            },
            {
                "name": "m",
                "type": {
                    "type": "map",
                    "keyType": "string",
                    "valueType": "decimal(5,3)",
                    "valueContainsNull": True,
                },
                "nullable": True,
                "metadata": {},
            },
        ],
    }


@pytest.mark.parametrize("spelling", ["decimal(5,3)", "decimal(5, 3)", "decimal( 5,3 )"])
def test_decimal_is_read_in_any_spacing(spelling: str) -> None:
    text = json.dumps({"type": "struct", "fields": [{"name": "d", "type": spelling}]})
    assert schema_from_json(text).fields[0].data_type == DecimalType(5, 3)


def test_bare_decimal_means_ten_digits() -> None:
    text = json.dumps({"type": "struct", "fields": [{"name": "d", "type": "decimal"}]})
    assert schema_from_json(text).fields[0].data_type == DecimalType(10, 0)


@pytest.mark.parametrize("name", [*PRIMITIVE_NAMES, "decimal(9,2)"])
def test_a_type_without_parts_may_come_as_an_object(name: str) -> None:
    inside = {"type": "array", "elementType": {"type": name}, "containsNull": False}
    fields = [{"name": "a", "type": {"type": name}}, {"name": "b", "type": inside}]
    plain = [{"name": "a", "type": name}, {"name": "b", "type": {**inside, "elementType": name}}]
    read, wanted = (
        schema_from_json(json.dumps({"type": "struct", "fields": item})) for item in (fields, plain)
    )
    assert read == wanted


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("", "OPTIMIST_MALFORMED_SCHEMA"),
        (
            '{"type":"struct","fields":[{"name":"a","type":{"type":{"type":"long"}}}]}',
            "OPTIMIST_MALFORMED_SCHEMA",
        ),
        ("[]", "OPTIMIST_MALFORMED_SCHEMA"),
        ("17", "OPTIMIST_MALFORMED_SCHEMA"),
        ('"long"', "OPTIMIST_MALFORMED_SCHEMA"),
        ('{"type":"struct"}', "OPTIMIST_MALFORMED_SCHEMA"),
        ('{"type":"struct","fields":[17]}', "OPTIMIST_MALFORMED_SCHEMA"),
        ('{"type":"struct","fields":[{"type":"long"}]}', "OPTIMIST_MALFORMED_SCHEMA"),
        (
            '{"type":"struct","fields":[{"name":"a","type":"long","metadata":[1]}]}',
            "OPTIMIST_MALFORMED_SCHEMA",
        ),
        ('{"type":"struct","fields":[{"name":"a","type":"geometry"}]}', "OPTIMIST_UNKNOWN_TYPE"),
        (
            '{"type":"struct","fields":[{"name":"a","type":{"type":"udt"}}]}',
            "OPTIMIST_UNKNOWN_TYPE",
        ),
    ],
)
def test_damaged_schema_is_one_clear_error(text: str, kind: str) -> None:
    with pytest.raises(SchemaError) as caught:
        schema_from_json(text)
    assert caught.value.kind == kind


def test_find_ignores_case_but_prefers_the_exact_name() -> None:
    lower, upper = StructField("a", PrimitiveType("long")), StructField("A", PrimitiveType("date"))
    schema = StructType((lower, upper))
    assert schema.find("A") is upper
    assert schema.find("a") is lower
    assert StructType((upper,)).find("a") is upper
    assert schema.find("b") is None
