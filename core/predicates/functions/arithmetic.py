"""Arithmetic of numbers as in Spark's ANSI mode: an overflow and a division by zero are errors.

Decimals are computed with all digits, and then rounded half up to the type of the result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.predicates.constants import MAX_PRECISION
from optimist.core.predicates.functions.common_types import (
    bounded_decimal,
    common_type,
    decimal_digits,
    decimal_of,
    is_number,
    operands,
    widened,
)
from optimist.core.predicates.functions.decimals import (
    rescaled,
    rounded_decimals,
    truncated,
)
from optimist.core.predicates.functions.failures import divided_by_zero, does_not_fit
from optimist.core.predicates.functions.value import (
    DOUBLE,
    INTEGERS,
    Arguments,
    Array,
    Value,
    computed,
    one_array,
    strict,
)
from optimist.core.schema.types import DataType, DecimalType, PrimitiveType

__all__ = [
    "absolute",
    "added",
    "divided",
    "divided_whole",
    "multiplied",
    "negated",
    "pmod",
    "positive",
    "remainder",
    "sign",
    "square_root",
    "subtracted",
]

Kernel = Callable[[Any, Any], Any]
_ROOM = 76
_DIGITS_KEPT = 34
"""Spark rounds a decimal of more digits when it changes its sign."""
_LONG_DIGITS = 18
_LONG = PrimitiveType("long")


def added(given: Arguments) -> Value | None:
    """Add two numbers."""
    return _arithmetic(given, pc.add_checked, _type_of_sum)


def subtracted(given: Arguments) -> Value | None:
    """Subtract a number from another one."""
    return _arithmetic(given, pc.subtract_checked, _type_of_sum)


def multiplied(given: Arguments) -> Value | None:
    """Multiply two numbers."""
    return _arithmetic(given, pc.multiply_checked, _type_of_product)


def _type_of_sum(one: DecimalType, other: DecimalType) -> DecimalType:
    scale = max(one.scale, other.scale)
    whole = max(one.precision - one.scale, other.precision - other.scale)
    return bounded_decimal(whole + scale + 1, scale)


def _digits_of_sum(one: DecimalType, other: DecimalType) -> int:
    whole = max(one.precision - one.scale, other.precision - other.scale)
    return whole + max(one.scale, other.scale) + 1


def _type_of_product(one: DecimalType, other: DecimalType) -> DecimalType:
    return bounded_decimal(one.precision + other.precision + 1, one.scale + other.scale)


def _arithmetic(
    given: Arguments,
    kernel: Kernel,
    decimal_type: Callable[[DecimalType, DecimalType], DecimalType],
) -> Value | None:
    if not all(map(is_number, given.types)):
        return None
    sides = operands(*given.values)
    wanted = common_type(side.data_type for side in sides)
    is_decimal = any(isinstance(side.data_type, DecimalType) for side in sides)
    if wanted == DOUBLE or not is_decimal:
        if wanted is None:
            return None
        return strict(wanted, widened(sides, wanted), checked(given.text, wanted, kernel))
    one, other = (decimal_of(side.data_type) for side in sides)
    result = decimal_type(one, other)
    if decimal_type is _type_of_sum and _digits_of_sum(one, other) > _ROOM:
        return None  # Arrow has no room for all digits
    if kernel is pc.multiply_checked and one.precision + other.precision > MAX_PRECISION:
        return None  # Spark rounds such a product twice
    pair = [*widened(sides[:1], one), *widened(sides[1:], other)]

    def compute(left: Array, right: Array) -> Array:
        wide = [_with_room(left, one), _with_room(right, other)]
        return rounded_decimals(kernel(*wide), result, given.text)

    return strict(result, pair, compute)


def _with_room(values: Array, data_type: DecimalType) -> Array:
    return values.cast(pa.decimal256(data_type.precision, data_type.scale))


def checked(text: str, target: DataType, kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a checked kernel of Arrow: its overflow becomes the error for this expression."""

    def compute(*values: Array) -> Array:
        try:
            return kernel(*values)
        except pa.ArrowInvalid:
            raise does_not_fit(text, target) from None

    return compute


# Division


def divided(given: Arguments) -> Value | None:
    """Divide a number by another one, as doubles or as decimals."""
    if not all(map(is_number, given.types)):
        return None
    sides = operands(*given.values)
    types = [side.data_type for side in sides]
    is_decimal = any(isinstance(item, DecimalType) for item in types)
    if is_decimal and common_type(types) != DOUBLE:
        return _divided_decimals(sides, given.text)
    return _quotient(DOUBLE, widened(sides, DOUBLE), given.text, _divide_doubles)


def _divide_doubles(left: Array, right: Array) -> Array:
    return pc.divide(left, right)


def _quotient(data_type: DataType, sides: Sequence[Value], text: str, kernel: Kernel) -> Value:
    """Make the value of a division, whose divisor Spark computes first."""
    return strict(data_type, sides, _not_by_zero(text, kernel), is_last_first=True)


