"""Evaluation of predicates over Arrow columns: SQL's three-valued logic, Spark's order of values.

An answer is either exactly Spark's answer, or None for "unknown". Nothing here guesses.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.predicates.casts import without_cast
from optimist.core.predicates.coercion import BoundValue, bind, bind_values
from optimist.core.predicates.normal_form import Mask, combine_masks, full_mask, positive_form
from optimist.core.predicates.tree import (
    FLIPPED,
    And,
    BooleanLiteral,
    CastComparison,
    Column,
    Comparison,
    ComparisonOp,
    In,
    IsNull,
    IsTrue,
    Like,
    Literal,
    Not,
    NullSafeEqual,
    Or,
    Predicate,
    StartsWith,
)
from optimist.core.schema.types import DataType, DecimalType, PrimitiveType, StructType
from optimist.core.values.time_zones import session_zone

__all__ = ["TypedArray", "compare", "evaluate", "evaluate_leaf", "may_be_true"]

Array: TypeAlias = Any
"""A pyarrow.Array or pyarrow.ChunkedArray."""


@dataclass(frozen=True, slots=True)
class TypedArray:
    """A column and its Delta type. Timestamps are microseconds, in UTC if they are instants."""

    values: Array
    data_type: DataType


Lookup: TypeAlias = Callable[[Column], TypedArray | None]


def evaluate(
    predicate: Predicate, table: pa.Table | Mapping[str, Array], *, zone: str = "UTC"
) -> pa.BooleanArray | None:
    """Return the predicate's value for each row (true, false or null), or None if unknown.

    The values are Spark's. Columns are found by name in any case, fields of structs by their path.
    The answer is None for predicates with opaque parts, unknown columns, or comparisons of types
    whose casts are in doubt.

    Args:
        predicate: The predicate to evaluate.
        table: The columns, as a table or by name.
        zone: The session's time zone, for texts and dates that are compared with timestamps.
    """
    rows = table if isinstance(table, pa.Table) else pa.table(dict(table))
    answer = _evaluate(predicate, _table_lookup(rows), session_zone(zone))
    if answer is None or not isinstance(answer, pa.Scalar):
        return None if answer is None else full_mask(answer, rows.num_rows)
    return pa.repeat(answer, rows.num_rows)


def may_be_true(
    predicate: Predicate, table: pa.Table | Mapping[str, Array], *, zone: str = "UTC"
) -> pa.BooleanArray:
    """Return whether the predicate may be true for each row: never null, and true if unknown.

    A predicate that is null is not true. An opaque leaf counts as true, which can only widen the
    answer (spec 2.8).
    """
    rows = table if isinstance(table, pa.Table) else pa.table(dict(table))
    lookup, tzinfo = _table_lookup(rows), session_zone(zone)

    def answer_leaf(leaf: Predicate) -> Mask:
        answer = evaluate_leaf(leaf, lookup, tzinfo)
        return True if answer is None else pc.fill_null(answer, False)

    return full_mask(combine_masks(positive_form(predicate), answer_leaf), rows.num_rows)


def evaluate_leaf(leaf: Predicate, lookup: Lookup, zone: dt.tzinfo) -> Array | None:
    """Return the value of a leaf, or of its negation, over the columns of `lookup`, or None."""
    match leaf:
        case Not():
            answer = evaluate_leaf(leaf.child, lookup, zone)
            return None if answer is None else pc.invert(answer)
        case Comparison():
            return _evaluate_comparison(leaf, lookup, zone)
        case CastComparison():
            return _evaluate_cast_comparison(leaf, lookup, zone)
        case NullSafeEqual():
            return _evaluate_null_safe_equal(leaf, lookup, zone)
        case IsNull():
            return _evaluate_is_null(leaf, lookup)
        case In():
            return _evaluate_in(leaf, lookup, zone)
        case StartsWith():
            return _evaluate_starts_with(leaf, lookup)
        case Like():
            return _evaluate_like(leaf, lookup)
    return None


def compare(op: ComparisonOp, column: TypedArray, value: BoundValue) -> Array:
    """Return the value of `column op value`, with a value of the column's type."""
    if isinstance(value, float):
        return _compare_floats(op, column.values, value)
    scalar = pa.scalar(value, type=column.values.type)
    return _KERNELS[op](column.values, scalar)


_FLOATS = (PrimitiveType("float"), PrimitiveType("double"))
_KERNELS: dict[ComparisonOp, Callable[[Array, Any], Array]] = {
    "=": pc.equal,
    "<>": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}


def _compare_floats(op: ComparisonOp, values: Array, value: float) -> Array:
    values = values.cast(pa.float64())
    is_nan = pc.is_nan(values)
    if value != value:  # NaN equals itself, and is greater than all other numbers
        constant = {"<=": True, ">": False}.get(op)
        if constant is not None:
            return _where_valid(values, constant)
        return is_nan if op in ("=", ">=") else pc.invert(is_nan)
    answer = _KERNELS[op](values, pa.scalar(value, pa.float64()))
    return pc.or_kleene(answer, is_nan) if op in (">", ">=") else answer


