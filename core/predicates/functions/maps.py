"""Functions that make maps; a null key and a key that comes twice are errors, as in Spark."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.errors import SchemaError
from optimist.core.errors.foreign_text import shown
from optimist.core.predicates.functions.collections import places_of
from optimist.core.predicates.functions.common_types import widened, widest
from optimist.core.predicates.functions.comparisons import is_comparable
from optimist.core.predicates.functions.value import (
    VOID,
    Arguments,
    Array,
    Value,
    computed,
    one_array,
    strict,
)
from optimist.core.schema.arrow_types import to_arrow_type
from optimist.core.schema.types import ArrayType, DataType, MapType

__all__ = ["map_from_arrays", "map_of"]

_FLOATS = ("float", "double")


def map_of(given: Arguments) -> Value | None:
    """Return a map of keys and values in turn."""
    pairs = given.values[::2], given.values[1::2]
    key_type, value_type = map(widest, pairs)
    is_known = value_type not in (None, VOID) and is_comparable(value_type or VOID)
    if len(given.values) % 2 or not is_known or key_type is None or value_type is None:
        return None
    if not _is_key(key_type):
        return None
    target, count = MapType(key_type, value_type, True), len(pairs[0])

    def kernel(*columns: Array) -> Array:
        arrays = [one_array(column) for column in columns]
        num_rows = len(arrays[0])
        # The first value of each row, then the second of each row; they are put row by row.
        order = pa.array(np.arange(count * num_rows).reshape(count, num_rows).T.reshape(-1))
        keys, items = (
            pa.concat_arrays(part).take(order) for part in (arrays[:count], arrays[count:])
        )
        parents = np.repeat(np.arange(num_rows), count)
        offsets = pa.array(np.arange(num_rows + 1) * count, pa.int32())
        return _made(target, offsets, (keys, items), parents, given.text)

    values = [*widened(pairs[0], key_type), *widened(pairs[1], value_type)]
    return computed(target, values, kernel)


def map_from_arrays(given: Arguments) -> Value | None:
    """Return a map of an array of keys and an array of as many values."""
    keys, items = given.types
    if not isinstance(keys, ArrayType) or not isinstance(items, ArrayType):
        return None
    if not _is_key(keys.element_type):
        return None
    target = MapType(keys.element_type, items.element_type, items.contains_null)

    def kernel(*columns: Array) -> Array:
        arrays = [one_array(column) for column in columns]
        is_known = pc.and_(*(array.is_valid() for array in arrays))
        rows = pc.if_else(is_known, pa.array(np.arange(len(is_known))), None)
        (keys, parents, key_places), (items, others, item_places) = (
            places_of(array.take(rows)) for array in arrays
        )
        if not parents.equals(others):
            fault = "has not as many keys as values"
            raise _wrong_map(given.text, fault, "OPTIMIST_VALUE_DOES_NOT_FIT")
        counts = np.bincount(parents.to_numpy(), minlength=len(is_known))
        ends = pa.array(np.concatenate(([0], np.cumsum(counts))), pa.int32())
        starts = pc.if_else(pa.concat_arrays([one_array(is_known), pa.array([True])]), ends, None)
        parts = keys.values.take(key_places), items.values.take(item_places)
        return _made(target, starts, parts, parents.to_numpy(), given.text)

    return strict(target, given.values, kernel)


def _is_key(data_type: DataType) -> bool:
    """Tell whether equal keys have equal bytes; -0.0 and NaN have several."""
    return is_comparable(data_type) and str(data_type) not in _FLOATS


def _made(
    target: MapType, offsets: pa.Array, parts: tuple[pa.Array, pa.Array], parents: Any, text: str
) -> pa.Array:
    """Make maps of their keys and values, and of the row of each key."""
    keys = parts[0]
    if keys.null_count:
        raise _wrong_map(text, "has a null as a key", "NULL_MAP_KEY")
    coded = keys.dictionary_encode()
    numbers = coded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    pairs = parents * len(coded.dictionary) + numbers
    if len(np.unique(pairs)) < len(pairs):
        raise _wrong_map(text, "has a key twice", "DUPLICATED_MAP_KEY")
    return pa.MapArray.from_arrays(offsets, *parts).cast(to_arrow_type(target))


def _wrong_map(text: str, fault: str, kind: str) -> SchemaError:
    return SchemaError(
        f"A map that {shown(text)} makes {fault} in a row. Nothing was changed. Leave out such "
        "rows.",
        kind=kind,
        expression=text,
    )
