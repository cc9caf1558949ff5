"""The files that a predicate needs, by partition values and statistics (spec 2.8, 9.4, 9.5).

The pruner leaves a file out only if certainly no row of it makes the predicate true. Anything
unknown (an opaque part, a missing statistic, a doubtful cast) keeps the file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.data.partition_values import partition_column_of
from optimist.core.errors.short_repr import short_repr
from optimist.core.log.file_table import FILES_SCHEMA
from optimist.core.predicates.casts import without_cast
from optimist.core.predicates.columns import TypedArray
from optimist.core.predicates.evaluation import evaluate_leaf
from optimist.core.predicates.normal_form import (
    Mask,
    combine_masks,
    conjunction,
    full_mask,
    map_leaves,
    positive_form,
)
from optimist.core.predicates.resolution import ResolvedColumn, SplitPredicate, resolve_column
from optimist.core.predicates.tree import (
    CastComparison,
    Column,
    Comparison,
    In,
    IsNull,
    Like,
    Not,
    Predicate,
    StartsWith,
)
from optimist.core.schema.types import StructType
from optimist.core.skipping.column_skipping import ColumnSkipper
from optimist.core.skipping.function_ranges import range_implied_by
from optimist.core.skipping.generated_partitions import GeneratedPartitions
from optimist.core.skipping.live_rows import live_rows
from optimist.core.skipping.statistics import FileStatistics
from optimist.core.values.exact_sums import exact_sum
from optimist.core.values.field_types import LARGEST_LONG
from optimist.core.values.time_zones import session_zone

__all__ = ["CertainFiles", "FilePruner", "RowCount", "keep_mask", "may_match", "prune"]


def keep_mask(
    conjuncts: Sequence[Predicate], files: pa.Table, schema: StructType
) -> pa.BooleanArray:
    """Return for each file whether statistics allow a row for which all conjuncts are true."""
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
    """Return the files that may hold a row for which the predicate is true, in order.

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
    zone: str = "UTC",
) -> pa.BooleanArray:
    """Return for each file of a concurrent commit whether this read may have missed a row of it.

    Without statistics only the partition conjuncts count, as in Delta (spec 2.8).
    """
    pruner = FilePruner(files, schema, partition_columns, zone=zone)
    predicate = conjunction((*split.partition, *split.data))
    return pruner.keep_mask(predicate, use_statistics=use_statistics)


@dataclass(frozen=True, slots=True)
class RowCount:
    """An answer to `count(*)` from the log alone, for the files that it decides.

    Attributes:
        rows: The number of matching rows in the files that the log alone decides.
        undecided: The files whose rows must be read, as rows of the files table.
    """

    rows: int
    undecided: pa.Table

    __repr__ = short_repr

    @property
    def total(self) -> int | None:
        """The count if all files are decided, else None."""
        return None if self.undecided.num_rows else self.rows


@dataclass(frozen=True, slots=True)
class CertainFiles:
    """Files all of whose rows match, and the number of rows of each."""

    files: pa.Table
    rows: pa.ChunkedArray

    @classmethod
    def joined(cls, parts: Sequence[CertainFiles]) -> CertainFiles:
        """Return the files of all parts."""
        files = pa.concat_tables([FILES_SCHEMA.empty_table(), *(part.files for part in parts)])
        chunks = [chunk for part in parts for chunk in part.rows.chunks]
        return cls(files, pa.chunked_array(chunks, pa.int64()))

    @property
    def num_rows(self) -> int:
        """The number of rows of all of them."""
        return exact_sum(self.rows)

    def first(self, limit: int) -> pa.Table | None:
        """Return as few files, in order, as hold `limit` rows, or None if all hold fewer."""
        if self.num_rows < limit or limit > LARGEST_LONG // max(1, len(self.rows)):
            return None
        rows = pc.min_element_wise(self.rows, limit)  # so that their sums stay within 64 bits
        before = pc.subtract(pc.cumulative_sum(rows), rows)
        return self.files.filter(pc.less(before, limit))


