"""Evaluation of predicates over Arrow columns: SQL's three-valued logic, Spark's order of values.

An answer is either exactly Spark's answer, or None for "unknown". Nothing here guesses.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache, reduce
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.errors.foreign_text import shown
from optimist.core.expressions import NotSqlError, parse_expression
from optimist.core.expressions.tree import Expression
from optimist.core.predicates.casts import is_rewritten, without_cast
from optimist.core.predicates.coercion import BoundValue, bind, bind_values
from optimist.core.predicates.columns import Lookup, TypedArray, table_lookup
from optimist.core.predicates.functions.common_types import common_type, widened
from optimist.core.predicates.functions.comparisons import KERNELS, compare_values, is_comparable
from optimist.core.predicates.functions.failures import UnknownMeaningError
from optimist.core.predicates.functions.resolver import Resolver
from optimist.core.predicates.functions.value import (
    BOOLEAN,
    INTEGERS,
    Value,
    columns_of,
    one_array,
)
from optimist.core.predicates.normal_form import Mask, combine_masks, full_mask, positive_form
from optimist.core.predicates.parsing import predicate_of
from optimist.core.predicates.text import like_regex
from optimist.core.predicates.tree import (
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
    Opaque,
    Or,
    Predicate,
    StartsWith,
)
from optimist.core.schema.arrow_types import to_arrow_type
from optimist.core.schema.types import DataType, DecimalType, PrimitiveType
from optimist.core.values.time_zones import session_zone

__all__ = [
    "compare",
    "condition_value",
    "evaluate",
    "evaluate_leaf",
    "may_be_true",
    "resolve_value",
]

Array: TypeAlias = Any
"""A pyarrow.Array or pyarrow.ChunkedArray."""


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
    rows = _Rows(table if isinstance(table, pa.Table) else pa.table(dict(table)), zone)
    return _evaluate_whole(predicate, rows)


@dataclass(frozen=True)
class _Rows:
    """The rows of one evaluation.

    Attributes:
        table: The columns.
        zone_name: The session's time zone.
    """

    table: pa.Table
    zone_name: str

    @cached_property
    def lookup(self) -> Lookup:
        """Finds the columns."""
        return table_lookup(self.table)

    @cached_property
    def zone(self) -> dt.tzinfo:
        """The session's time zone."""
        return session_zone(self.zone_name)

    def where(self, mask: pa.Array) -> _Rows:
        """Return some of the rows."""
        return _Rows(self.table.filter(mask), self.zone_name)


def _evaluate_whole(predicate: Predicate, rows: _Rows) -> pa.BooleanArray | None:
    answer = _evaluate(predicate, rows)
    if answer is None or not isinstance(answer, pa.Scalar):
        return None if answer is None else full_mask(answer, rows.table.num_rows)
    return pa.repeat(answer, rows.table.num_rows)


def may_be_true(
    predicate: Predicate, table: pa.Table | Mapping[str, Array], *, zone: str = "UTC"
) -> pa.BooleanArray:
    """Return whether the predicate may be true for each row: never null, and true if unknown.

    A predicate that is null is not true. An opaque leaf counts as true, which can only widen the
    answer (spec 2.8).
    """
    rows = table if isinstance(table, pa.Table) else pa.table(dict(table))
    lookup, tzinfo = table_lookup(rows), session_zone(zone)

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
    return KERNELS[op](column.values, scalar)


_FLOATS = (PrimitiveType("float"), PrimitiveType("double"))


def _compare_floats(op: ComparisonOp, values: Array, value: float) -> Array:
    values = values.cast(pa.float64())
    is_nan = pc.is_nan(values)
    if value != value:  # NaN equals itself, and is greater than all other numbers
        constant = {"<=": True, ">": False}.get(op)
        if constant is not None:
            return _where_valid(values, constant)
        return is_nan if op in ("=", ">=") else pc.invert(is_nan)
    answer = KERNELS[op](values, pa.scalar(value, pa.float64()))
    return pc.or_kleene(answer, is_nan) if op in (">", ">=") else answer


def _where_valid(values: Array, constant: bool) -> Array:
    return pc.if_else(pc.is_valid(values), constant, pa.scalar(None, pa.bool_()))