def _not_by_zero(text: str, kernel: Kernel) -> Kernel:
    """Wrap a division: a zero divides no number, but null divided by zero is null."""

    def compute(left: Array, right: Array) -> Array:
        is_zero = pc.and_(pc.is_valid(left), pc.fill_null(pc.equal(right, _zero(right)), False))
        if pc.any(is_zero, min_count=0).as_py():
            raise divided_by_zero(text)
        # Where the left side is null, the right side may still be zero.
        return kernel(left, pc.if_else(pc.is_valid(left), right, pa.scalar(None, right.type)))

    return compute


def _zero(values: Array) -> pa.Scalar:
    return pa.scalar(Decimal(0) if pa.types.is_decimal(values.type) else 0, values.type)


def _divided_decimals(sides: tuple[Value, Value], text: str) -> Value | None:
    one, other = (decimal_of(side.data_type) for side in sides)
    scale = max(6, one.scale + other.precision + 1)
    result = bounded_decimal(one.precision - one.scale + other.scale + scale, scale)
    # The quotient is that of two whole numbers; it must have room, and no rounding before the last.
    shift = result.scale - one.scale + other.scale
    has_room = shift >= 0 and one.precision + shift + other.precision + 3 <= _ROOM
    if not has_room or result.scale + other.precision >= MAX_PRECISION:
        return None
    pair = [*widened(sides[:1], one), *widened(sides[1:], other)]

    def kernel(left: Array, right: Array) -> Array:
        dividend = _whole(left, one, shift)
        divisor = _whole(right, other, 0)
        quotient = _divide_whole(dividend, divisor)
        units = quotient.cast(pa.decimal256(_ROOM, 0))
        return _scaled_down(units, result, text)

    return _quotient(result, pair, text, kernel)


def _whole(values: Array, data_type: DecimalType, shift: int) -> Array:
    """Return the digits of decimals as whole numbers, with zeros behind them."""
    wide = values.cast(pa.decimal256(data_type.precision + shift, data_type.scale + shift))
    return rescaled(one_array(wide), 0)


def _divide_whole(dividend: pa.Array, divisor: pa.Array) -> pa.Array:
    """Divide whole numbers, and round half away from zero."""
    is_negative = pc.xor(pc.less(dividend, _zero(dividend)), pc.less(divisor, _zero(divisor)))
    other = pc.abs(divisor)
    whole, rest = _whole_and_rest(pc.abs(dividend), other)
    whole = pc.add(whole, _ones(pc.greater_equal(pc.add(rest, rest), other)))
    return pc.if_else(is_negative, pc.negate(whole), whole)


