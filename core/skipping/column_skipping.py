"""Answers to comparisons with constants from one column's statistics (spec 9.5)."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.predicates.coercion import BoundValue, bind, bind_values
from optimist.core.predicates.columns import TypedArray
from optimist.core.predicates.evaluation import compare
from optimist.core.predicates.normal_form import Mask
from optimist.core.predicates.resolution import ResolvedColumn
from optimist.core.predicates.tree import (
    Comparison,
    ComparisonOp,
    In,
    IsNull,
    Like,
    Literal,
    Predicate,
    StartsWith,
)
from optimist.core.schema.types import DecimalType, PrimitiveType
from optimist.core.skipping.statistics import ColumnStatistics
from optimist.core.values.decimals import ceil_to_scale, floor_to_scale, largest, spread
from optimist.core.values.time_zones import session_zone

__all__ = ["ColumnSkipper"]

Array: TypeAlias = Any

_MAX_LISTED = 64
_MILLISECOND_US = 1000
_DOUBLE_DIGITS = 15
_TIMES = (PrimitiveType("timestamp"), PrimitiveType("timestamp_ntz"))
_FLOATS = (PrimitiveType("float"), PrimitiveType("double"))


@dataclass(frozen=True, slots=True)
class ColumnSkipper:
    """The answers to leaves about one column, from its statistics.

    Attributes:
        statistics: The statistics of the column.
        num_records: How many rows each file has.
        zone: The zone of times without one.
        trust_float_maximum: Whether a maximum that is not NaN proves that a file has no NaN. Some
            writers ignore NaN, which is greater than any bound that they write.
    """

    statistics: ColumnStatistics
    num_records: pa.ChunkedArray
    zone: str
    trust_float_maximum: bool

    def answer(self, leaf: Predicate, *, is_negated: bool) -> Mask:
        """Return for each file whether the leaf, or its negation, may be true for some row."""
        if isinstance(leaf, IsNull):
            return self._may_have_values() if is_negated else self._may_have_nulls()
        if self.statistics.low is None:
            return True
        mask: Mask = True
        if isinstance(leaf, Comparison):
            mask = self._may_match_comparison(leaf)
        elif isinstance(leaf, In):
            mask = self._may_match_not_in(leaf) if is_negated else self._may_match_in(leaf)
        elif isinstance(leaf, StartsWith) and not is_negated:
            mask = self._may_match_prefix(leaf.prefix)
        elif isinstance(leaf, Like) and not is_negated:
            mask = self._may_match_like(leaf)
        # Each of these is null, so not true, for a row without a value.
        values = self._may_have_values()
        return values if mask is True else mask if mask is False else pc.and_(mask, values)

    def has_no_nulls(self) -> Array:
        """Return for each file whether every row certainly has a value."""
        return pc.fill_null(pc.equal(self.statistics.null_count, 0), False)

    def _may_have_nulls(self) -> Array:
        # This also holds if bounds are not tight: 0 still means none then (spec 9.5).
        return pc.fill_null(pc.not_equal(self.statistics.null_count, 0), True)

    def _may_have_values(self) -> Array:
        return pc.fill_null(pc.not_equal(self.statistics.null_count, self.num_records), True)

    def _may_match_comparison(self, leaf: Comparison) -> Mask:
        if leaf.right == leaf.left:  # what is left of a cast whose answer is always the same
            return leaf.op not in ("<>", "<", ">")
        if not isinstance(leaf.right, Literal) or leaf.right.value is None:
            return True
        data_type = self.statistics.column.data_type
        answer = bind(leaf.op, leaf.right, data_type, session_zone(self.zone))
        if answer is None or isinstance(answer, bool):
            return answer is not False
        return self._may_compare(answer.op, answer.value)

    def _may_compare(self, op: ComparisonOp, value: BoundValue) -> Mask:
        below, above = _rounding_range(value, self.statistics.column)
        if self._may_hide_nan(op, value):
            return True
        if op == "=":
            return pc.and_(self._low_may_be("<=", above), self._high_may_be(">=", below))
        if op == "<>":
            return pc.or_(self._low_may_be("<", above), self._high_may_be(">", below))
        if op in ("<", "<="):
            return self._low_may_be(op, above)
        return self._high_may_be(op, below)

    def _may_hide_nan(self, op: ComparisonOp, value: BoundValue) -> bool:
        """Return whether a NaN that the maximum does not show would pass `column op value`."""
        if self.trust_float_maximum or self.statistics.column.data_type not in _FLOATS:
            return False
        is_nan = value != value
        return op in ("<>", ">", ">=") or (op == "=" and is_nan)

    def _low_may_be(self, op: ComparisonOp, value: BoundValue) -> Array:
        column = TypedArray(self.statistics.low, self.statistics.column.data_type)
        return pc.fill_null(compare(op, column, value), True)

    def _high_may_be(self, op: ComparisonOp, value: BoundValue) -> Array:
        data_type = self.statistics.column.data_type
        values = self.statistics.high
        if data_type in _TIMES:
            # Bounds are cut down to milliseconds, so a value may lie above its upper bound.
            values = pc.add(values, pa.scalar(_MILLISECOND_US, pa.duration("us")))
        return pc.fill_null(compare(op, TypedArray(values, data_type), value), True)

    def _may_match_in(self, leaf: In) -> Mask:
        values = self._bind_list(leaf)
        if values is None or len(values) > _MAX_LISTED:
            return True if values is None else self._may_match_range(values)
        mask: Mask = False
        for value in values:
            one = self._may_compare("=", value)
            if one is True:
                return True
            mask = one if mask is False else pc.or_(mask, one)
        return mask

    def _may_match_range(self, values: tuple[BoundValue, ...]) -> Mask:
        # A NaN in the list, or hidden in the file, makes the least and greatest values useless.
        if self.statistics.column.data_type in _FLOATS:
            return True
        low: Any = min(values)
        high: Any = max(values)
        below, above = (
            _rounding_range(low, self.statistics.column)[0],
            _rounding_range(high, self.statistics.column)[1],
        )
        return pc.and_(self._low_may_be("<=", above), self._high_may_be(">=", below))

    def _may_match_not_in(self, leaf: In) -> Mask:
        values = self._bind_list(leaf)
        if values is None or len(values) > _MAX_LISTED:
            return True
        mask: Mask = True
        for value in values:
            one = self._may_compare("<>", value)
            if one is not True:
                mask = one if mask is True else pc.and_(mask, one)
        return mask

    def _bind_list(self, leaf: In) -> tuple[BoundValue, ...] | None:
        listed = tuple(value for value in leaf.values if value.value is not None)
        return bind_values(listed, self.statistics.column.data_type, session_zone(self.zone))

    def _may_match_like(self, leaf: Like) -> Mask:
        if not leaf.parts:
            return self._may_compare("=", "") if self._is_text() else True
        is_wild, prefix = leaf.parts[0]
        if is_wild or not self._is_text():
            return True
        return (
            self._may_match_prefix(prefix)
            if len(leaf.parts) > 1
            else self._may_compare("=", prefix)
        )

    def _may_match_prefix(self, prefix: str) -> Mask:
        if not prefix or not self._is_text():
            return True
        length = len(prefix)
        low = pc.utf8_slice_codeunits(self.statistics.low, start=0, stop=length)
        return pc.and_(
            pc.fill_null(pc.less_equal(low, prefix), True), self._high_may_be(">=", prefix)
        )

    def _is_text(self) -> bool:
        return self.statistics.column.data_type == PrimitiveType("string")


def _rounding_range(value: BoundValue, column: ResolvedColumn) -> tuple[BoundValue, BoundValue]:
    """Return the constant, moved slightly down and up if the bounds may have been rounded.

    Some writers write decimals into the statistics as doubles, which hold 15 digits.
    """
    data_type = column.data_type
    if not isinstance(data_type, DecimalType) or not isinstance(value, Decimal):
        return value, value
    if data_type.precision <= _DOUBLE_DIGITS:
        return value, value
    precision, scale = data_type.precision, data_type.scale
    low, high = spread(value, _DOUBLE_DIGITS)
    limit = largest(precision, scale)
    return (
        max(floor_to_scale(low, scale), limit.copy_negate()),
        min(ceil_to_scale(high, scale), limit),
    )
