"""The common type of values, and casts to it that lose nothing, as in Spark's ANSI mode."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal

import pyarrow as pa

from optimist.core.predicates.constants import MAX_PRECISION
from optimist.core.predicates.functions.value import (
    DOUBLE,
    INTEGERS,
    NULL,
    VOID,
    Array,
    Value,
    columns_of,
    typed_constant,
)
from optimist.core.predicates.tree import Literal
from optimist.core.schema.arrow_types import to_arrow_type
from optimist.core.schema.types import DataType, DecimalType, PrimitiveType

__all__ = [
    "bounded_decimal",
    "common_type",
    "decimal_digits",
    "decimal_of",
    "is_number",
    "operands",
    "widened",
    "widest",
]

_FLOATS = ("float", "double")
_DIGITS = dict(zip(INTEGERS, (3, 5, 10, 20), strict=True))
_ROOM = 76  # the most digits of Arrow, which asks for room for every integer
_LEAST_SCALE = 6
"""A result that needs more than 38 digits keeps this many of those behind its point."""


def is_number(data_type: DataType) -> bool:
    """Tell whether a type is a type of numbers."""
    return isinstance(data_type, DecimalType) or str(data_type) in (*INTEGERS, *_FLOATS)


def common_type(types: Iterable[DataType]) -> DataType | None:
    """Return the type to which Spark casts all of these types, or None if in doubt.

    The type of a bare NULL fits every type.
    """
    found: DataType | None = VOID
    for data_type in types:
        found = None if found is None else _wider(found, data_type)
    return found


def _wider(left: DataType, right: DataType) -> DataType | None:
    if left == right or right == VOID:
        return left
    if left == VOID:
        return right
    if not (is_number(left) and is_number(right)):
        return None
    names = (str(left), str(right))
    if any(name in _FLOATS for name in names):
        return DOUBLE
    if all(name in INTEGERS for name in names):
        return PrimitiveType(max(names, key=INTEGERS.index))
    one, other = decimal_of(left), decimal_of(right)
    scale = max(one.scale, other.scale)
    whole = max(one.precision - one.scale, other.precision - other.scale)
    return DecimalType(whole + scale, scale) if whole + scale <= MAX_PRECISION else None


def decimal_of(data_type: DataType) -> DecimalType:
    """Return a decimal type itself, or the one that holds an integer type."""
    if isinstance(data_type, DecimalType):
        return data_type
    return DecimalType(_DIGITS[str(data_type)], 0)


def decimal_digits(data_type: DataType) -> int:
    """Return the precision of a decimal type, and 0 for another type."""
    return data_type.precision if isinstance(data_type, DecimalType) else 0


def bounded_decimal(precision: int, scale: int) -> DecimalType:
    """Return the type of a result; it loses digits behind its point where it has more than 38."""
    if precision <= MAX_PRECISION:
        return DecimalType(precision, scale)
    least = min(scale, _LEAST_SCALE)
    return DecimalType(MAX_PRECISION, max(MAX_PRECISION - (precision - scale), least))


def operands(left: Value, right: Value) -> tuple[Value, Value]:
    """Return the operands of an operator; a whole number beside a decimal gets few digits."""
    if isinstance(left.data_type, DecimalType):
        return left, _as_short_decimal(right)
    if isinstance(right.data_type, DecimalType):
        return _as_short_decimal(left), right
    return left, right


def _as_short_decimal(value: Value) -> Value:
    number = None if value.literal is None else value.literal.value
    if not (value.is_written and isinstance(number, int)):
        return value
    decimal = Decimal(str(number))
    shortest = DecimalType(len(decimal.as_tuple().digits), 0)
    return typed_constant(Literal(decimal, "decimal"), shortest)


def widened(values: Sequence[Value], target: DataType) -> list[Value]:
    """Cast values to a common type of them."""
    return [_widen(value, target) for value in values]


def _widen(given: Value, target: DataType) -> Value:
    value = given.to_cast(target)
    if value.data_type == target:
        return value
    arrow_type = to_arrow_type(target)
    if value is NULL:
        return Value(target, lambda rows: pa.nulls(rows.num_rows, arrow_type), may_fail=False)
    is_from_decimal = isinstance(value.data_type, DecimalType)

    def compute(rows: pa.Table) -> Array:
        found = value.compute(rows)
        if is_from_decimal and not isinstance(target, DecimalType):
            found = found.cast(pa.string())  # Arrow's own cast of a decimal rounds twice
        is_rounded = str(target) in _FLOATS
        if isinstance(target, DecimalType) and not is_from_decimal:
            found = found.cast(pa.decimal256(_ROOM, target.scale))
        return found.cast(arrow_type, safe=not is_rounded)

    return Value(target, compute, columns_of([value]), may_fail=value.may_fail)


def widest(values: Sequence[Value]) -> DataType | None:
    """Return the common type of values."""
    return common_type(value.data_type for value in values)
