"""Comparisons of values of one type, in Spark's order of values.

NaN equals NaN and is greater than every other number; -0.0 equals 0.0. Texts compare byte by byte.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.predicates.constants import cast_literal
from optimist.core.predicates.functions.common_types import operands, widened, widest
from optimist.core.predicates.functions.value import (
    BOOLEAN,
    DATE,
    NULL,
    STRING,
    VOID,
    Arguments,
    Array,
    Value,
    columns_of,
    computed,
    computed_where,
    one_array,
    strict,
    typed_constant,
)
from optimist.core.predicates.tree import FLIPPED, ComparisonOp
from optimist.core.schema.types import DataType, DecimalType, PrimitiveType
from optimist.core.values.field_types import LARGEST_LONG, SMALLEST_LONG

__all__ = [
    "KERNELS",
    "compare_values",
    "compared",
    "equal_null_safe",
    "greatest",
    "is_comparable",
    "is_in",
    "is_null",
    "least",
]

KERNELS: dict[ComparisonOp, Callable[[Array, Any], Array]] = {
    "=": pc.equal,
    "<>": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}
_FLOATS = (PrimitiveType("float"), PrimitiveType("double"))


def is_comparable(data_type: DataType) -> bool:
    """Return whether Spark compares such values: it never compares maps, not even with null."""
    is_leaf = isinstance(data_type, (PrimitiveType, DecimalType))
    return is_leaf and str(data_type) not in ("void", "variant")


def compare_values(op: ComparisonOp, left: Array, right: Array, data_type: DataType) -> Array:
    """Return the value of `left op right` for arrays of one type, in three-valued logic."""
    if data_type not in _FLOATS:
        return KERNELS[op](left, right)
    if op in (">", ">="):
        return compare_values(FLIPPED[op], right, left, data_type)
    left_nan, right_nan = pc.is_nan(left), pc.is_nan(right)
    answer = KERNELS[op](left, right)
    if op in ("=", "<>"):
        both = pc.and_kleene(left_nan, right_nan)
        return pc.or_kleene(answer, both) if op == "=" else pc.and_kleene(answer, pc.invert(both))
    # In Arrow every order comparison with NaN is false. In Spark's order NaN is the greatest.
    # A null on the left is below nothing, not even NaN.
    below = pc.and_(right_nan, pc.is_valid(left_nan) if op == "<=" else pc.invert(left_nan))
    return pc.or_kleene(answer, below)


def compared(op: ComparisonOp, given: Arguments) -> Value | None:
    """Compare two values."""
    sides = operands(*_with_dates(given.values))
    data_type = widest(sides)
    if data_type == VOID:
        return _no_answer()
    if data_type is None or not is_comparable(data_type) or _is_beyond_integers(op, sides):
        return None
    wanted = data_type
    return strict(
        BOOLEAN,
        widened(sides, wanted),
        lambda left, right: compare_values(op, left, right, wanted),
    )


def _with_dates(values: Sequence[Value]) -> Sequence[Value]:
    """Read a constant text beside a date as a date."""
    if DATE not in [value.data_type for value in values]:
        return values
    return [_as_date(value) for value in values]


def _as_date(value: Value) -> Value:
    is_text = value.literal is not None and value.data_type == STRING
    read = cast_literal(value.literal, "date") if is_text and value.literal is not None else None
    return value if read is None or read.value is None else typed_constant(read, DATE)


def _is_beyond_integers(op: ComparisonOp, sides: tuple[Value, Value]) -> bool:
    """Tell whether an integer is compared with a decimal that no integer type holds.

    Spark then gives the same answer for all values, also for null.
    """
    for side in sides:
        number = None if side.literal is None else side.literal.value
        is_far = isinstance(number, Decimal) and not SMALLEST_LONG <= number <= LARGEST_LONG
        if is_far and op not in ("=", "<>"):
            return True
    return False


def _no_answer() -> Value:
    return Value(BOOLEAN, lambda rows: pa.nulls(rows.num_rows, pa.bool_()))


def equal_null_safe(given: Arguments) -> Value | None:
    """Compare two values, where null equals null and nothing else."""
    equal = compared("=", given)
    if equal is None:
        return None

    def kernel(same: Array, left: Array, right: Array) -> Array:
        both_null = pc.and_(pc.is_null(left), pc.is_null(right))
        return pc.or_(pc.fill_null(same, False), both_null)

    return computed(BOOLEAN, (equal, *given.values), kernel)


def is_null(given: Arguments) -> Value | None:
    """Tell whether the value is null."""
    return computed(BOOLEAN, given.values, pc.is_null)


def is_in(given: Arguments) -> Value | None:
    """Tell whether the first value equals one of the others."""
    data_type = widest(given.values)
    if data_type == VOID:
        return _no_answer()
    if data_type is None or not is_comparable(data_type):
        return None
    wanted = data_type
    first, *listed = widened(given.values, wanted)

    def compute(rows: pa.Table) -> Array:
        value, answer = one_array(first.compute(rows)), pa.repeat(pa.scalar(False), rows.num_rows)
        for item in listed:
            # As in Spark, it is computed only where it can still decide.
            is_open = pc.and_(pc.is_valid(value), pc.fill_null(pc.invert(answer), True))
            found = computed_where(item, rows, is_open) if item.may_fail else item.compute(rows)
            answer = pc.or_kleene(answer, one_array(compare_values("=", value, found, wanted)))
        return answer

    return Value(BOOLEAN, compute, columns_of((first, *listed)))


def greatest(given: Arguments) -> Value | None:
    """Return the greatest of the values that are not null."""
    return _extreme(given, ">")


def least(given: Arguments) -> Value | None:
    """Return the least of the values that are not null."""
    return _extreme(given, "<")


def _extreme(given: Arguments, op: ComparisonOp) -> Value | None:
    if len(given.values) < 2:
        return None
    data_type = widest(given.values)
    if data_type == VOID:
        return NULL
    if data_type is None or not is_comparable(data_type):
        return None
    wanted = data_type

    def better(best: pa.Array, item: pa.Array) -> pa.Array:
        is_better = compare_values(op, item, best, wanted)
        takes = pc.or_(pc.fill_null(is_better, False), pc.is_null(best))
        return pc.if_else(takes, item, best)

    def kernel(*values: Array) -> Array:
        return reduce(better, map(one_array, values))

    return computed(wanted, widened(given.values, wanted), kernel)
