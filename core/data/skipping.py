"""Which files a predicate needs: by partition values and statistics (spec 2.8, 9.4, 9.5).

A file is left out only where it is certain that no row of it makes the predicate true. What is
unknown (an opaque part, a missing statistic, a doubtful cast) keeps the file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, localcontext
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.data.partition_values import partition_column_of
from optimist.core.data.statistics import ColumnStatistics, FileStatistics
from optimist.core.predicates.coercion import BoundValue, bind, bind_values
from optimist.core.predicates.constants import session_zone
from optimist.core.predicates.evaluation import TypedArray, compare, evaluate_leaf
from optimist.core.predicates.normal_form import (
    Mask,
    combine_masks,
    conjunction,
    full_mask,
    positive_form,
)
from optimist.core.predicates.resolution import ResolvedColumn, SplitPredicate, resolve_column
from optimist.core.predicates.tree import (
    Column,
    Comparison,
    ComparisonOp,
    In,
    IsNull,
    Like,
    Literal,
    Not,
    Predicate,
    StartsWith,
)
from optimist.core.schema import DecimalType, PrimitiveType, StructType

__all__ = ["FilePruner", "keep_mask", "may_match", "prune"]

Array: TypeAlias = Any

_MAX_LISTED = 64
_MILLISECOND = pa.scalar(1000, pa.duration("us"))
_DOUBLE_DIGITS = 15
_TIMES = (PrimitiveType("timestamp"), PrimitiveType("timestamp_ntz"))
_FLOATS = (PrimitiveType("float"), PrimitiveType("double"))


def keep_mask(
    conjuncts: Sequence[Predicate], files: pa.Table, schema: StructType
) -> pa.BooleanArray:
    """For each file whether its statistics allow all conjuncts at once to be true for some row."""
    return FilePruner(files, schema, ()).keep_mask(conjunction(tuple(conjuncts)))


def prune(
    files: pa.Table,
    split: SplitPredicate,
    schema: StructType,
    partition_columns: Sequence[str],
    *,
    use_statistics: bool = True,
    statistics: FileStatistics | None = None,
) -> pa.Table:
    """The files that may hold a row for which the predicate is true, in their order.

    `statistics` are those of `files`, if the caller keeps them between calls.
    """
    pruner = FilePruner(files, schema, partition_columns, statistics=statistics)
    predicate = conjunction((*split.partition, *split.data))
    return pruner.prune(predicate, use_statistics=use_statistics)


def may_match(
    files: pa.Table,
    split: SplitPredicate,
    schema: StructType,
    partition_columns: Sequence[str],
    *,
    use_statistics: bool,
) -> pa.BooleanArray:
    """For each file of another's commit whether a read with this predicate may have missed it.

    As `prune`, but upper bounds of float columns are not taken as proof: some writers pass over
    NaN, which is greater than they say. Without statistics only the partition conjuncts count, as
    in Delta (spec 2.8).
    """
    pruner = FilePruner(files, schema, partition_columns, trust_float_maximum=False)
    predicate = conjunction((*split.partition, *split.data))
    return pruner.keep_mask(predicate, use_statistics=use_statistics)


class FilePruner:
    """Prunes one files table by any number of predicates; parsed values are kept between calls.

    Args:
        files: The files table, with `partitionValues` and `stats`.
        schema: The table's schema, as the predicates mean it.
        partition_columns: Logical names.
        zone: The session's time zone.
        statistics: Those of `files`, if the caller keeps them.
        trust_float_maximum: See `may_match`.
    """

    def __init__(
        self,
        files: pa.Table,
        schema: StructType,
        partition_columns: Sequence[str],
        *,
        zone: str = "UTC",
        statistics: FileStatistics | None = None,
        trust_float_maximum: bool = True,
    ) -> None:
        self.files = files
        self.schema = schema
        self.statistics = statistics or FileStatistics(files, schema)
        self._zone = zone
        self._trust_float_maximum = trust_float_maximum
        self._partition_names = {name.lower() for name in partition_columns}
        self._partitions: dict[str, TypedArray] = {}

    def prune(self, predicate: Predicate, *, use_statistics: bool = True) -> pa.Table:
        """The files that may hold a row for which the predicate is true, in their order."""
        mask = self.keep_mask(predicate, use_statistics=use_statistics)
        return self.files if pc.all(mask, min_count=0).as_py() else self.files.filter(mask)

    def keep_mask(self, predicate: Predicate, *, use_statistics: bool = True) -> pa.BooleanArray:
        """For each file whether it may hold a row for which the predicate is true."""
        positive = positive_form(predicate)
        mask = combine_masks(positive, self._answer_by_partition)
        keep = full_mask(mask, self.files.num_rows)
        needed = self._data_paths(positive) if use_statistics else []
        if not needed or not pc.any(keep, min_count=0).as_py():
            return keep
        if self._is_worth_narrowing(keep, needed):
            return self._keep_among(keep, positive)
        self.statistics.load(needed)
        return full_mask(combine_masks(positive, self._answer_leaf), self.files.num_rows)

    def _is_worth_narrowing(self, keep: pa.BooleanArray, needed: list[tuple[str, ...]]) -> bool:
        """Few files left and nothing parsed yet: parse theirs alone, without keeping it."""
        return keep.true_count < len(keep) // 4 and not self.statistics.is_loaded(needed)

    def _keep_among(self, keep: pa.BooleanArray, predicate: Predicate) -> pa.BooleanArray:
        narrowed = FilePruner(
            self.files.filter(keep),
            self.schema,
            tuple(self._partition_names),
            zone=self._zone,
            trust_float_maximum=self._trust_float_maximum,
        )
        narrowed.statistics.load(narrowed._data_paths(predicate))
        answer = full_mask(combine_masks(predicate, narrowed._answer_leaf), narrowed.files.num_rows)
        return pc.replace_with_mask(keep, keep, answer)

    def _data_paths(self, predicate: Predicate) -> list[tuple[str, ...]]:
        found = [self._resolve(path) for path in sorted(predicate.columns())]
        return [
            column.path for column in found if column is not None and not self._is_partition(column)
        ]

    def _resolve(self, path: tuple[str, ...]) -> ResolvedColumn | None:
        column = resolve_column(path, self.schema)
        return column if column is not None and column.has_plain_order else None

    def _is_partition(self, column: ResolvedColumn) -> bool:
        return column.path[0].lower() in self._partition_names

    def _answer_leaf(self, leaf: Predicate) -> Mask:
        columns = [self._resolve(path) for path in leaf.columns()]
        if any(column is not None and self._is_partition(column) for column in columns):
            return self._answer_by_partition(leaf)
        return self._answer_by_statistics(leaf)

    def _answer_by_partition(self, leaf: Predicate) -> Mask:
        answer = evaluate_leaf(leaf, self._partition_values, session_zone(self._zone))
        return True if answer is None else pc.fill_null(answer, False)

    def _partition_values(self, column: Column) -> TypedArray | None:
        resolved = self._resolve(column.path)
        if resolved is None or not self._is_partition(resolved):
            return None
        name = resolved.path[0]
        if name not in self._partitions:
            field = self.schema.find(name)
            assert field is not None
            values = partition_column_of(self.files, field, zone=self._zone)
            self._partitions[name] = TypedArray(values, resolved.data_type)
        return self._partitions[name]

    def _answer_by_statistics(self, leaf: Predicate) -> Mask:
        inner = leaf.child if isinstance(leaf, Not) else leaf
        if not isinstance(inner, (Comparison, In, IsNull, StartsWith, Like)):
            return True
        column = self._resolve(
            inner.left.path if isinstance(inner, Comparison) else inner.column.path
        )
        found = None if column is None else self.statistics.column(column.path)
        if found is None:
            return True
        skipper = _Skipper(
            found, self.statistics.num_records, self._zone, self._trust_float_maximum
        )
        return skipper.answer(inner, is_negated=isinstance(leaf, Not))


@dataclass(frozen=True, slots=True)
class _Skipper:
    """Answers leaves about one column from its statistics: may the leaf be true for some row?"""

    statistics: ColumnStatistics
    num_records: pa.ChunkedArray
    zone: str
    trust_float_maximum: bool

    def answer(self, leaf: Predicate, *, is_negated: bool) -> Mask:
        if isinstance(leaf, IsNull):
            return self._may_have_values() if is_negated else self._may_have_nulls()
        if self.statistics.low is None:
            return True
        mask: Mask = True
        if isinstance(leaf, Comparison):
            mask = self._comparison(leaf)
        elif isinstance(leaf, In):
            mask = self._not_in(leaf) if is_negated else self._in(leaf)
        elif isinstance(leaf, StartsWith) and not is_negated:
            mask = self._starts_with(leaf.prefix)
        elif isinstance(leaf, Like) and not is_negated:
            mask = self._like(leaf)
        # Each of these is null, and so not true, for a row without a value.
        values = self._may_have_values()
        return values if mask is True else mask if mask is False else pc.and_(mask, values)

    def _may_have_nulls(self) -> Array:
        # Also right where bounds are not tight: then 0 still means none (spec 9.5).
        return pc.fill_null(pc.not_equal(self.statistics.null_count, 0), True)

    def _may_have_values(self) -> Array:
        return pc.fill_null(pc.not_equal(self.statistics.null_count, self.num_records), True)

    def _comparison(self, leaf: Comparison) -> Mask:
        if not isinstance(leaf.right, Literal) or leaf.right.value is None:
            return True
        data_type = self.statistics.column.data_type
        answer = bind(leaf.op, leaf.right, data_type, session_zone(self.zone))
        if answer is None or isinstance(answer, bool):
            return answer is not False
        return self._may_compare(answer.op, answer.value)

    def _may_compare(self, op: ComparisonOp, value: BoundValue) -> Mask:
        below, above = _slack(value, self.statistics.column)
        if self._may_hide_nan(op, value):
            return True
        if op == "=":
            return pc.and_(self._low("<=", above), self._high(">=", below))
        if op == "<>":
            return pc.or_(self._low("<", above), self._high(">", below))
        if op in ("<", "<="):
            return self._low(op, above)
        return self._high(op, below)

    def _may_hide_nan(self, op: ComparisonOp, value: BoundValue) -> bool:
        """Whether a NaN that the maximum does not show would pass `column op value`."""
        if self.trust_float_maximum or self.statistics.column.data_type not in _FLOATS:
            return False
        is_nan = value != value
        return op in ("<>", ">", ">=") or (op == "=" and is_nan)

    def _low(self, op: ComparisonOp, value: BoundValue) -> Array:
        column = TypedArray(self.statistics.low, self.statistics.column.data_type)
        return pc.fill_null(compare(op, column, value), True)

    def _high(self, op: ComparisonOp, value: BoundValue) -> Array:
        data_type = self.statistics.column.data_type
        values = self.statistics.high
        if data_type in _TIMES:
            # Bounds are cut down to milliseconds.
            values = pc.add(values, _MILLISECOND)
        return pc.fill_null(compare(op, TypedArray(values, data_type), value), True)

    def _in(self, leaf: In) -> Mask:
        values = self._listed(leaf)
        if values is None or len(values) > _MAX_LISTED:
            return True if values is None else self._in_range(values)
        mask: Mask = False
        for value in values:
            one = self._may_compare("=", value)
            if one is True:
                return True
            mask = one if mask is False else pc.or_(mask, one)
        return mask

    def _in_range(self, values: tuple[BoundValue, ...]) -> Mask:
        if self.statistics.column.data_type in _FLOATS:
            return True
        low: Any = min(values)
        high: Any = max(values)
        below, above = (
            _slack(low, self.statistics.column)[0],
            _slack(high, self.statistics.column)[1],
        )
        return pc.and_(self._low("<=", above), self._high(">=", below))

    def _not_in(self, leaf: In) -> Mask:
        values = self._listed(leaf)
        if values is None or len(values) > _MAX_LISTED:
            return True
        mask: Mask = True
        for value in values:
            one = self._may_compare("<>", value)
            if one is not True:
                mask = one if mask is True else pc.and_(mask, one)
        return mask

    def _listed(self, leaf: In) -> tuple[BoundValue, ...] | None:
        listed = tuple(value for value in leaf.values if value.value is not None)
        return bind_values(listed, self.statistics.column.data_type, session_zone(self.zone))

    def _like(self, leaf: Like) -> Mask:
        if not leaf.parts:
            return self._may_compare("=", "") if self._is_text() else True
        is_wild, prefix = leaf.parts[0]
        if is_wild or not self._is_text():
            return True
        return self._starts_with(prefix) if len(leaf.parts) > 1 else self._may_compare("=", prefix)

    def _starts_with(self, prefix: str) -> Mask:
        if not prefix or not self._is_text():
            return True
        length = len(prefix)
        low = pc.utf8_slice_codeunits(self.statistics.low, start=0, stop=length)
        high = pc.utf8_slice_codeunits(self.statistics.high, start=0, stop=length)
        return pc.and_(
            pc.fill_null(pc.less_equal(low, prefix), True),
            pc.fill_null(pc.greater_equal(high, prefix), True),
        )

    def _is_text(self) -> bool:
        return self.statistics.column.data_type == PrimitiveType("string")


def _slack(value: BoundValue, column: ResolvedColumn) -> tuple[BoundValue, BoundValue]:
    """The constant moved a trifle down and up where bounds may have been rounded.

    Some writers put decimals into the statistics as doubles, which hold 15 digits.
    """
    data_type = column.data_type
    if not isinstance(data_type, DecimalType) or data_type.precision <= _DOUBLE_DIGITS:
        return value, value
    assert isinstance(value, Decimal)
    with localcontext() as context:
        context.prec = 76
        margin = abs(value) * Decimal(10) ** (1 - _DOUBLE_DIGITS)
        step = Decimal(1).scaleb(-data_type.scale)
        limit = Decimal(10) ** (data_type.precision - data_type.scale) - step
        below = (value - margin).quantize(step, rounding=ROUND_FLOOR)
        above = (value + margin).quantize(step, rounding=ROUND_CEILING)
        return max(below, -limit), min(above, limit)
