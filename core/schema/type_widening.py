"""Changes of a column's type after which old files stay readable (spec 6.3, `typeWidening`).

A table records each change in the column's metadata, as `delta.typeChanges`. Readers cast the
values of older files up, and must refuse the table if it records a change that they do not know.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from optimist.core.errors import SchemaError
from optimist.core.schema.types import (
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    PrimitiveType,
    StructType,
    data_type_from_json,
)

__all__ = ["TYPE_CHANGES", "is_widening", "unknown_type_changes"]

TYPE_CHANGES = "delta.typeChanges"
"""The key of a field's metadata that lists the changes of its type."""

_INTEGERS = ("byte", "short", "integer", "long")
_INTEGER_DIGITS = {"byte": 3, "short": 5, "integer": 10, "long": 19}
_TO_OTHERS = {
    ("byte", "double"),
    ("short", "double"),
    ("integer", "double"),
    ("float", "double"),
    ("date", "timestamp_ntz"),
}


def is_widening(old: DataType, new: DataType) -> bool:
    """Whether every value of the old type can be cast to the new one without loss.

    These are the changes that the protocol lists, and the narrower decimals that the preview of the
    feature allowed for integers.
    """
    if isinstance(new, DecimalType):
        return _fits_decimal(old, new)
    if not (isinstance(old, PrimitiveType) and isinstance(new, PrimitiveType)):
        return False
    if old.name in _INTEGERS and new.name in _INTEGERS:
        return _INTEGERS.index(old.name) < _INTEGERS.index(new.name)
    return (old.name, new.name) in _TO_OTHERS


def unknown_type_changes(schema: StructType) -> tuple[str, ...]:
    """The recorded changes that are not known to keep all values, as `column: old to new`."""
    return tuple(_unknown(schema, ""))


def _fits_decimal(old: DataType, new: DecimalType) -> bool:
    if isinstance(old, DecimalType):
        more_scale = new.scale - old.scale
        return new != old and new.precision - old.precision >= more_scale >= 0
    if not isinstance(old, PrimitiveType) or old.name not in _INTEGER_DIGITS:
        return False
    return new.precision - new.scale >= _INTEGER_DIGITS[old.name]


def _unknown(data_type: DataType, path: str) -> Iterator[str]:
    if isinstance(data_type, ArrayType):
        yield from _unknown(data_type.element_type, f"{path}.element")
    elif isinstance(data_type, MapType):
        yield from _unknown(data_type.key_type, f"{path}.key")
        yield from _unknown(data_type.value_type, f"{path}.value")
    elif isinstance(data_type, StructType):
        for item in data_type:
            name = f"{path}.{item.name}" if path else item.name
            changes = item.metadata.get(TYPE_CHANGES, ())
            for change in changes if isinstance(changes, list | tuple) else (changes,):
                if not _is_known(change):
                    yield f"{name}: {_described(change)}"
            yield from _unknown(item.data_type, name)


def _is_known(change: object) -> bool:
    if not isinstance(change, Mapping):
        return False
    try:
        old, new = (data_type_from_json(change.get(key)) for key in ("fromType", "toType"))
    except SchemaError:
        return False
    return is_widening(old, new)


def _described(change: object) -> str:
    if not isinstance(change, Mapping):
        return repr(change)
    return f"{change.get('fromType')} to {change.get('toType')}"
