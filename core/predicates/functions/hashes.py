"""Spark's hashes of rows: `hash`, which is Murmur3 of 32 bits, and `xxhash64`.

A hash begins with 42. Each value that is not null turns it into the next one; the fields of a
struct and the elements of an array do so in turn. -0.0 counts as 0.0, every NaN as one, and a
decimal of more than 18 digits by the bytes of its digits as one number.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.predicates.functions.hash_mixers import Bytes, Mixer
from optimist.core.predicates.functions.value import (
    INTEGERS,
    VOID,
    Arguments,
    Array,
    Value,
    computed,
    one_array,
)
from optimist.core.predicates.resolution import is_specially_ordered
from optimist.core.schema.types import (
    ArrayType,
    DataType,
    DecimalType,
    PrimitiveType,
    StructType,
)

__all__ = ["hashed"]

_SEED = 42
_LONG_DIGITS = 18
"""Spark hashes decimals of so many digits as longs."""
_DECIMAL_BYTES = 16
_INTS = ("boolean", "byte", "short", "integer", "date")
_LONGS = ("long", "timestamp", "timestamp_ntz")
_FLOATS = ("float", "double")


def hashed(mixer: Mixer, given: Arguments) -> Value | None:
    """Hash all arguments of each row together."""
    if not all(map(_is_hashable, given.types)):
        return None
    bits = np.dtype(mixer.width).itemsize * 8
    signed = pa.int32() if bits == 32 else pa.int64()

    def kernel(*columns: Array) -> Array:
        states = np.full(len(columns[0]), _SEED, mixer.width)
        for column in columns:
            states = _with_values(mixer, one_array(column), states)
        return pa.array(states.view(f"i{bits // 8}"), signed)

    return computed(PrimitiveType(INTEGERS[2] if bits == 32 else INTEGERS[3]), given.values, kernel)


def _is_hashable(data_type: DataType) -> bool:
    if isinstance(data_type, StructType):
        is_plain = len(data_type) > 0 and not any(map(is_specially_ordered, data_type))
        return is_plain and all(_is_hashable(item.data_type) for item in data_type)
    if isinstance(data_type, ArrayType):
        return _is_hashable(data_type.element_type)
    if isinstance(data_type, DecimalType) or data_type == VOID:
        return True
    return str(data_type) in (*_INTS, *_LONGS, *_FLOATS, "string", "binary")


def _with_values(mixer: Mixer, values: pa.Array, states: Any) -> Any:
    """Return the hashes after one more column, which leaves them where it is null."""
    if not len(values) or pa.types.is_null(values.type):
        return states
    rows = np.flatnonzero(values.is_valid().to_numpy(zero_copy_only=False))
    if len(rows) < len(values):
        values = values.take(pa.array(rows))
    found = states.copy()
    found[rows] = _with_known_values(mixer, values, states[rows])
    return found


def _with_known_values(mixer: Mixer, values: pa.Array, states: Any) -> Any:
    kind = values.type
    if pa.types.is_struct(kind):
        for index in range(kind.num_fields):
            states = _with_values(mixer, one_array(pc.struct_field(values, [index])), states)
        return states
    if pa.types.is_list(kind):
        return _with_elements(mixer, values, states)
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return mixer.of_bytes(_bytes_of(values), states)
    if pa.types.is_decimal(kind):
        digits = _digits_of(values)
        if kind.precision <= _LONG_DIGITS:
            return mixer.of_longs(digits.view("<u8")[:, 0].astype(np.uint64), states)
        return mixer.of_bytes(_shortest(digits), states)
    if pa.types.is_floating(kind):
        return _with_floats(mixer, values.to_numpy(zero_copy_only=False), states)
    if kind.bit_width == 64:
        numbers = values.cast(pa.int64()).to_numpy(zero_copy_only=False)
        return mixer.of_longs(numbers.astype(np.int64).view(np.uint64), states)
    plain = values.cast(pa.int32()).to_numpy(zero_copy_only=False)
    return mixer.of_ints(plain.astype(np.int32).view(np.uint32), states)


def _with_elements(mixer: Mixer, lists: pa.Array, states: Any) -> Any:
    lengths = pc.list_value_length(lists).to_numpy(zero_copy_only=False)
    starts = lists.offsets.to_numpy(zero_copy_only=False)[:-1].astype(np.int64)
    states = states.copy()
    for step in range(int(lengths.max(initial=0))):
        rows = np.flatnonzero(lengths > step)
        elements = lists.values.take(pa.array(starts[rows] + step))
        states[rows] = _with_values(mixer, elements, states[rows])
    return states


def _with_floats(mixer: Mixer, numbers: Any, states: Any) -> Any:
    plain = np.where(np.isnan(numbers), np.nan, numbers + 0.0).astype(numbers.dtype)
    if numbers.dtype == np.float32:
        return mixer.of_ints(plain.view(np.uint32), states)
    return mixer.of_longs(plain.view(np.uint64), states)


def _bytes_of(values: pa.Array) -> Bytes:
    plain = values.cast(pa.large_binary())
    _, offsets, data = plain.buffers()
    ends = np.frombuffer(offsets, np.int64)[plain.offset : plain.offset + len(plain) + 1]
    raw = np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)
    return Bytes(raw, ends[:-1], ends[1:] - ends[:-1])


def _digits_of(values: pa.Array) -> Any:
    """Return the bytes of each decimal's digits as one number, little-endian."""
    raw = np.frombuffer(values.buffers()[1], np.uint8)
    first = values.offset * _DECIMAL_BYTES
    return raw[first : first + len(values) * _DECIMAL_BYTES].reshape(-1, _DECIMAL_BYTES)


def _shortest(digits: Any) -> Bytes:
    """Return the numbers as Java's shortest runs of bytes, the highest byte first."""
    high_first = np.ascontiguousarray(digits[:, ::-1])
    is_negative = high_first[:, :1] >= 0x80
    fill = np.where(is_negative, 0xFF, 0).astype(np.uint8)
    keeps_sign = (high_first[:, 1:] >= 0x80) == is_negative
    is_spare = np.logical_and.accumulate((high_first[:, :-1] == fill) & keeps_sign, axis=1)
    spare = is_spare.sum(axis=1)
    starts = np.arange(len(digits)) * _DECIMAL_BYTES + spare
    return Bytes(high_first.reshape(-1), starts, _DECIMAL_BYTES - spare)
