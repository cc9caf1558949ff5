"""Schemas and types look, compare and convert as deltalake's."""

from __future__ import annotations

from typing import Any

import deltalake.schema as real
import pyarrow as pa
import pytest

import optimist.deltalake.schema as ours

BUILT = [
    "PrimitiveType('decimal(10,2)')",
    "PrimitiveType('timestamp_ntz')",
    "ArrayType('integer')",
    "ArrayType(PrimitiveType('string'), contains_null=False)",
    "MapType('string', ArrayType('long'), value_contains_null=False)",
    "VariantType()",
    "Field('a', 'integer', nullable=False, metadata={'k': 'v'})",
    "StructType([Field('a', 'integer'), Field('b c', MapType('string', 'date'))])",
    "Schema([Field('a', 'integer'), Field('s', StructType([Field('x', 'binary')]))])",
]


def build(text: str, module: Any) -> Any:
    return eval(text, dict(vars(module)))


@pytest.mark.parametrize("text", BUILT)
def test_a_value_shows_compares_and_reads_its_json_as_theirs(text: str) -> None:
    mine, theirs = build(text, ours), build(text, real)
    assert repr(mine) == repr(theirs)
    assert str(mine) == str(theirs)
    assert mine == build(text, ours)
    assert mine != ours.PrimitiveType("byte")
    assert mine.to_json().replace(" ", "") == theirs.to_json().replace(" ", "")
    assert type(mine).from_json(theirs.to_json()) == mine
    assert real.__dict__[type(mine).__name__].from_json(mine.to_json()) == theirs


@pytest.mark.parametrize("text", [each for each in BUILT if "Variant" not in each])
def test_a_value_goes_to_arrow_and_back(text: str) -> None:
    mine = build(text, ours)
    back = type(mine).from_arrow(mine.to_arrow())
    assert back.to_json() == mine.to_json()


@pytest.mark.parametrize("name", ["int", "decimal", "decimal()", "decimal(39,1)", "", "x"])
def test_a_name_of_no_type_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="no primitive type"):
        ours.PrimitiveType(name)
    with pytest.raises(ValueError, match="type"):
        real.PrimitiveType(name)


def test_another_type_of_arrow_is_a_type_error() -> None:
    for cls in (ours.PrimitiveType, ours.MapType, ours.StructType):
        with pytest.raises(TypeError):
            cls.from_arrow(pa.list_(pa.int8()))
    with pytest.raises(TypeError):
        ours.ArrayType.from_arrow(pa.int8())
    with pytest.raises(ValueError, match="no type"):
        ours.Field("a", 3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="JSON"):
        ours.Schema.from_json("{")


def test_objects_in_metadata_are_text_and_stay_objects_in_json() -> None:
    field = ours.Field("a", "integer", metadata={"x": {"y": 3}, "k": "v"})
    assert field.metadata == real.Field("a", "integer", metadata={"x": {"y": 3}, "k": "v"}).metadata
    assert ours.Field.from_json(field.to_json()) == field


def test_large_types_reach_every_depth() -> None:
    schema = ours.Schema(
        [ours.Field("a", ours.ArrayType(ours.StructType([ours.Field("s", "string")])))]
    )
    inner = pa.struct([("s", pa.large_string())])
    assert schema.to_arrow(as_large_types=True).field("a").type.value_type == inner
    assert pa.schema(schema) == schema.to_arrow()


def test_invariants_are_told() -> None:
    text = '{"expression":{"expression":"a > 3"}}'
    schema = ours.Schema([ours.Field("a", "long", metadata={"delta.invariants": text})])
    assert schema.invariants == [("a", "a > 3")]