def _where_valid(values: Array, constant: bool) -> Array:
    return pc.if_else(pc.is_valid(values), constant, pa.scalar(None, pa.bool_()))


def _evaluate(predicate: Predicate, lookup: Lookup, zone: dt.tzinfo) -> Array | None:
    """Return the value as an array, or as a scalar for all rows, or None if unknown."""
    if isinstance(predicate, BooleanLiteral):
        return pa.scalar(predicate.value, pa.bool_())
    if isinstance(predicate, (And, Or)):
        merge = pc.and_kleene if isinstance(predicate, And) else pc.or_kleene
        answers = [_evaluate(part, lookup, zone) for part in predicate.parts]
        return None if any(item is None for item in answers) else reduce(merge, answers)
    if isinstance(predicate, (Not, IsTrue)):
        answer = _evaluate(predicate.child, lookup, zone)
        if answer is None:
            return None
        return pc.invert(answer) if isinstance(predicate, Not) else _fill_nulls(answer, False)
    return evaluate_leaf(predicate, lookup, zone)


def _fill_nulls(answer: Array, value: bool) -> Array:
    if isinstance(answer, pa.Scalar):
        return pa.scalar(answer.as_py() if answer.is_valid else value, pa.bool_())
    return pc.fill_null(answer, value)


def _evaluate_comparison(leaf: Comparison, lookup: Lookup, zone: dt.tzinfo) -> Array | None:
    column = lookup(leaf.left)
    if column is None or not _is_comparable(column.data_type):
        return None
    if isinstance(leaf.right, Column):
        other = lookup(leaf.right)
        return None if other is None else _compare_columns(leaf.op, column, other)
    if leaf.right.value is None:
        return pa.nulls(len(column.values), pa.bool_())
    answer = bind(leaf.op, leaf.right, column.data_type, zone)
    if isinstance(answer, bool):
        return _where_valid(column.values, answer)
    return None if answer is None else compare(answer.op, column, answer.value)


def _evaluate_cast_comparison(
    leaf: CastComparison, lookup: Lookup, zone: dt.tzinfo
) -> Array | None:
    column = lookup(leaf.column)
    plain = None if column is None else without_cast(leaf, column.data_type, zone)
    return None if plain is None else _evaluate(plain, lookup, zone)


def _compare_columns(op: ComparisonOp, left: TypedArray, right: TypedArray) -> Array | None:
    if left.data_type != right.data_type or not _is_comparable(left.data_type):
        return None
    if left.data_type not in _FLOATS:
        return _KERNELS[op](left.values, right.values)
    if op in (">", ">="):
        return _compare_columns(FLIPPED[op], right, left)
    left_nan, right_nan = pc.is_nan(left.values), pc.is_nan(right.values)
    answer = _KERNELS[op](left.values, right.values)
    if op in ("=", "<>"):
        both = pc.and_kleene(left_nan, right_nan)
        return pc.or_kleene(answer, both) if op == "=" else pc.and_kleene(answer, pc.invert(both))
    # In Arrow every order comparison with NaN is false. In Spark's order NaN is the greatest.
    # A null on the left is below nothing, not even NaN.
    below = pc.and_(right_nan, pc.is_valid(left_nan) if op == "<=" else pc.invert(left_nan))
    return pc.or_kleene(answer, below)


def _evaluate_null_safe_equal(leaf: NullSafeEqual, lookup: Lookup, zone: dt.tzinfo) -> Array | None:
    column = lookup(leaf.left)
    if column is None or not _is_comparable(column.data_type):
        return None
    if isinstance(leaf.right, Literal) and leaf.right.value is None:
        return pc.is_null(column.values)
    equal = _evaluate_comparison(Comparison("=", leaf.left, leaf.right), lookup, zone)
    if isinstance(leaf.right, Literal):
        return None if equal is None else pc.fill_null(equal, False)
    other = lookup(leaf.right)
    if equal is None or other is None:
        return None
    both_null = pc.and_(pc.is_null(column.values), pc.is_null(other.values))
    return pc.or_(pc.fill_null(equal, False), both_null)


def _evaluate_is_null(leaf: IsNull, lookup: Lookup) -> Array | None:
    column = lookup(leaf.column)
    return None if column is None else pc.is_null(column.values)


