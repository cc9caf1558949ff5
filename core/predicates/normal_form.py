"""Negations pushed down to the leaves, and masks combined over them (spec 2.8, 9.5).

Pruning asks one question: may the predicate be *true*? In the normal form every connective is
monotone. So a leaf without an answer simply counts as "maybe", which can only widen the result.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import reduce
from operator import and_, or_
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.predicates.tree import (
    INVERTED,
    And,
    BooleanLiteral,
    CastComparison,
    Comparison,
    IsNull,
    IsTrue,
    Literal,
    Not,
    NullSafeEqual,
    Opaque,
    Or,
    Predicate,
)

__all__ = [
    "Mask",
    "combine_masks",
    "conjunction",
    "full_mask",
    "map_leaves",
    "positive_form",
]

Mask: TypeAlias = Any
"""A boolean Arrow array without nulls, one value per row, or a bool that holds for all rows."""


def conjunction(predicates: tuple[Predicate, ...]) -> Predicate:
    """Join the predicates by AND, and return TRUE without any."""
    return reduce(and_, predicates) if predicates else Predicate.TRUE


def positive_form(predicate: Predicate, *, negate: bool = False) -> Predicate:
    """Return a predicate that is *true* for the same rows, with `NOT` only above leaves.

    It may be false for rows where the original is null. Other operators replace `<=>` with a
    constant.
    """
    if isinstance(predicate, Not):
        return positive_form(predicate.child, negate=not negate)
    if isinstance(predicate, (And, Or)):
        parts = [positive_form(part, negate=negate) for part in predicate.parts]
        return reduce(and_ if isinstance(predicate, And) != negate else or_, parts)
    if isinstance(predicate, BooleanLiteral):
        return BooleanLiteral(None if predicate.value is None else predicate.value != negate)
    if isinstance(predicate, (Comparison, CastComparison)) and negate:
        return replace(predicate, op=INVERTED[predicate.op])
    if isinstance(predicate, NullSafeEqual) and isinstance(predicate.right, Literal):
        return _positive_null_safe(predicate, predicate.right, negate)
    if isinstance(predicate, IsTrue):
        return _positive_is_true(predicate, negate)
    return Not(predicate) if negate else predicate


def _positive_null_safe(predicate: NullSafeEqual, right: Literal, negate: bool) -> Predicate:
    column = predicate.left
    if right.value is None:
        return Not(IsNull(column)) if negate else IsNull(column)
    if negate:
        return IsNull(column) | Comparison("<>", column, right)
    return Comparison("=", column, right)


def _positive_is_true(predicate: IsTrue, negate: bool) -> Predicate:
    if not negate:
        return positive_form(predicate.child)
    # It is true where the child is false or null, and no node says that a predicate is null.
    return Opaque(f"NOT ({predicate})", predicate.columns(), predicate.is_deterministic)


def map_leaves(predicate: Predicate, change: Callable[[Predicate], Predicate]) -> Predicate:
    """Apply `change` to the leaves (or negated leaves) of a predicate in positive form."""
    if isinstance(predicate, (And, Or)):
        parts = [map_leaves(part, change) for part in predicate.parts]
        return reduce(and_ if isinstance(predicate, And) else or_, parts)
    return change(predicate)


def combine_masks(predicate: Predicate, answer_leaf: Callable[[Predicate], Mask]) -> Mask:
    """Return whether a predicate in positive form may be true, from the answers for its leaves."""
    if isinstance(predicate, BooleanLiteral):
        return predicate.value is True
    if isinstance(predicate, And):
        return _combine_parts(predicate.parts, answer_leaf, decisive=False)
    if isinstance(predicate, Or):
        return _combine_parts(predicate.parts, answer_leaf, decisive=True)
    return answer_leaf(predicate)


def full_mask(mask: Mask, num_rows: int) -> pa.BooleanArray:
    """Return the mask as one array with `num_rows` values."""
    if isinstance(mask, bool):
        return pa.repeat(pa.scalar(mask), num_rows)
    if isinstance(mask, pa.ChunkedArray):
        return mask.combine_chunks()
    return mask


def _combine_parts(
    parts: tuple[Predicate, ...], answer_leaf: Callable[[Predicate], Mask], *, decisive: bool
) -> Mask:
    merge = pc.or_ if decisive else pc.and_
    result: Mask = not decisive
    for part in parts:
        mask = combine_masks(part, answer_leaf)
        if isinstance(mask, bool):
            if mask is decisive:
                return decisive
            continue
        result = mask if isinstance(result, bool) else merge(result, mask)
    return result