def _evaluate(predicate: Predicate, rows: _Rows) -> Array | None:
    """Return the value as an array, or as a scalar for all rows, or None if unknown."""
    if not any(map(_needs_functions, predicate.walk())):
        return _evaluate_plain(predicate, rows.lookup, rows.zone)
    if isinstance(predicate, (And, Or)):
        return _evaluate_in_turn(predicate, rows)
    if isinstance(predicate, (Not, IsTrue)):
        answer = _evaluate(predicate.child, rows)
        if answer is None:
            return None
        return pc.invert(answer) if isinstance(predicate, Not) else _fill_nulls(answer, False)
    plain = evaluate_leaf(predicate, rows.lookup, rows.zone)
    return _evaluate_own_text(predicate, rows) if plain is None else plain


def _needs_functions(node: Predicate) -> bool:
    return isinstance(node, (Opaque, CastComparison))


def _evaluate_plain(predicate: Predicate, lookup: Lookup, zone: dt.tzinfo) -> Array | None:
    """Evaluate a predicate without the table of functions."""
    if isinstance(predicate, BooleanLiteral):
        return pa.scalar(predicate.value, pa.bool_())
    if isinstance(predicate, (And, Or)):
        merge = pc.and_kleene if isinstance(predicate, And) else pc.or_kleene
        answers = [_evaluate_plain(part, lookup, zone) for part in predicate.parts]
        return None if any(item is None for item in answers) else reduce(merge, answers)
    if isinstance(predicate, (Not, IsTrue)):
        answer = _evaluate_plain(predicate.child, lookup, zone)
        if answer is None:
            return None
        return pc.invert(answer) if isinstance(predicate, Not) else _fill_nulls(answer, False)
    return evaluate_leaf(predicate, lookup, zone)


def _evaluate_in_turn(predicate: And | Or, rows: _Rows) -> Array | None:
    """Evaluate the parts in turn, each only for the rows that those before it have not decided.

    So `x <> 0 AND 1 / x > 2` fails for no row, as in Spark.
    """
    decided = isinstance(predicate, Or)
    merge = pc.or_kleene if decided else pc.and_kleene
    answer: Any = pa.repeat(pa.scalar(not decided), rows.table.num_rows)
    for part in predicate.parts:
        is_open = pc.fill_null(pc.not_equal(answer, decided), True)
        found = _evaluate_whole(part, rows.where(is_open))
        if found is None:
            return None
        whole = pa.repeat(pa.scalar(decided), rows.table.num_rows)
        answer = merge(answer, pc.replace_with_mask(whole, is_open, one_array(found)))
    return answer


# Values by the table of functions

_Column: TypeAlias = Callable[[tuple[str, ...]], "Value | None"]


def _evaluate_own_text(leaf: Predicate, rows: _Rows) -> Array | None:
    """Evaluate a condition by the table of functions, if this engine parsed its text."""
    is_own = leaf.is_own_text if isinstance(leaf, Opaque) else isinstance(leaf, CastComparison)
    text = leaf.sql if isinstance(leaf, Opaque) else str(leaf)
    expression = _parse(text) if is_own else None
    if expression is None:
        return None
    empty = rows.table.slice(0, 0)
    lookup = table_lookup(empty)

    def column(path: tuple[str, ...]) -> Value | None:
        found = lookup(Column(path))
        return None if found is None else _column_value(path, found)

    try:
        if isinstance(leaf, Opaque):
            value = resolve_value(text, expression, column, empty, zone=rows.zone_name)
        else:
            _ensure_not_rewritten(leaf, column, rows.zone_name)
            value = Resolver(text, column, _no_condition, rows.zone_name).value(expression)
        return value.compute(rows.table) if value.data_type == BOOLEAN else None
    except (UnknownMeaningError, RecursionError):
        return None


def _no_condition(node: Expression) -> Value | None:  # noqa: ARG001
    return None


@lru_cache(maxsize=256)
def _parse(sql: str) -> Expression | None:
    try:
        return parse_expression(sql)
    except (NotSqlError, RecursionError):
        return None


