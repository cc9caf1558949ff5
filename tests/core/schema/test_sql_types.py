"""Types as SQL spells them, without Spark."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optimist.core.errors import SchemaError
from optimist.core.schema.sql_types import column_of_sql, type_of_sql
from optimist.core.schema.types import (
    DECLARED_TYPE,
    ArrayType,
    DecimalType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
)

SQL_NAMES = {
    "string": "string",
    "long": "bigint",
    "integer": "INT",
    "short": "smallint",
    "byte": "TinyInt",
    "float": "float",
    "double": "double",
    "boolean": "boolean",
    "binary": "binary",
    "date": "date",
    "timestamp": "timestamp",
    "timestamp_ntz": "timestamp_ntz",
    "variant": "variant",
    "void": "void",
}
NAMES = st.text("ab `.,<>:é", min_size=1, max_size=4)


def leaves():
    plain = st.sampled_from([PrimitiveType(name) for name in SQL_NAMES])
    decimals = st.integers(1, 38).flatmap(
        lambda p: st.builds(DecimalType, st.just(p), st.integers(0, p))
    )
    return plain | decimals


def nested(inner):
    fields = st.lists(st.builds(StructField, NAMES, inner, st.booleans()), min_size=1, max_size=3)
    return (
        st.builds(ArrayType, inner)
        | st.builds(MapType, inner, inner)
        | fields.map(lambda items: StructType(tuple(items)))
    )


def spelled(data_type):
    if isinstance(data_type, PrimitiveType):
        return SQL_NAMES[data_type.name]
    if isinstance(data_type, ArrayType):
        return f"array<{spelled(data_type.element_type)}>"
    if isinstance(data_type, MapType):
        return f"MAP< {spelled(data_type.key_type)},{spelled(data_type.value_type)} >"
    if isinstance(data_type, StructType):
        inner = ", ".join(
            f"`{item.name.replace('`', '``')}`: {spelled(item.data_type)}"
            + ("" if item.nullable else " NOT NULL")
            for item in data_type
        )
        return f"struct<{inner}>"
    return str(data_type)


@given(st.recursive(leaves(), nested, max_leaves=5))
def test_a_type_that_is_spelled_out_comes_back(data_type):
    assert type_of_sql(spelled(data_type)) == data_type


def test_declared_lengths_and_comments_are_kept():
    item = column_of_sql("c", "struct<a: varchar(3) COMMENT 'of it', b: array<char(2)>>")
    inner = item.data_type
    assert inner.find("a").metadata["comment"] == "of it"
    assert inner.find("b").data_type == ArrayType(PrimitiveType("string"))
    assert item.metadata[DECLARED_TYPE] == "struct<a:varchar(3),b:array<char(2)>>"


@pytest.mark.parametrize(
    "text", ["", "nope", "int(3)", "array", "array<int", "map<int>", "decimal(39,1)", "int; drop"]
)
def test_what_is_no_type_is_refused(text):
    with pytest.raises(SchemaError) as caught:
        type_of_sql(text)
    assert caught.value.kind == "OPTIMIST_UNKNOWN_TYPE"
