"""Types as SQL spells them, without Spark."""

from __future__ import annotations

import pytest
from hypothesis import given

from optimist.core.errors import SchemaError
from optimist.core.schema.sql_types import column_of_sql
from optimist.core.schema.types import DECLARED_TYPE, ArrayType, PrimitiveType
from sql_schemas import data_types, spelled


def type_of_sql(text):
    return column_of_sql("c", text).data_type


@given(data_types())
def test_a_type_that_is_spelled_out_comes_back(data_type):
    assert type_of_sql(spelled(data_type)) == data_type


def test_declared_lengths_and_comments_are_kept():
    item = column_of_sql("c", "struct<a: varchar(3) COMMENT 'of it', b: array<char(2)>>")
    inner = item.data_type
    assert inner.find("a").metadata["comment"] == "of it"
    assert inner.find("b").data_type == ArrayType(PrimitiveType("string"))
    assert item.metadata[DECLARED_TYPE] == "struct<a:varchar(3),b:array<char(2)>>"


@pytest.mark.parametrize(
    "text",
    [
        *("", "nope", "int(3)", "array", "array<int", "map<int>", "decimal(39,1)", "int; drop"),
        *("int8", "text", "timestamp with time zone", "string collate utf8_lcase", "interval day"),
    ],
)
def test_what_is_no_type_is_refused(text):
    with pytest.raises(SchemaError) as caught:
        type_of_sql(text)
    assert caught.value.kind == "DELTA_UNSUPPORTED_DATA_TYPES"


def test_a_timestamp_without_zone_is_no_instant():
    assert type_of_sql("timestamp without time zone") == PrimitiveType("timestamp_ntz")
    assert type_of_sql("TIMESTAMP_LTZ") == PrimitiveType("timestamp")
    assert [str(type_of_sql(name)) for name in ("LONG", "Byte", "real")] == [
        "long",
        "byte",
        "float",
    ]
