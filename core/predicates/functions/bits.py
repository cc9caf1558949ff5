"""Bits of integers, and NaN."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow.compute as pc

from optimist.core.predicates.functions.choices import coalesce, nullif
from optimist.core.predicates.functions.common_types import common_type, is_number, widened
from optimist.core.predicates.functions.value import (
    BOOLEAN,
    INTEGERS,
    Arguments,
    Array,
    Value,
    computed,
    strict,
    typed_constant,
)
from optimist.core.predicates.tree import Literal
from optimist.core.schema.types import DecimalType, PrimitiveType

__all__ = ["bitwise", "inverted", "is_nan", "null_if_zero", "zero_if_null"]

_FLOATS = ("float", "double")


def bitwise(kernel: Callable[[Array, Array], Array], given: Arguments) -> Value | None:
    """Combine the bits of two integers."""
    wanted = common_type(given.types)
    if wanted is None or str(wanted) not in INTEGERS:
        return None
    return strict(wanted, widened(given.values, wanted), kernel)


def inverted(given: Arguments) -> Value | None:
    """Return the integer with all of its bits changed."""
    is_integer = str(given.types[0]) in INTEGERS
    return computed(given.types[0], given.values, pc.bit_wise_not) if is_integer else None


def is_nan(given: Arguments) -> Value | None:
    """Tell whether a number is NaN, which null is not."""
    if str(given.types[0]) not in _FLOATS:
        return None
    return computed(BOOLEAN, given.values, lambda values: pc.fill_null(pc.is_nan(values), False))


def null_if_zero(given: Arguments) -> Value | None:
    """Return the number, or null for 0."""
    data_type = given.types[0]
    if not is_number(data_type) or isinstance(data_type, DecimalType):
        return None
    zero = typed_constant(Literal(0, "integer"), PrimitiveType("integer"))
    return nullif(Arguments([given.values[0], zero], given.text, given.zone))


def zero_if_null(given: Arguments) -> Value | None:
    """Return the number, or 0 for null."""
    data_type = given.types[0]
    if not is_number(data_type) or isinstance(data_type, DecimalType):
        return None
    zero = typed_constant(Literal(0, "integer"), PrimitiveType("integer"))
    return coalesce(Arguments([given.values[0], zero], given.text, given.zone))