def _column_value(path: tuple[str, ...], found: TypedArray) -> Value:
    arrow_type = to_arrow_type(found.data_type) if is_comparable(found.data_type) else None

    def compute(rows: pa.Table) -> Array:
        column = table_lookup(rows)(Column(path))
        if column is None:
            raise ValueError(f"the rows have no column {path}")
        is_other = arrow_type is not None and column.values.type != arrow_type
        return column.values.cast(arrow_type) if is_other else column.values

    return Value(found.data_type, compute, frozenset({path}), may_fail=False)


def resolve_value(
    text: str, expression: Expression, column: _Column, empty: pa.Table, *, zone: str = "UTC"
) -> Value:
    """Resolve an expression to a typed value.

    Args:
        text: The text that the expression was parsed from.
        expression: The expression, or a part of it.
        column: Returns the value of a column, or of a field of a struct, or None.
        empty: A table of no rows, with the columns.
        zone: The session's time zone.

    Raises:
        UnknownMeaningError: Only Spark can compute it.
    """

    def condition(node: Expression) -> Value | None:
        predicate = predicate_of(node, text)
        if isinstance(predicate, Opaque):
            return None
        for leaf in predicate.walk():
            _ensure_not_rewritten(leaf, column, zone)
        return condition_value(predicate, column, empty, zone)

    return Resolver(text, column, condition, zone).value(expression)


def _ensure_not_rewritten(leaf: Predicate, column: _Column, zone: str) -> None:
    if not isinstance(leaf, CastComparison):
        return
    found = column(leaf.column.path)
    if found is not None and is_rewritten(leaf, found.data_type, session_zone(zone)):
        raise UnknownMeaningError(
            f"compares {shown(leaf)}, to which Spark has two answers in the zone {shown(zone)}"
        )


def condition_value(
    predicate: Predicate, column: _Column, empty: pa.Table, zone: str
) -> Value | None:
    """Return the value of a condition, or None if it is not known here.

    Args:
        predicate: The condition.
        column: As for `resolve_value`.
        empty: As for `resolve_value`.
        zone: The session's time zone.
    """
    found = [column(path) for path in predicate.columns()]
    values = [value for value in found if value is not None and value.is_plain]
    if len(values) < len(found) or evaluate(predicate, empty, zone=zone) is None:
        return None

    def compute(rows: pa.Table) -> Array:
        return evaluate(predicate, rows, zone=zone)

    return Value(BOOLEAN, compute, columns_of(values))


def _fill_nulls(answer: Array, value: bool) -> Array:
    if isinstance(answer, pa.Scalar):
        return pa.scalar(answer.as_py() if answer.is_valid else value, pa.bool_())
    return pc.fill_null(answer, value)


def _evaluate_comparison(leaf: Comparison, lookup: Lookup, zone: dt.tzinfo) -> Array | None:
    column = lookup(leaf.left)
    if column is None or not is_comparable(column.data_type):
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
    return None if plain is None else _evaluate_plain(plain, lookup, zone)


def _compare_columns(op: ComparisonOp, left: TypedArray, right: TypedArray) -> Array | None:
    data_type = _exact_common_type(left.data_type, right.data_type)
    if data_type is None or not is_comparable(data_type):
        return None
    sides = [_cast_exactly(side, data_type) for side in (left, right)]
    return compare_values(op, sides[0], sides[1], data_type)


def _exact_common_type(left: DataType, right: DataType) -> DataType | None:
    """Return the type in which Spark compares the columns, with and without ANSI mode."""
    is_exact = all(isinstance(side, DecimalType) or str(side) in INTEGERS for side in (left, right))
    return left if left == right else common_type([left, right]) if is_exact else None


def _cast_exactly(column: TypedArray, data_type: DataType) -> Array:
    if column.data_type == data_type:
        return column.values
    value = Value(column.data_type, lambda _: column.values)
    return widened([value], data_type)[0].compute(pa.table({}))


def _evaluate_null_safe_equal(leaf: NullSafeEqual, lookup: Lookup, zone: dt.tzinfo) -> Array | None:
    column = lookup(leaf.left)
    if column is None or not is_comparable(column.data_type):
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
    if column is None or not is_comparable(column.data_type):
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
    return pc.match_substring_regex(column.values, pattern=like_regex(leaf.parts))
