"""Exact rounding of Arrow's decimals.

Arrow's division by a number beyond 32 bits can be wrong in its last digit, so digits are cut off in
small steps.
"""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.predicates.functions.failures import does_not_fit
from optimist.core.predicates.functions.value import Array
from optimist.core.schema.arrow_types import to_arrow_type
from optimist.core.schema.types import DecimalType

__all__ = [
    "ROOM",
    "SAFE_DIGITS",
    "rescaled",
    "rounded_decimals",
    "rounded_half_even",
    "rounded_half_up",
    "truncated",
    "unit",
]

SAFE_DIGITS = 9
"""The digits of a divisor by which Arrow divides exactly."""
ROOM = 76
"""The most digits of Arrow's decimals."""


def rounded_decimals(values: Array, target: DecimalType, text: str) -> Array:
    """Round decimals half up to the scale of a type, which must hold them."""
    found = rounded_half_up(values, target.scale)
    try:
        return found.cast(to_arrow_type(target))
    except pa.ArrowInvalid:
        raise does_not_fit(text, target) from None


def rounded_half_up(values: Array, scale: int) -> Array:
    """Round decimals half away from zero, which the first digit behind the scale decides."""
    if values.type.scale <= scale:
        return values
    return _cut(truncated(values, scale + 1), scale, "half_towards_infinity")


def rounded_half_even(values: Array, scale: int) -> Array:
    """Round decimals, and those that lie half between two numbers to the even one."""
    if values.type.scale <= scale:
        return values
    cut = truncated(values, scale + 1)
    wide = values.cast(pa.decimal256(ROOM, values.type.scale))
    is_whole = pc.equal(cut.cast(wide.type), wide)  # no digit lies behind the one that decides
    modes = "half_to_even", "half_towards_infinity"
    return pc.if_else(is_whole, *(_cut(cut, scale, mode) for mode in modes))


def truncated(values: Array, scale: int) -> Array:
    """Cut off the digits behind a scale."""
    while values.type.scale > scale:
        values = _cut(values, max(scale, values.type.scale - SAFE_DIGITS), "towards_zero")
    return values


def _cut(values: Array, scale: int, mode: str) -> Array:
    rounded = pc.round(values.cast(pa.decimal256(ROOM, values.type.scale)), scale, round_mode=mode)
    return rounded.cast(pa.decimal256(ROOM, scale))


def rescaled(values: pa.Array, scale: int) -> pa.Array:
    """Read the digits of decimals with the point at another place."""
    return pa.Array.from_buffers(
        pa.decimal256(values.type.precision, scale),
        len(values),
        values.buffers(),
        null_count=values.null_count,
        offset=values.offset,
    )


def unit(scale: int) -> pa.Scalar:
    """Return the number 1 as a decimal of a scale."""
    return pa.scalar(Decimal(1), pa.decimal256(scale + 1, scale))
