"""Changes of a column's type after which old files stay readable (spec 6.3, `typeWidening`).

A table records each change in the column's metadata, as `delta.typeChanges`. Readers cast the
values of older files to the new type. They must refuse a table that records an unknown change.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from optimist.core.errors import SchemaError
from optimist.core.schema.types import (
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
    data_type_from_json,
    data_type_to_json,
)

__all__ = [
    "TYPE_CHANGES",
    "has_been",
    "is_automatic_widening",
    "is_lasting_widening",
    "is_stored_alike",
    "is_widening",
    "unknown_type_changes",
    "with_type_changes",
]

TYPE_CHANGES = "delta.typeChanges"
"""The key of a field's metadata that lists the changes of its type."""

_INTEGERS = ("byte", "short", "integer", "long")
_INTEGER_DIGITS = {"byte": 3, "short": 5, "integer": 10, "long": 19}
_INTEGER_TYPES = frozenset(map(PrimitiveType, _INTEGERS))
_SMALL_INTEGERS = _INTEGER_TYPES - {PrimitiveType("long")}
_TO_OTHERS = {
    ("byte", "double"),
    ("short", "double"),
    ("integer", "double"),
    ("float", "double"),
    ("date", "timestamp_ntz"),
}


def is_widening(old: DataType, new: DataType) -> bool:
    """Return whether every value of the old type can be cast to the new one without loss.

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


def is_automatic_widening(old: DataType, new: DataType) -> bool:
    """Return whether a write may widen a column without an explicit request (spec 10.1).

    An integer never becomes a floating point number or a decimal in this way: a single write of
    such values, perhaps by mistake, would change the column's meaning for all.
    """
    # This comes first, because only types without parts are wide or narrow: others have no hash.
    if not is_widening(old, new):
        return False
    return old not in _INTEGER_TYPES or new in _INTEGER_TYPES


def is_stored_alike(old: DataType, new: DataType) -> bool:
    """Return whether files hold both types in one form, and the new one has more values."""
    return is_widening(old, new) and {old, new} <= _SMALL_INTEGERS


def is_lasting_widening(old: DataType, new: DataType) -> bool:
    """Return whether a command may make a column wider, as the protocol lists it.

    Decimals for integers have digits for the widest type that is stored in the same form, unlike
    those that the preview of the feature allowed.
    """
    if not is_widening(old, new):
        return False
    if isinstance(new, DecimalType) and old in _INTEGER_TYPES:
        return new.precision - new.scale >= (20 if old == PrimitiveType("long") else 10)
    return True


def with_type_changes(schema: StructType, before: StructType) -> StructType:
    """Record each type that is wider than before, at the field around it.

    Args:
        schema: The new schema.
        before: The table's schema until now. Fields are matched by name.
    """
    fields = []
    for item in schema:
        old = before.find(item.name)
        fields.append(item if old is None else _with_record(item, old))
    return StructType(tuple(fields))


def unknown_type_changes(schema: StructType) -> tuple[str, ...]:
    """Return the recorded changes that may lose values, as `column: old to new`."""
    return tuple(_unknown_changes(schema, ""))


def has_been(item: StructField, type_name: str) -> bool:
    """Return whether a column once had this primitive type, by the record of its changes."""
    changes = _recorded_changes(item)
    return any(isinstance(item, Mapping) and item.get("fromType") == type_name for item in changes)


def _recorded_changes(item: StructField) -> Iterable[object]:
    changes = item.metadata.get(TYPE_CHANGES, ())
    return changes if isinstance(changes, list | tuple) else (changes,)


def _with_record(item: StructField, old: StructField) -> StructField:
    changes = list(_find_changes(old.data_type, item.data_type, ()))
    metadata = dict(item.metadata)
    if changes:
        known = metadata.get(TYPE_CHANGES, [])
        metadata[TYPE_CHANGES] = [*(known if isinstance(known, list) else []), *changes]
    inside = _with_records_inside(item.data_type, old.data_type)
    return replace(item, data_type=inside, metadata=metadata)


def _find_changes(
    old: DataType, new: DataType, path: tuple[str, ...]
) -> Iterator[dict[str, object]]:
    """Yield the changes between two types, except those in the fields of structs."""
    if isinstance(old, ArrayType) and isinstance(new, ArrayType):
        yield from _find_changes(old.element_type, new.element_type, (*path, "element"))
    elif isinstance(old, MapType) and isinstance(new, MapType):
        yield from _find_changes(old.key_type, new.key_type, (*path, "key"))
        yield from _find_changes(old.value_type, new.value_type, (*path, "value"))
    elif is_widening(old, new):
        change = {"toType": data_type_to_json(new), "fromType": data_type_to_json(old)}
        yield {**change, "fieldPath": ".".join(path)} if path else change


def _with_records_inside(data_type: DataType, old: DataType) -> DataType:
    if isinstance(data_type, StructType) and isinstance(old, StructType):
        return with_type_changes(data_type, old)
    if isinstance(data_type, ArrayType) and isinstance(old, ArrayType):
        element = _with_records_inside(data_type.element_type, old.element_type)
        return replace(data_type, element_type=element)
    if isinstance(data_type, MapType) and isinstance(old, MapType):
        return replace(
            data_type,
            key_type=_with_records_inside(data_type.key_type, old.key_type),
            value_type=_with_records_inside(data_type.value_type, old.value_type),
        )
    return data_type


def _fits_decimal(old: DataType, new: DecimalType) -> bool:
    if isinstance(old, DecimalType):
        more_scale = new.scale - old.scale
        return new != old and new.precision - old.precision >= more_scale >= 0
    if not isinstance(old, PrimitiveType) or old.name not in _INTEGER_DIGITS:
        return False
    return new.precision - new.scale >= _INTEGER_DIGITS[old.name]


def _unknown_changes(data_type: DataType, path: str) -> Iterator[str]:
    if isinstance(data_type, ArrayType):
        yield from _unknown_changes(data_type.element_type, f"{path}.element")
    elif isinstance(data_type, MapType):
        yield from _unknown_changes(data_type.key_type, f"{path}.key")
        yield from _unknown_changes(data_type.value_type, f"{path}.value")
    elif isinstance(data_type, StructType):
        for item in data_type:
            name = f"{path}.{item.name}" if path else item.name
            for change in _recorded_changes(item):
                if not _is_known(change):
                    yield f"{name}: {_describe(change)}"
            yield from _unknown_changes(item.data_type, name)


def _is_known(change: object) -> bool:
    if not isinstance(change, Mapping):
        return False
    try:
        old, new = (data_type_from_json(change.get(key)) for key in ("fromType", "toType"))
    except SchemaError:
        return False
    return is_widening(old, new)


def _describe(change: object) -> str:
    if not isinstance(change, Mapping):
        return repr(change)
    return f"{change.get('fromType')} to {change.get('toType')}"