def _evaluate_in(leaf: In, lookup: Lookup, zone: dt.tzinfo) -> Array | None:
    column = lookup(leaf.column)
    if column is None or not _is_comparable(column.data_type):
        return None
    listed = tuple(value for value in leaf.values if value.value is not None)
    values = bind_values(listed, column.data_type, zone)
    if values is None:
        return None
    found = _is_in(column, values)
    if len(listed) < len(leaf.values):
        found = pc.if_else(found, True, pa.scalar(None, pa.bool_()))
    return pc.if_else(pc.is_valid(column.values), found, pa.scalar(None, pa.bool_()))


def _is_in(column: TypedArray, values: tuple[BoundValue, ...]) -> Array:
    if not values:
        return _where_valid(column.values, False)
    if column.data_type not in _FLOATS:
        value_set = pa.array(values, type=column.values.type)
        return pc.is_in(column.values, value_set=value_set, skip_nulls=True)
    # `is_in` distinguishes -0.0 from 0.0, so adding 0.0 makes both 0.0. NaN is tested apart, so
    # that nothing depends on how `is_in` compares it.
    numbers = pc.add(column.values.cast(pa.float64()), 0.0)
    listed = [value + 0.0 for value in values if isinstance(value, float) and value == value]
    plain = pa.array(listed, pa.float64())
    found = pc.is_in(numbers, value_set=plain, skip_nulls=True)
    if len(plain) < len(values):
        found = pc.or_(found, pc.fill_null(pc.is_nan(numbers), False))
    return found


def _evaluate_starts_with(leaf: StartsWith, lookup: Lookup) -> Array | None:
    column = lookup(leaf.column)
    if column is None or column.data_type != PrimitiveType("string"):
        return None
    return pc.starts_with(column.values, pattern=leaf.prefix)


def _evaluate_like(leaf: Like, lookup: Lookup) -> Array | None:
    column = lookup(leaf.column)
    if column is None or column.data_type != PrimitiveType("string"):
        return None
    return pc.match_substring_regex(column.values, pattern=_like_regex(leaf.parts))


def _like_regex(parts: tuple[tuple[bool, str], ...]) -> str:
    wildcards = {"%": ".*", "_": "."}
    body = "".join(wildcards[text] if wild else re.escape(text) for wild, text in parts)
    return rf"(?s)\A{body}\z"


def _is_comparable(data_type: DataType) -> bool:
    """Return whether Spark compares such values: it never compares maps, not even with null."""
    return isinstance(data_type, (PrimitiveType, DecimalType))


def _table_lookup(table: pa.Table) -> Lookup:
    def lookup(column: Column) -> TypedArray | None:
        values = _top_level(table, column.path[0])
        for name in column.path[1:]:
            values = None if values is None else _find_child(values, name)
        return None if values is None else _add_type(values)

    return lookup


def _top_level(table: pa.Table, name: str) -> Array | None:
    index = _find_index(table.schema.names, name)
    return None if index is None else table.column(index)


def _find_child(values: Array, name: str) -> Array | None:
    if not pa.types.is_struct(values.type):
        return None
    names = [values.type.field(i).name for i in range(values.type.num_fields)]
    index = _find_index(names, name)
    return None if index is None else pc.struct_field(values, [index])


def _find_index(names: list[str], name: str) -> int | None:
    """Return the index of a name, the exact match first, or None if several match."""
    for candidates in (
        [i for i, item in enumerate(names) if item == name],
        [i for i, item in enumerate(names) if item.lower() == name.lower()],
    ):
        if candidates:
            return candidates[0] if len(candidates) == 1 else None
    return None


_ARROW_NAMES = {
    pa.int8(): "byte",
    pa.int16(): "short",
    pa.int32(): "integer",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.bool_(): "boolean",
    pa.string(): "string",
    pa.large_string(): "string",
    pa.binary(): "binary",
    pa.large_binary(): "binary",
    pa.date32(): "date",
}


def _add_type(values: Array) -> TypedArray:
    """Return the column with its Delta type. An unknown type counts as a struct."""
    arrow_type = values.type
    if pa.types.is_dictionary(arrow_type):
        return _add_type(values.cast(arrow_type.value_type))
    if arrow_type in _ARROW_NAMES:
        return TypedArray(values, PrimitiveType(_ARROW_NAMES[arrow_type]))
    if pa.types.is_decimal(arrow_type) and arrow_type.precision <= 38 and arrow_type.scale >= 0:
        wide = pa.decimal128(arrow_type.precision, arrow_type.scale)
        return TypedArray(values.cast(wide), DecimalType(arrow_type.precision, arrow_type.scale))
    if pa.types.is_timestamp(arrow_type) and arrow_type.unit != "ns":
        name = "timestamp_ntz" if arrow_type.tz is None else "timestamp"
        plain = pa.timestamp("us", tz=None if arrow_type.tz is None else "UTC")
        return TypedArray(values.cast(plain), PrimitiveType(name))
    if str(arrow_type) == "string_view":
        return TypedArray(values.cast(pa.large_string()), PrimitiveType("string"))
    return TypedArray(values, StructType())
