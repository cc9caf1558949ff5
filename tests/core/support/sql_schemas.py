"""Types of Delta, and how SQL spells them."""

from __future__ import annotations

from hypothesis import strategies as st

from optimist.core.schema.types import (
    ArrayType,
    DecimalType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
)

__all__ = ["data_types", "spelled"]

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


def _leaves():
    plain = st.sampled_from([PrimitiveType(name) for name in SQL_NAMES])
    decimals = st.integers(1, 38).flatmap(
        lambda p: st.builds(DecimalType, st.just(p), st.integers(0, p))
    )
    return plain | decimals


def _nested(inner):
    fields = st.lists(st.builds(StructField, NAMES, inner, st.booleans()), min_size=1, max_size=3)
    return (
        st.builds(ArrayType, inner)
        | st.builds(MapType, inner, inner)
        | fields.map(lambda items: StructType(tuple(items)))
    )


def data_types():
    """Any type, a few levels deep, with odd names of fields."""
    return st.recursive(_leaves(), _nested, max_leaves=5)


def spelled(data_type):
    """A type as SQL."""
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
