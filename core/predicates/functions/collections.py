"""Functions of arrays, maps and structs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.errors import SchemaError
from optimist.core.errors.foreign_text import shown
from optimist.core.predicates.functions.common_types import widened, widest
from optimist.core.predicates.functions.comparisons import compare_values, is_comparable
from optimist.core.predicates.functions.value import (
    BOOLEAN,
    INTEGERS,
    VOID,
    Arguments,
    Array,
    Value,
    computed,
    one_array,
    strict,
)
from optimist.core.predicates.resolution import is_specially_ordered
from optimist.core.schema.arrow_types import to_arrow_type
from optimist.core.schema.types import (
    ArrayType,
    DataType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
)

__all__ = [
    "array_of",
    "contains",
    "element_at",
    "element_or_null",
    "field_of",
    "has_key",
    "item_at",
    "item_or_null",
    "keys_of",
    "named_struct",
    "places_of",
    "size",
    "size_of_array",
    "struct_of",
    "values_of",
]

_INTEGER = PrimitiveType("integer")


def size(given: Arguments) -> Value | None:
    """Return how many elements an array or a map has."""
    if not isinstance(given.types[0], (ArrayType, MapType)):
        return None

    def kernel(values: Array) -> Array:
        array = one_array(values)
        lengths: Any = np.diff(array.offsets.to_numpy(zero_copy_only=False))
        return pc.if_else(array.is_valid(), pa.array(lengths, pa.int32()), None)

    return computed(_INTEGER, given.values, kernel)


def size_of_array(given: Arguments) -> Value | None:
    """Return how many elements an array has."""
    return size(given) if isinstance(given.types[0], ArrayType) else None


def keys_of(given: Arguments) -> Value | None:
    """Return the keys of a map as an array."""
    kind = given.types[0]
    if not isinstance(kind, MapType):
        return None
    return _part_of_map(given, ArrayType(kind.key_type, False), lambda maps: maps.keys)


def values_of(given: Arguments) -> Value | None:
    """Return the values of a map as an array."""
    kind = given.types[0]
    if not isinstance(kind, MapType):
        return None
    target = ArrayType(kind.value_type, kind.value_contains_null)
    return _part_of_map(given, target, lambda maps: maps.items)


def _part_of_map(
    given: Arguments, target: ArrayType, part: Callable[[pa.MapArray], pa.Array]
) -> Value:
    arrow_type = to_arrow_type(target)

    def kernel(values: Array) -> Array:
        maps = one_array(values)
        is_null = maps.is_null()
        offsets = maps.offsets
        if maps.null_count:
            last = pa.array([False])
            offsets = pc.if_else(pa.concat_arrays([is_null, last]), None, offsets)
        return pa.ListArray.from_arrays(offsets, part(maps)).cast(arrow_type)

    return computed(target, given.values, kernel)


def contains(given: Arguments) -> Value | None:
    """Tell whether an array has an element that equals a value."""
    kind = given.types[0]
    if not isinstance(kind, ArrayType):
        return None
    return _found(given, kind.element_type, lambda lists: lists.values)


def has_key(given: Arguments) -> Value | None:
    """Tell whether a map has a key."""
    kind = given.types[0]
    if not isinstance(kind, MapType):
        return None
    return _found(given, kind.key_type, lambda maps: maps.keys)


def _found(
    given: Arguments, kind: DataType, elements: Callable[[pa.Array], pa.Array]
) -> Value | None:
    wanted = given.values[1]
    if wanted.data_type != kind or not is_comparable(kind):
        return None

    def kernel(values: Array, searched: Array) -> Array:
        array, parents, places = places_of(values)
        same = compare_values(
            "=", elements(array).take(places), one_array(searched).take(parents), kind
        )
        is_there = _any_of(pc.fill_null(same, False), parents, len(array))
        is_unknown = _any_of(pc.is_null(same), parents, len(array))
        answer = pc.if_else(pc.and_not(is_unknown, is_there), None, is_there)
        both = pc.and_(array.is_valid(), pc.is_valid(one_array(searched)))
        return pc.if_else(both, answer, pa.scalar(None, pa.bool_()))

    return strict(BOOLEAN, given.values, kernel)


def places_of(values: Array) -> tuple[pa.Array, pa.Array, pa.Array]:
    """Return lists, and for each element its list and its place among the elements of all."""
    array = one_array(values)
    offsets: Any = array.offsets.to_numpy(zero_copy_only=False).astype(np.int64)
    is_there = array.is_valid().to_numpy(zero_copy_only=False)
    lengths = np.where(is_there, np.diff(offsets), 0)
    parents = np.repeat(np.arange(len(array)), lengths)
    within = np.arange(len(parents)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    places = np.repeat(offsets[:-1], lengths) + within
    return array, pa.array(parents, pa.int64()), pa.array(places, pa.int64())


def _any_of(mask: Array, parents: pa.Array, count: int) -> pa.Array:
    found = np.zeros(count, bool)
    found[parents.filter(one_array(mask)).to_numpy(zero_copy_only=False)] = True
    return pa.array(found)


def item_at(given: Arguments) -> Value | None:
    """Return `array[index]`, counted from 0, or `map[key]`."""
    return _item(given, is_counted_from_one=False)


def element_at(given: Arguments) -> Value | None:
    """Return an element of an array, counted from 1 or from the end, or the value of a key."""
    return _item(given, is_counted_from_one=True)


def item_or_null(given: Arguments) -> Value | None:
    """Return an element of an array, counted from 0, or null if there is none."""
    return _item(given, is_counted_from_one=False, may_be_missing=True)


def element_or_null(given: Arguments) -> Value | None:
    """Return what `element_at` returns, or null if there is no such element."""
    return _item(given, is_counted_from_one=True, may_be_missing=True)


def _item(
    given: Arguments, *, is_counted_from_one: bool, may_be_missing: bool = False
) -> Value | None:
    kind, index = given.types
    if isinstance(kind, MapType) and (is_counted_from_one or not may_be_missing):
        return _value_of_key(given, kind)
    if not isinstance(kind, ArrayType) or str(index) not in INTEGERS[:3]:
        return None
    text = given.text

    def kernel(values: Array, places: Array) -> Array:
        array, numbers = one_array(values), one_array(places).cast(pa.int64())
        offsets: Any = array.offsets.to_numpy(zero_copy_only=False).astype(np.int64)
        lengths, is_known = np.diff(offsets), pc.and_(array.is_valid(), numbers.is_valid())
        known = is_known.to_numpy(zero_copy_only=False)
        at: Any = pc.fill_null(numbers, 1).to_numpy(zero_copy_only=False)
        if is_counted_from_one:
            is_zero = at == 0
            if (known & is_zero).any():
                raise _no_such_element(text)  # there is no such place, not even a missing one
            at = np.where(at < 0, lengths + at, at - 1)
            at = np.where(is_zero, -1, at)
        is_missing = (at < 0) | (at >= lengths)
        if not may_be_missing and (known & is_missing).any():
            raise _no_such_element(text)
        chosen = pc.if_else(pa.array(known & ~is_missing), pa.array(offsets[:-1] + at), None)
        return array.values.take(chosen)

    return strict(kind.element_type, given.values, kernel)


def _value_of_key(given: Arguments, kind: MapType) -> Value | None:
    if given.types[1] != kind.key_type or not is_comparable(kind.key_type):
        return None

    def kernel(values: Array, searched: Array) -> Array:
        array, parents, places = places_of(values)
        keys = array.keys.take(places)
        same = compare_values("=", keys, one_array(searched).take(parents), kind.key_type)
        mask = one_array(pc.fill_null(same, False))
        chosen = np.full(len(array), -1)
        rows = parents.filter(mask).to_numpy(zero_copy_only=False)[::-1]
        chosen[rows] = places.filter(mask).to_numpy(zero_copy_only=False)[::-1]  # the first key
        return array.items.take(pc.if_else(pa.array(chosen >= 0), pa.array(chosen), None))

    return strict(kind.value_type, given.values, kernel)


def _no_such_element(text: str) -> SchemaError:
    return SchemaError(
        f"The expression {shown(text)} asks for an element that an array of a row does not have. "
        "Nothing was changed. Leave out such rows, as by size(array) >= index.",
        kind="INVALID_ARRAY_INDEX",
        expression=text,
    )


def array_of(given: Arguments) -> Value | None:
    """Return an array of values of one type."""
    kind = widest(given.values)
    if kind is None or kind == VOID or not is_comparable(kind):
        return None
    target = ArrayType(kind)
    arrow_type = to_arrow_type(target)
    count = len(given.values)

    def kernel(*columns: Array) -> Array:
        arrays = [one_array(column) for column in columns]
        num_rows = len(arrays[0])
        order = np.arange(count * num_rows).reshape(count, num_rows).T.reshape(-1)
        elements = pa.concat_arrays(arrays).take(pa.array(order))
        offsets = pa.array(np.arange(num_rows + 1) * count, pa.int32())
        return pa.ListArray.from_arrays(offsets, elements).cast(arrow_type)

    return computed(target, widened(given.values, kind), kernel)


def struct_of(names: Sequence[str], given: Arguments) -> Value | None:
    """Return a struct of values with the names of its fields."""
    is_known = all(kind != VOID for kind in given.types)
    if not is_known or len({name.lower() for name in names}) < len(names):
        return None
    fields = tuple(map(StructField, names, given.types))
    target = StructType(fields)
    arrow_fields = list(to_arrow_type(target))

    def kernel(*columns: Array) -> Array:
        pairs = zip(columns, arrow_fields, strict=True)
        arrays = [one_array(column).cast(field.type) for column, field in pairs]
        return pa.StructArray.from_arrays(arrays, fields=arrow_fields)

    return computed(target, given.values, kernel)


def named_struct(given: Arguments) -> Value | None:
    """Return a struct of constant names and values in turn."""
    literals = [value.literal for value in given.values[::2]]
    names = [item.value for item in literals if item is not None and isinstance(item.value, str)]
    if len(given.values) % 2 or len(names) < len(literals):
        return None
    return struct_of(names, replace(given, values=given.values[1::2]))


def field_of(value: Value, name: str) -> Value | None:
    """Return a field of a struct."""
    kind = value.data_type
    if not isinstance(kind, StructType) or not value.is_plain:
        return None
    found = [at for at, item in enumerate(kind) if item.name.lower() == name.lower()]
    if len(found) != 1:
        return None
    at = found[0]
    field = list(kind)[at]
    taken = computed(field.data_type, [value], lambda rows: pc.struct_field(one_array(rows), [at]))
    return replace(taken, is_plain=not is_specially_ordered(field))
