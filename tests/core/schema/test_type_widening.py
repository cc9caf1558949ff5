"""Which changes of type are known, and what becomes of a table with another one."""

from __future__ import annotations

import json

import pytest

from optimist.core.errors import ProtocolError
from optimist.core.protocol.actions import Metadata, Protocol
from optimist.core.protocol.gates import ensure_readable
from optimist.core.schema.type_widening import (
    is_automatic_widening,
    is_lasting_widening,
    is_stored_alike,
    is_widening,
    unknown_type_changes,
)
from optimist.core.schema.types import (
    DecimalType,
    PrimitiveType,
    data_type_from_json,
    schema_from_json,
)

PROTOCOL = Protocol(3, 7, ("typeWidening",), ("typeWidening",))


def schema_with(*changes, kind="long"):
    item = {"name": "c", "type": kind, "metadata": {"delta.typeChanges": list(changes)}}
    return json.dumps({"type": "struct", "fields": [item]})


def nested(kind):
    return {"type": "array", "elementType": {"type": "map", "keyType": "string", "valueType": kind}}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("byte", "short"),
        ("byte", "long"),
        ("short", "integer"),
        ("integer", "long"),
        ("byte", "double"),
        ("short", "double"),
        ("integer", "double"),
        ("float", "double"),
        ("date", "timestamp_ntz"),
        ("byte", "decimal(10,0)"),
        ("integer", "decimal(12,2)"),
        ("long", "decimal(22,2)"),
        ("byte", "decimal(4,1)"),
        ("short", "decimal(6,1)"),
        ("integer", "decimal(10,0)"),
        ("long", "decimal(19,0)"),
        ("decimal(5,2)", "decimal(7,2)"),
        ("decimal(5,2)", "decimal(7,4)"),
    ],
)
def test_a_change_on_the_list_is_known_and_its_reverse_is_not(old, new):
    one, other = data_type_from_json(old), data_type_from_json(new)
    assert is_widening(one, other)
    assert not is_widening(other, one)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("long", "double"),
        ("integer", "float"),
        ("integer", "decimal(11,2)"),
        ("byte", "decimal(3,1)"),
        ("short", "decimal(5,1)"),
        ("long", "decimal(20,2)"),
        ("decimal(5,2)", "decimal(6,4)"),
        ("decimal(5,2)", "decimal(5,2)"),
        ("float", "decimal(20,2)"),
        ("date", "timestamp"),
        ("integer", "string"),
        ("long", "long"),
    ],
)
def test_a_change_that_loses_values_or_is_not_listed_is_unknown(old, new):
    assert not is_widening(data_type_from_json(old), data_type_from_json(new))


def test_nested_types_never_are_widened_as_a_whole():
    assert not is_widening(PrimitiveType("byte"), data_type_from_json(nested("long")))
    assert not is_widening(data_type_from_json(nested("byte")), DecimalType(10, 0))


@pytest.mark.parametrize(
    "change",
    [
        {"fromType": "string", "toType": "integer"},
        {"fromType": "novel", "toType": "long"},
        {"toType": "long"},
        "long",
    ],
)
def test_a_table_with_an_unknown_change_is_refused_and_the_change_named(change):
    schema = schema_with({"fromType": "integer", "toType": "long"}, change)
    with pytest.raises(ProtocolError) as caught:
        ensure_readable(PROTOCOL, Metadata("id", schema), table_path="/t", version=3)
    assert caught.value.kind == "DELTA_UNSUPPORTED_TYPE_CHANGE_IN_SCHEMA"
    (named,) = caught.value.fields["changes"]
    assert named.startswith("c: ")
    assert "/t at version 3" in str(caught.value)


def test_known_changes_at_any_depth_are_read():
    change = {"fromType": "short", "toType": "long", "fieldPath": "element.value"}
    schema = schema_with({**change, "tableVersion": 4}, kind=nested("long"))
    ensure_readable(PROTOCOL, Metadata("id", schema), table_path="/t", version=3)
    inner = json.loads(schema_with({"fromType": "date", "toType": "long"}))
    deep = json.dumps({"type": "struct", "fields": [{"name": "m", "type": nested(inner)}]})
    assert unknown_type_changes(schema_from_json(deep)) == ("m.element.value.c: date to long",)


@pytest.mark.parametrize(
    "kind", [{}, {"type": "array"}, {"type": "map"}, {"type": "struct", "fields": 3}, [], 7, None]
)
def test_a_change_from_what_is_no_type_is_unknown_and_no_crash(kind):
    change = {"fromType": kind, "toType": "long"}
    field = {
        "name": "a",
        "type": "long",
        "nullable": True,
        "metadata": {"delta.typeChanges": [change]},
    }
    schema = schema_from_json(json.dumps({"type": "struct", "fields": [field]}))
    (told,) = unknown_type_changes(schema)
    assert told.startswith("a: ")


@pytest.mark.parametrize(
    "rule", [is_widening, is_automatic_widening, is_stored_alike, is_lasting_widening]
)
def test_no_type_with_parts_is_wider_than_another(rule):
    """Not even one whose fields have metadata, which makes it no key of a set."""
    struct = schema_from_json(schema_with()).without_field_keys(lambda _: False)
    kinds = [struct, PrimitiveType("integer"), DecimalType(20, 0)]
    assert not any(rule(struct, kind) or rule(kind, struct) for kind in kinds)