class FilePruner:
    """A pruner of one files table for any number of predicates, which keeps parsed values.

    Args:
        files: The files table, with `partitionValues` and `stats`.
        schema: The table's schema, which the predicates refer to.
        partition_columns: The logical names of the partition columns.
        zone: The session's time zone.
        statistics: The statistics of `files`, if the caller keeps them.
        trust_float_maximum: Whether upper bounds of float columns count as proof. Some writers
            ignore NaN, which is greater than any bound that they write. If no such writer has
            written to the table, this skips more.
    """

    def __init__(
        self,
        files: pa.Table,
        schema: StructType,
        partition_columns: Sequence[str],
        *,
        zone: str = "UTC",
        statistics: FileStatistics | None = None,
        trust_float_maximum: bool = False,
    ) -> None:
        self.files = files
        self.schema = schema
        self.statistics = statistics or FileStatistics(files, schema)
        self._zone = zone
        self._trust_float_maximum = trust_float_maximum
        self._generated = GeneratedPartitions(schema, partition_columns)
        self._partition_names = {name.lower() for name in partition_columns}
        self._rows: pa.Array | None = None
        self._partitions: dict[str, TypedArray] = {}

    def prune(self, predicate: Predicate, *, use_statistics: bool = True) -> pa.Table:
        """Return the files that may hold a row for which the predicate is true, in order."""
        mask = self.keep_mask(predicate, use_statistics=use_statistics)
        return self.files if pc.all(mask, min_count=0).as_py() else self.files.filter(mask)

    def keep_mask(self, predicate: Predicate, *, use_statistics: bool = True) -> pa.BooleanArray:
        """Return for each file whether it may hold a row for which the predicate is true."""
        positive = self.prepared(predicate)
        mask = combine_masks(positive, self._answer_by_partition)
        keep = full_mask(mask, self.files.num_rows)
        needed = self.data_paths(positive) if use_statistics else []
        if not needed or not pc.any(keep, min_count=0).as_py():
            return keep
        if self._is_worth_narrowing(keep, needed):
            return self._keep_among(keep, positive)
        self.statistics.load(needed)
        return full_mask(combine_masks(positive, self._answer_leaf), self.files.num_rows)

    def count(self, predicate: Predicate) -> RowCount:
        """Count the rows that make the predicate true, as far as the log knows (spec 9.5)."""
        keep = self.keep_mask(predicate)
        certain = pc.and_(keep, self._certain_mask(predicate))
        rows = exact_sum(self._live_rows().filter(certain))
        if rows > LARGEST_LONG:  # such a claim is false, so read the files
            return RowCount(0, self.files.filter(keep))
        return RowCount(rows, self.files.filter(pc.and_not(keep, certain)))

    def enough(self, predicate: Predicate, limit: int) -> pa.Table:
        """Return files that surely hold `limit` matches, or all files that `prune` keeps."""
        kept = self.prune(predicate)
        found = self.certain(predicate).first(limit)
        return kept if found is None else found

    def certain(self, predicate: Predicate) -> CertainFiles:
        """Return the files whose rows all match."""
        certain = self._certain_mask(predicate)
        return CertainFiles(
            self.files.filter(certain), pa.chunked_array([self._live_rows().filter(certain)])
        )

    def _certain_mask(self, predicate: Predicate) -> pa.BooleanArray:
        """Return for each file whether all of its rows match and their number is known."""
        plain = self._remove_casts(predicate)
        self.statistics.load(self.data_paths(plain))
        sure = full_mask(combine_masks(plain, self._is_sure), self.files.num_rows)
        return pc.and_(sure, pc.is_valid(self._live_rows()))

    def _live_rows(self) -> pa.Array:
        """Return the rows of each file without the deleted ones, null where unknown."""
        if self._rows is None:
            physical = self.statistics.num_records.combine_chunks()
            self._rows = live_rows(self.files, physical)
        return self._rows

    def prepared(self, predicate: Predicate) -> Predicate:
        """Return the positive form without casts, with the conditions that follow from it."""
        return map_leaves(
            map_leaves(self._remove_casts(predicate), self._add_range), self._add_implied
        )

    def _add_range(self, leaf: Predicate) -> Predicate:
        implied = range_implied_by(leaf, self.schema)
        return leaf if implied == Predicate.TRUE else leaf & implied

    def _remove_casts(self, predicate: Predicate) -> Predicate:
        return map_leaves(positive_form(predicate), self._without_cast)

    def _without_cast(self, leaf: Predicate) -> Predicate:
        column = self._resolve(leaf.column.path) if isinstance(leaf, CastComparison) else None
        if column is None or not isinstance(leaf, CastComparison):
            return leaf
        plain = without_cast(leaf, column.data_type, session_zone(self._zone))
        return leaf if plain is None else plain

    def _add_implied(self, leaf: Predicate) -> Predicate:
        zone = session_zone(self._zone)
        implied = self._generated.implied_by(leaf, self.schema, zone)
        return leaf if implied == Predicate.TRUE else leaf & implied

    def _is_worth_narrowing(self, keep: pa.BooleanArray, needed: list[tuple[str, ...]]) -> bool:
        """Return whether so few files are left that only theirs should be parsed."""
        return keep.true_count < len(keep) // 4 and not self.statistics.is_loaded(needed)

    def _keep_among(self, keep: pa.BooleanArray, predicate: Predicate) -> pa.BooleanArray:
        narrowed = FilePruner(
            self.files.filter(keep),
            self.schema,
            tuple(self._partition_names),
            zone=self._zone,
            trust_float_maximum=self._trust_float_maximum,
        )
        narrowed.statistics.load(narrowed.data_paths(predicate))
        answer = full_mask(combine_masks(predicate, narrowed._answer_leaf), narrowed.files.num_rows)
        return pc.replace_with_mask(keep, keep, answer)

    def data_paths(self, predicate: Predicate) -> list[tuple[str, ...]]:
        """Return the columns of a prepared predicate whose statistics decide."""
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
        field = None if resolved is None else self.schema.find(resolved.path[0])
        if resolved is None or field is None or not self._is_partition(resolved):
            return None
        name = resolved.path[0]
        if name not in self._partitions:
            values = partition_column_of(self.files, field, zone=self._zone)
            self._partitions[name] = TypedArray(values, resolved.data_type)
        return self._partitions[name]

    def _answer_by_statistics(self, leaf: Predicate) -> Mask:
        inner = leaf.child if isinstance(leaf, Not) else leaf
        skipper = self._skipper(inner, self._trust_float_maximum)
        return True if skipper is None else skipper.answer(inner, is_negated=inner is not leaf)

    def _skipper(self, leaf: Predicate, trust_float_maximum: bool) -> ColumnSkipper | None:
        if not isinstance(leaf, (Comparison, In, IsNull, StartsWith, Like)):
            return None
        column = self._resolve(leaf.left.path if isinstance(leaf, Comparison) else leaf.column.path)
        found = None if column is None else self.statistics.column(column.path)
        if found is None:
            return None
        return ColumnSkipper(found, self.statistics.num_records, self._zone, trust_float_maximum)

    def _is_sure(self, leaf: Predicate) -> Mask:
        """Return for each file whether the leaf is true for all of its rows."""
        columns = [self._resolve(path) for path in leaf.columns()]
        if any(column is not None and self._is_partition(column) for column in columns):
            answer = evaluate_leaf(leaf, self._partition_values, session_zone(self._zone))
            return False if answer is None else pc.fill_null(answer, False)
        opposite = positive_form(leaf, negate=True)
        inner = opposite.child if isinstance(opposite, Not) else opposite
        skipper = self._skipper(inner, False)
        if skipper is None or (isinstance(inner, In) and _has_null(inner)):
            # With a null in the list, other values make the leaf null: neither true nor false.
            return False
        may_fail = skipper.answer(inner, is_negated=inner is not opposite)
        if isinstance(may_fail, bool):
            return False
        sure = pc.invert(may_fail)
        return sure if isinstance(inner, IsNull) else pc.and_(sure, skipper.has_no_nulls())


def _has_null(leaf: In) -> bool:
    return any(value.value is None for value in leaf.values)
