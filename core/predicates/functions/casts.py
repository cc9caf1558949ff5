"""Casts of values, as in Spark's ANSI mode: a value that does not fit is an error.

`try_cast` makes such a value null. A cast without one exact meaning here is left out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.predicates.functions.casts_to_text import decimals_as_texts, times_as_texts
from optimist.core.predicates.functions.common_types import is_number, widened
from optimist.core.predicates.functions.dates import days_of, ensure_years
from optimist.core.predicates.functions.decimals import ROOM, rounded_half_up, truncated
from optimist.core.predicates.functions.failures import does_not_fit, wrong_text
from optimist.core.predicates.functions.text_casts import Cast, Read, text_cast
from optimist.core.predicates.functions.value import (
    DATE,
    INTEGERS,
    NULL,
    STRING,
    Arguments,
    Array,
    Value,
    computed,
    one_array,
)
from optimist.core.predicates.functions.wall_clocks import (
    NTZ,
    TIMESTAMP,
    instants,
    starts_of_days,
    wall_times,
)
from optimist.core.schema.arrow_types import to_arrow_type
from optimist.core.schema.types import DataType, DecimalType

__all__ = ["cast_value"]

_FLOATS = ("float", "double")
_LONG_BITS = 64
_DIGITS_KEPT = 34
"""Spark rounds a decimal of more digits before it cuts off those behind the point."""


def cast_value(given: Arguments, target: DataType, *, is_try: bool = False) -> Value | None:
    """Cast a value to a type, or return None if only Spark knows the result.

    Args:
        given: The value.
        target: The type.
        is_try: Whether a value that does not fit becomes null.
    """
    value, text = given.values[0].to_cast(target), given.text
    source = value.data_type
    if source == target:
        return value
    if value is NULL:
        return widened([value], target)[0]
    cast = _find_cast(source, target, given)
    if cast is None:
        return None
    failure = wrong_text if source == STRING else does_not_fit

    def compute(values: Array) -> Array:
        found, is_wrong = cast(one_array(values))
        if not is_try and pc.any(is_wrong, min_count=0).as_py():
            raise failure(text, target)
        return found

    found = computed(target, [value], compute)
    is_rounded = str(target) == "float" and str(source) in ("integer", "long") and value.columns
    return replace(found, unrounded=value) if is_rounded else found


def _find_cast(source: DataType, target: DataType, given: Arguments) -> Cast | None:
    if is_number(source) and is_number(target):
        return _find_number_cast(source, target)
    name, wanted = str(source), str(target)
    if wanted == "boolean" and name in INTEGERS:
        return lambda values: (pc.not_equal(values, pa.scalar(0, values.type)), _nowhere(values))
    if name == "boolean" and wanted in (*INTEGERS, "double", "float", "string"):
        return _plain_cast(target)
    if wanted == "string":
        return _find_cast_to_text(source, given)
    if name == "string":
        return text_cast(target, given.text, given.zone)
    return _find_time_cast(source, target, given.zone)


def _find_time_cast(source: DataType, target: DataType, zone: str) -> Cast | None:
    def sure(cast: Callable[[pa.Array], pa.Array]) -> Cast:
        return lambda values: (cast(values), _nowhere(values))

    if target == DATE and source == NTZ:
        return sure(days_of)
    if target == DATE and source == TIMESTAMP:
        return sure(lambda times: days_of(wall_times(times, zone)))
    if source == DATE and target == NTZ:
        return _plain_cast(target)
    if source == DATE and target == TIMESTAMP:
        return sure(lambda dates: starts_of_days(dates, zone))
    if source == TIMESTAMP and target == NTZ:
        return sure(lambda times: wall_times(times, zone))
    if source == NTZ and target == TIMESTAMP:
        return sure(lambda walls: instants(walls, zone))
    return None


def _plain_cast(target: DataType) -> Cast:
    arrow_type = to_arrow_type(target)
    return lambda values: (values.cast(arrow_type), _nowhere(values))


def _find_cast_to_text(source: DataType, given: Arguments) -> Cast | None:
    if str(source) in INTEGERS:
        return _plain_cast(STRING)
    if source == DATE:

        def cast(values: pa.Array) -> Read:
            ensure_years(values, given.text)
            return values.cast(pa.string()), _nowhere(values)

        return cast
    if isinstance(source, DecimalType):
        return lambda values: (decimals_as_texts(values), _nowhere(values))
    if source == NTZ:
        write = times_as_texts(given.text)
        return lambda values: (write(values), _nowhere(values))
    if source == TIMESTAMP:
        write = times_as_texts(given.text)
        return lambda values: (write(wall_times(values, given.zone)), _nowhere(values))
    return None


def _find_number_cast(source: DataType, target: DataType) -> Cast | None:
    arrow_type = to_arrow_type(target)
    if isinstance(target, DecimalType):
        scale = target.scale
        if str(source) in INTEGERS:
            return lambda values: _fitted(values.cast(pa.decimal256(ROOM, scale)), arrow_type)
        if isinstance(source, DecimalType):
            return lambda values: _fitted(_rescaled(values, scale), arrow_type)
        return None
    if isinstance(source, DecimalType) and str(target) == "double":
        # By way of the digits, because Arrow's own cast of a decimal rounds twice.
        return lambda values: (values.cast(pa.string()).cast(arrow_type), _nowhere(values))
    if isinstance(source, DecimalType):
        is_known = str(target) in INTEGERS and source.precision <= _DIGITS_KEPT
        wide = pa.decimal256(ROOM, source.scale)
        return (
            None
            if not is_known
            else lambda values: _fitted(truncated(values.cast(wide), 0), arrow_type)
        )
    if str(source) in INTEGERS and str(target) in INTEGERS:
        return lambda values: _fitted(values, arrow_type)
    if str(source) in _FLOATS and str(target) in INTEGERS:
        return lambda values: _whole_part(values, arrow_type)
    if str(target) in _FLOATS and str(source) in (*INTEGERS, *_FLOATS):
        return lambda values: (values.cast(arrow_type, safe=False), _nowhere(values))
    return None


def _nowhere(values: pa.Array) -> pa.Array:
    return pa.repeat(pa.scalar(False), len(values))


def _rescaled(values: pa.Array, scale: int) -> pa.Array:
    wide = values.cast(pa.decimal256(ROOM - max(0, scale - values.type.scale), values.type.scale))
    return rounded_half_up(wide, scale)


def _fitted(values: pa.Array, target: pa.DataType) -> Read:
    """Cast numbers, and mark those that the type can't hold."""
    try:
        return values.cast(target), _nowhere(values)
    except pa.ArrowInvalid:
        low, high = _bounds(target, values.type)
        wide = values.cast(pa.decimal256(ROOM, values.type.scale if _is_decimal(values) else 0))
        is_in = pc.and_(pc.greater_equal(wide, low), pc.less_equal(wide, high))
        kept = pc.if_else(pc.fill_null(is_in, False), values, pa.scalar(None, values.type))
        return kept.cast(target), pc.invert(pc.fill_null(is_in, True))