def _whole_and_rest(one: pa.Array, other: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Divide whole numbers that are not negative.

    Arrow's quotient may have wrong last digits, so what it leaves is divided again.
    """
    whole, rest = _divided_once(one, other)
    while pc.any(pc.or_(pc.less(rest, _zero(rest)), pc.greater_equal(rest, other))).as_py():
        step, rest = _divided_once(rest, other)
        whole = pc.add(whole, step).cast(one.type)
    return whole, rest


def _divided_once(one: pa.Array, other: pa.Array) -> tuple[pa.Array, pa.Array]:
    whole = truncated(pc.divide(one, other), 0).cast(one.type)
    below = pc.less(pc.subtract(one, pc.multiply(whole, other)), _zero(one))
    whole = pc.subtract(whole, _ones(below)).cast(one.type)
    return whole, pc.subtract(one, pc.multiply(whole, other)).cast(one.type)


def _ones(mask: pa.Array) -> pa.Array:
    """Return 1 where the mask is true, and 0 elsewhere, as decimals."""
    return mask.cast(pa.int8()).cast(pa.decimal256(3, 0))


def _scaled_down(units: pa.Array, target: DecimalType, text: str) -> pa.Array:
    return rounded_decimals(rescaled(one_array(units), target.scale), target, text)


def divided_whole(given: Arguments) -> Value | None:
    """Divide whole numbers, without the rest."""
    if any(str(item) not in INTEGERS for item in given.types):
        return None
    kernel = checked(given.text, _LONG, pc.divide_checked)
    return _quotient(_LONG, widened(given.values, _LONG), given.text, kernel)


def remainder(given: Arguments) -> Value | None:
    """Return the rest of a division, with the sign of the first number."""
    return _modulo(given, _rest)


def pmod(given: Arguments) -> Value | None:
    """Return the rest of a division, made positive by adding the second number."""
    return _modulo(given, _positive_rest)


def _modulo(given: Arguments, kernel: Callable[[Any, Any], Any]) -> Value | None:
    if all(map(is_number, given.types)) and DecimalType in map(type, given.types):
        return _modulo_of_decimals(given, kernel)
    wanted = common_type(given.types)
    if wanted is None or not is_number(wanted) or isinstance(wanted, DecimalType):
        return None

    def compute(left: Array, right: Array) -> Array:
        return _by_numpy(kernel, left, right)

    return _quotient(wanted, widened(given.values, wanted), given.text, compute)


def _modulo_of_decimals(given: Arguments, kernel: Callable[[Any, Any], Any]) -> Value | None:
    """Return the rest of decimals, as whole numbers of one scale."""
    sides = operands(*given.values)
    if common_type(side.data_type for side in sides) == DOUBLE:
        return _quotient(
            DOUBLE, widened(sides, DOUBLE), given.text, lambda *both: _by_numpy(kernel, *both)
        )
    one, other = (decimal_of(side.data_type) for side in sides)
    scale = max(one.scale, other.scale)
    digits = [item.precision - item.scale + scale for item in (one, other)]
    # A quotient of more digits is an error on Spark.
    has_room = sum(digits) + 3 <= _ROOM and digits[0] - scale + other.scale <= MAX_PRECISION
    is_short = max(digits) <= _LONG_DIGITS
    if not (is_short or has_room):
        return None
    result = DecimalType(min(digits), scale)

    def compute(left: Array, right: Array) -> Array:
        units = [
            rescaled(one_array(_with_room(item, DecimalType(most, scale))), 0)
            for item, most in zip((left, right), digits, strict=True)
        ]
        if is_short:
            rest = _by_numpy(kernel, *(item.cast(pa.int64()) for item in units))
        else:
            rest = _rest_of_whole(*units, is_positive=kernel is _positive_rest)
        return _scaled_down(rest.cast(pa.decimal256(_ROOM, 0)), result, given.text)

    pair = [*widened(sides[:1], one), *widened(sides[1:], other)]
    return _quotient(result, pair, given.text, compute)


def _rest_of_whole(dividend: pa.Array, divisor: pa.Array, *, is_positive: bool) -> pa.Array:
    """Return the rest of whole numbers of many digits."""
    _, rest = _whole_and_rest(pc.abs(dividend), pc.abs(divisor))
    rest = rest.cast(divisor.type)
    rest = pc.if_else(pc.less(dividend, _zero(dividend)), pc.negate(rest), rest)
    is_moved = pc.and_(pc.less(rest, _zero(rest)), pc.greater(divisor, _zero(divisor)))
    moved = pc.add(rest, divisor)
    return pc.if_else(is_moved, moved, rest.cast(moved.type)) if is_positive else rest


def _by_numpy(kernel: Callable[[Any, Any], Any], left: Array, right: Array) -> pa.Array:
    """Compute by NumPy what Arrow has no function for; a null on one side gives null."""
    one, other = one_array(left), one_array(right)
    is_known = pc.and_(pc.is_valid(one), pc.is_valid(other))
    numbers = [pc.fill_null(item, pa.scalar(1).cast(item.type)) for item in (one, other)]
    with np.errstate(all="ignore"):
        found = kernel(*(item.to_numpy(zero_copy_only=False) for item in numbers))
    return pc.if_else(is_known, pa.array(found, one.type), pa.scalar(None, one.type))


def _rest(left: Any, right: Any) -> Any:
    return np.fmod(left, right)


def _positive_rest(left: Any, right: Any) -> Any:
    is_short = left.dtype.itemsize < np.dtype(np.int32).itemsize
    rest = np.fmod(left, right).astype(np.int32 if is_short else left.dtype)  # as Java does
    return np.where(rest < 0, np.fmod(rest + right, right), rest).astype(left.dtype)


# Signs


def positive(given: Arguments) -> Value | None:
    """Return the number itself."""
    return given.values[0] if is_number(given.types[0]) else None


def negated(given: Arguments) -> Value | None:
    """Return the number with the other sign."""
    return _signed(given, pc.negate_checked)


def absolute(given: Arguments) -> Value | None:
    """Return the number without its sign."""
    return _signed(given, pc.abs_checked)


def _signed(given: Arguments, kernel: Callable[[Any], Any]) -> Value | None:
    data_type = given.types[0]
    if not is_number(data_type) or decimal_digits(data_type) > _DIGITS_KEPT:
        return None
    return computed(data_type, given.values, checked(given.text, data_type, kernel))


def square_root(given: Arguments) -> Value | None:
    """Return the square root as a double, which is NaN for a negative number."""
    if not is_number(given.types[0]):
        return None
    return computed(DOUBLE, widened(given.values, DOUBLE), pc.sqrt)


def sign(given: Arguments) -> Value | None:
    """Return -1.0, 0.0 or 1.0, or NaN for NaN."""
    if not is_number(given.types[0]):
        return None

    def kernel(values: Array) -> Array:
        found = pc.sign(values)
        # The sign of -0.0 is -0.0.
        return pc.if_else(pc.equal(values, 0.0), values, found)

    return computed(DOUBLE, widened(given.values, DOUBLE), kernel)
