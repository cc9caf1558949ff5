"""Rounding of numbers: decimals exactly, doubles by their shortest digits, as Spark does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.predicates.constants import MAX_PRECISION
from optimist.core.predicates.functions.decimals import (
    ROOM,
    rescaled,
    rounded_decimals,
    rounded_half_even,
    rounded_half_up,
    truncated,
)
from optimist.core.predicates.functions.failures import does_not_fit
from optimist.core.predicates.functions.value import (
    INTEGERS,
    Arguments,
    Array,
    Value,
    computed,
    one_array,
)
from optimist.core.schema.arrow_types import to_arrow_type
from optimist.core.schema.types import DecimalType, PrimitiveType

__all__ = ["bround", "ceil", "floor", "rounded"]

_LONG = PrimitiveType("long")
_FLOATS = ("float", "double")
_LIMIT = 2.0**63
_DIGITS = 74
_MOST_DIGITS, _SCALE_OF_DOUBLES, _TINY = 15, 45, 1e-25
_WHOLE_FROM = 2.0**53
"""From here on, every double is a whole number."""


def ceil(given: Arguments) -> Value | None:
    """Return the least whole number that is not less."""
    return _to_whole(given, np.ceil, is_up=True)


def floor(given: Arguments) -> Value | None:
    """Return the greatest whole number that is not greater."""
    return _to_whole(given, np.floor, is_up=False)


def _to_whole(given: Arguments, kernel: Any, *, is_up: bool) -> Value | None:
    if len(given.values) != 1:
        return None
    data_type = given.types[0]
    if str(data_type) in INTEGERS:
        return computed(_LONG, given.values, lambda values: values.cast(pa.int64()))
    if str(data_type) in _FLOATS:
        return computed(_LONG, given.values, lambda values: _as_long(kernel, values, given.text))
    if not isinstance(data_type, DecimalType):
        return None
    whole = data_type.precision - data_type.scale + 1
    target = DecimalType(min(whole, MAX_PRECISION), 0)
    step = 1 if is_up else -1

    def compute(values: Array) -> Array:
        cut = truncated(values, 0)
        wide = pa.decimal256(ROOM, data_type.scale)
        is_beyond = (pc.greater if is_up else pc.less)(values.cast(wide), cut.cast(wide))
        moved = pc.add(cut.cast(pa.decimal256(_DIGITS, 0)), pa.scalar(step, pa.decimal256(1, 0)))
        return rounded_decimals(pc.if_else(is_beyond, moved, cut), target, given.text)

    return computed(target, given.values, compute)


def _as_long(kernel: Any, values: Array, text: str) -> pa.Array:
    """Round to a long: NaN becomes 0, and a number beyond the longs is an error."""
    array = one_array(values)
    numbers = kernel(pc.fill_null(array, 0.0).to_numpy(zero_copy_only=False).astype(np.float64))
    if ((numbers >= _LIMIT) | (numbers < -_LIMIT)).any():
        raise does_not_fit(text, _LONG)
    whole = pa.array(np.where(np.isnan(numbers), 0.0, numbers).astype(np.int64))
    return pc.if_else(array.is_valid(), whole, pa.scalar(None, pa.int64()))


def rounded(given: Arguments) -> Value | None:
    """Round half away from zero."""
    return _round(given, is_even=False)


def bround(given: Arguments) -> Value | None:
    """Round half to the even digit."""
    return _round(given, is_even=True)


def _round(given: Arguments, *, is_even: bool) -> Value | None:
    scale = _constant_scale(given)
    data_type = given.types[0]
    if scale is None:
        return None
    if scale < 0:
        return _round_whole_digits(given, scale, is_even=is_even)
    if str(data_type) in INTEGERS:
        return given.values[0]
    if str(data_type) == "double" and scale <= _MOST_DIGITS:
        digits = scale
        return computed(
            data_type,
            given.values[:1],
            lambda values: _round_doubles(values, digits, is_even=is_even),
        )
    if not isinstance(data_type, DecimalType):
        return None
    kept = min(scale, data_type.scale)
    whole = data_type.precision - data_type.scale + 1
    target = DecimalType(min(whole + kept, MAX_PRECISION), kept)

    def compute(values: Array) -> Array:
        found = _rounding(is_even=is_even)(values, kept)
        return rounded_decimals(found, target, given.text)

    return computed(target, given.values[:1], compute)


def _rounding(*, is_even: bool) -> Callable[[Array, int], Array]:
    return rounded_half_even if is_even else rounded_half_up


def _round_whole_digits(given: Arguments, scale: int, *, is_even: bool) -> Value | None:
    """Round integers and decimals to tens, hundreds and so on."""
    data_type = given.types[0]
    is_decimal = isinstance(data_type, DecimalType)
    if scale < -MAX_PRECISION or not (is_decimal or str(data_type) in INTEGERS):
        return None
    target, digits = data_type, 0
    if isinstance(data_type, DecimalType):
        digits = data_type.scale
        whole = max(data_type.precision - digits + 1, 1 - scale)
        target = DecimalType(min(whole, MAX_PRECISION), 0)

    def compute(values: Array) -> Array:
        wide = one_array(values).cast(pa.decimal256(ROOM, digits))
        tens = _rounding(is_even=is_even)(rescaled(wide, digits - scale), 0)
        found = rescaled(one_array(tens.cast(pa.decimal256(ROOM, -scale))), 0)
        try:
            return found.cast(to_arrow_type(target))
        except pa.ArrowInvalid:
            raise does_not_fit(given.text, target) from None

    return computed(target, given.values[:1], compute)


def _round_doubles(values: Array, scale: int, *, is_even: bool) -> pa.Array:
    """Round the shortest digits of doubles, as Spark does.

    A number that is too large to have digits behind its point stays as it is.
    """
    array = one_array(values)
    numbers = pc.fill_null(array, 0.0).to_numpy(zero_copy_only=False)
    with np.errstate(invalid="ignore"):
        is_small = np.abs(numbers) < _WHOLE_FROM
        is_tiny = np.abs(numbers) < _TINY
    plain = pa.array(np.where(is_small & ~is_tiny, numbers, 0.0))
    digits = plain.cast(pa.string()).cast(pa.decimal256(ROOM, _SCALE_OF_DOUBLES))
    rounded_texts = _rounding(is_even=is_even)(digits, scale).cast(pa.string())
    found = np.where(is_small, rounded_texts.cast(pa.float64()).to_numpy() + 0.0, numbers)
    return pc.if_else(array.is_valid(), pa.array(found), pa.scalar(None, pa.float64()))


def _constant_scale(given: Arguments) -> int | None:
    if len(given.values) == 1:
        return 0
    literal = given.values[1].literal
    if literal is None or literal.kind != "integer" or not isinstance(literal.value, int):
        return None
    return literal.value