def _whole_part(values: pa.Array, target: pa.DataType) -> Read:
    """Cut off the digits behind the point; a number out of range does not fit, nor does NaN."""
    half = float(1 << (target.bit_width - 1))
    numbers = pc.fill_null(values, 0.0).to_numpy(zero_copy_only=False).astype(np.float64)
    high = half if target.bit_width == _LONG_BITS else half - 1
    is_in = (np.floor(numbers) <= high) & (np.ceil(numbers) >= -half)
    plain = np.where(is_in, numbers, 0.0)
    is_top = plain >= half
    whole = np.where(is_top, 0.0, np.trunc(plain)).astype(np.int64)
    whole = np.where(is_top, np.iinfo(np.int64).max, whole)
    fits = pc.and_(values.is_valid(), pa.array(is_in))
    found = pc.if_else(fits, pa.array(whole).cast(target), pa.scalar(None, target))
    return found, pa.array(~is_in)


def _is_decimal(values: pa.Array) -> bool:
    return bool(pa.types.is_decimal(values.type))


def _bounds(target: pa.DataType, source: pa.DataType) -> tuple[pa.Scalar, pa.Scalar]:
    """Return the least and the greatest number of a type, as decimals of the source's scale."""
    scale = source.scale if pa.types.is_decimal(source) else 0
    wide = pa.decimal256(ROOM, scale)
    if pa.types.is_decimal(target):
        digits = min(ROOM, target.precision - target.scale + scale)
        high = pa.scalar(Decimal(f"{'9' * digits or '0'}E-{scale}"), wide)
        return pc.negate(high), high
    half = 1 << (target.bit_width - 1)
    return pa.scalar(Decimal(-half), wide), pa.scalar(Decimal(half - 1), wide)
