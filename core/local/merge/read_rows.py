"""Which rows of the table a MERGE can match, as a predicate: it skips files, and is what was read.

For each branch of ON: its terms over the table's row alone, the values of the source's keys or
ranges of them, and the least or greatest value of a column that the table's column is compared
with.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from functools import reduce
from operator import and_, or_

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.data.column_shape import value_at
from optimist.core.local.merge.join import JoinBranch
from optimist.core.local.merge.keys import ColumnKey, exact_common_type
from optimist.core.local.merge.scope import Sides
from optimist.core.local.merge.source_rows import SourceRows
from optimist.core.predicates import Predicate
from optimist.core.predicates.builder import literal
from optimist.core.predicates.resolution import map_columns, map_leaves
from optimist.core.predicates.tree import (
    FLIPPED,
    Column,
    Comparison,
    In,
    IsNull,
    Literal,
)

__all__ = ["target_predicate"]

_UNORDERED = ("boolean", "binary", "float", "double")
_RANGES = 64
"""At most so many values, or ranges of values, tell which files can hold matching rows."""


def target_predicate(branches: Sequence[JoinBranch], source: SourceRows, sides: Sides) -> Predicate:
    """Return a predicate that is true for every row that can match the source.

    Args:
        branches: The branches of ON.
        source: The rows of the source.
        sides: The columns of both sides.
    """
    num_ranges = max(1, _RANGES // source.num_blocks)
    return _any_of(
        [
            _branch_predicate(item, rows, sides, num_ranges)
            for rows in source.blocks()
            for item in branches
        ]
    )


def _any_of(found: Sequence[Predicate]) -> Predicate:
    wanted = [item for item in found if item != Predicate.FALSE]
    if Predicate.TRUE in wanted:
        return Predicate.TRUE
    return reduce(or_, wanted) if wanted else Predicate.FALSE


def _branch_predicate(
    branch: JoinBranch, source: pa.Table, sides: Sides, num_ranges: int
) -> Predicate:
    able, numbers = branch.able_rows(source, sides)
    if not len(numbers):
        return Predicate.FALSE
    parts = [_own_term(part, sides) for part in branch.target]
    parts += [_key_predicate(able, key, num_ranges) for key in branch.keys]
    parts += [_bound(part, able, sides) for part in branch.others]
    known = [part for part in parts if part is not None]
    if Predicate.FALSE in known:
        return Predicate.FALSE
    return reduce(and_, known) if known else Predicate.TRUE


def _own_term(part: Predicate, sides: Sides) -> Predicate | None:
    """Return a term over the table's row under the table's own names, or None if it can't be."""
    scope = sides.scopes["MATCHED"]

    def named(column: Column) -> Column:
        return Column(scope.find(column.path)[1].path)

    own = map_leaves(part, lambda leaf: map_columns(leaf, named))
    wanted = {scope.find(path)[1].path for path in part.columns()}
    return own if own.columns() == wanted else None


def _bound(part: Predicate, source: pa.Table, sides: Sides) -> Predicate | None:
    """Return what `t.x > s.y` and its like say of the table's row, given all rows of the source."""
    if not isinstance(part, Comparison) or not isinstance(part.right, Column):
        return None
    op, scope = part.op, sides.scopes["MATCHED"]
    (side, target), (_, other) = scope.find(part.left.path), scope.find(part.right.path)
    if side != sides.target_alias:
        op, target, other = FLIPPED[op], other, target
    data_type = exact_common_type(target.data_type, other.data_type)
    is_ordered = target.has_plain_order and other.has_plain_order
    if data_type is None or not is_ordered or str(data_type) in _UNORDERED or op in ("=", "<>"):
        return None
    values = value_at(source, other.path)
    if values.null_count == len(values):
        return Predicate.FALSE
    ends = pc.min_max(values)
    try:
        end = _literal(ends["max" if op in ("<", "<=") else "min"].as_py())
    except (ValueError, OverflowError):  # no text, or no time that Python knows
        return None
    return Comparison(op, Column(target.path), end)


def _key_predicate(source: pa.Table, key: ColumnKey, num_ranges: int) -> Predicate | None:
    """Return the predicate of one key, or None if it says nothing."""
    values = key.compared_source(source)
    column = Column(key.target)
    is_null = IsNull(column) if key.is_null_safe and values.null_count else None
    if values.null_count == len(values):
        return Predicate.FALSE if is_null is None else is_null
    if str(key.data_type) in _UNORDERED or not key.keeps_order:
        return None
    ordered = pc.unique(values.drop_null()).sort()
    try:
        literals = [_literal(value) for value in _bounds(ordered, num_ranges)]
    except (ValueError, OverflowError):  # no text, or no time that Python knows
        return None
    lows, highs = literals[::2], literals[1::2]
    if len(ordered) <= num_ranges:
        wanted: Predicate = In(column, tuple(lows))
    else:
        pairs = zip(lows, highs, strict=True)
        wanted = reduce(or_, (_between(column, low, high) for low, high in pairs))
    return wanted if is_null is None else wanted | is_null


def _literal(value: object) -> Literal:
    if isinstance(value, dt.datetime) and value.tzinfo is None:
        return Literal(value, "timestamp_ntz")
    return literal(value)


def _between(column: Column, low: Literal, high: Literal) -> Predicate:
    return Comparison(">=", column, low) & Comparison("<=", column, high)


def _bounds(ordered: pa.Array, num_ranges: int) -> Iterator[object]:
    """Split sorted values into runs, and yield the least and the greatest value of each run."""
    size = -(-len(ordered) // num_ranges)
    for start in range(0, len(ordered), size):
        yield ordered[start].as_py()
        yield ordered[min(start + size, len(ordered)) - 1].as_py()
