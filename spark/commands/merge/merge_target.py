"""The rows of a MERGE as Spark finds and writes them; see `run` for the steps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from operator import and_

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from optimist.core.commands.marked_files import ChosenRows
from optimist.core.commands.merge.run import MergedRows, merge_rows
from optimist.core.commands.row_counts import RowCounts
from optimist.core.commands.row_rewrite import marks_rows
from optimist.core.commands.stopwatch import Stopwatch
from optimist.core.commands.touched_files import TouchedFiles
from optimist.core.commands.uncommitted_files import UncommittedFiles
from optimist.core.commands.written_files import WrittenFiles
from optimist.core.data.statistics.stats_text import num_live_rows_in
from optimist.core.predicates import Predicate
from optimist.core.transaction.optimistic import OptimisticTransaction
from optimist.spark.commands.checks import checked_rows
from optimist.spark.commands.dml.target import TARGET_ALIAS, Target
from optimist.spark.commands.merge.changes import MergeSearch, SparkRowsToMerge
from optimist.spark.commands.merge.columns import MergeColumns
from optimist.spark.commands.merge.names import Names
from optimist.spark.commands.merge.resolution import SparkResolvedMerge
from optimist.spark.commands.merge.source import SourceFacts, facts_of, repeatable
from optimist.spark.commands.merge.stages import Stages
from optimist.spark.commands.merge.written_rows import WrittenRows
from optimist.spark.conditions.join_condition import read_join
from optimist.spark.conditions.join_reading import JoinReading
from optimist.spark.rows.changed_rows import with_changes
from optimist.spark.rows.identity_values import with_identity_values
from optimist.spark.rows.row_shape import column_of
from optimist.spark.rows.touched_files import aliased

__all__ = ["merge_on_spark"]


def merge_on_spark(
    target: Target, merge: SparkResolvedMerge, pending: UncommittedFiles, watch: Stopwatch
) -> MergedRows:
    """Run a MERGE by Spark jobs, up to its commit.

    Args:
        target: The table.
        merge: The MERGE.
        pending: Looks after what is written.
        watch: Told how long each part took.
    """
    sides, schema, alias = merge.sides, target.snapshot.schema, target.alias or TARGET_ALIAS
    reading = JoinReading()
    if not merge.searches_all_rows:
        reading = read_join(
            sides.target,
            sides.source,
            merge.join.readable,
            schema=schema,
            partition_columns=target.snapshot.partition_columns,
            alias=alias,
        )
    names = Names.beside([*schema.names, *merge.sql.schema.names, *sides.source.columns])
    columns = MergeColumns(merge, schema, names, target.carried, target.writer.records_changes)
    stages = Stages(columns, alias)
    with repeatable(sides.source, stages.number) as source:
        watch.lap("materializeSourceTimeMs")
        facts = facts_of(source, reading, target, sides.target)
        wanted = None if merge.searches_all_rows else _wanted_rows(reading, facts)
        rows = _SparkMergeTarget(target, stages, source, facts.num_rows, reading.source, pending)
        return merge_rows(rows, wanted, pending, watch)


def _wanted_rows(reading: JoinReading, facts: SourceFacts) -> Predicate | None:
    """Return a predicate that is true for every row that can match, or None for all rows."""
    parts = [part for part in (reading.target, facts.predicate) if part != Predicate.TRUE]
    return reduce(and_, parts) if parts else None


@dataclass(frozen=True, slots=True)
class _SparkMergeTarget:
    """The rows of one MERGE, as a `MergeTarget`.

    Attributes:
        target: The table.
        stages: The projections.
        source: The source's rows, stored and with their numbers.
        num_source_rows: How many rows the source has.
        can_match: What a row of the source needs to match any row; None for nothing.
        pending: Looks after what is written.
    """

    target: Target
    stages: Stages
    source: DataFrame
    num_source_rows: int
    can_match: Column | None
    pending: UncommittedFiles

    @property
    def txn(self) -> OptimisticTransaction:
        return self.target.txn

    @property
    def _merge(self) -> SparkResolvedMerge:
        return self.stages.merge

    @property
    def _writes_changed_rows(self) -> bool:
        """Whether rows that change are written: with new values, or to be recorded as deleted."""
        if self._merge.has_updates:
            return True
        return self.stages.columns.records_changes and not marks_rows(self.txn, "MERGE")

    @contextmanager
    def search(self, candidates: pa.Table) -> Iterator[SparkRowsToMerge]:
        if self._merge.only_inserts:
            nothing = TouchedFiles(candidates.slice(0, 0), 0, ())
            unmatched = self._unmatched(candidates)
            yield SparkRowsToMerge(nothing, RowCounts(), None, None, unmatched)
            return
        search = MergeSearch(self.target, self.stages, self._writes_changed_rows)
        with search.run(candidates, self.source, self.num_source_rows) as found:
            yield found

    def _unmatched(self, candidates: pa.Table) -> DataFrame:
        """Return the rows of the source that match no row of some files.

        Such a join evaluates keys for all rows on its left, so rows that can't match are kept out
        of it.
        """
        source, join, can_match = self.source, self._merge.join, self.can_match
        if not candidates.num_rows:
            return source
        rows = self.target.plane.scan_files(self.target.snapshot, candidates)
        target = self._merge.with_target_columns(rows, self.stages.alias)
        if join.is_asked_once:
            return self.stages.unmatched(source, self.stages.matching(target, source))
        if can_match is None:
            return source.join(target, join.column, "left_anti")
        never = source.where(~sf.coalesce(can_match, sf.lit(False)))
        return never.unionAll(source.where(can_match).join(target, join.column, "left_anti"))

    def write(
        self, found: SparkRowsToMerge, chosen: Sequence[ChosenRows] | None
    ) -> tuple[WrittenFiles, int]:
        parts = self._rows_instead(found, chosen)
        is_rewrite = bool(parts)
        if found.unmatched is not None:
            parts.append(self.stages.inserted(found.unmatched))
        written = WrittenFiles()
        if parts:
            written = self._write_rows(parts, is_rewrite=is_rewrite)
        num_changed = found.counts.all_updated
        if chosen is None:
            num_changed += self._num_copied(found, written)
        return written, written.num_rows - num_changed

    def _rows_instead(
        self, found: SparkRowsToMerge, chosen: Sequence[ChosenRows] | None
    ) -> list[DataFrame]:
        """Return the rows that take the place of those of the touched files.

        The pass that found the changed rows has computed them; the others are read by their
        positions. So no condition is evaluated again.
        """
        touched, target, stages = found.touched, self.target, self.stages
        if found.changes is None or not touched.files.num_rows:
            return []
        if chosen is not None and not found.counts.all_updated:
            return []
        target.ensure_rewritable(touched.files, "MERGE")
        parts = [stages.changed(found.changes)] if self._writes_changed_rows else []
        if chosen is None:
            others = touched.others(self.txn.table)
            rows = target.plane.scan_files(target.snapshot, others, with_row_ids=True)
            parts.append(stages.kept(aliased(rows, stages.alias)))
        return parts

    def _num_copied(self, found: SparkRowsToMerge, written: WrittenFiles) -> int:
        """Return how many rows of the touched files were written as they were."""
        counts = found.counts
        if not self._merge.has_inserts:
            return written.num_rows - counts.all_updated
        num_rows = num_live_rows_in(found.touched.adds)
        if num_rows is None:
            plane, snapshot = self.target.plane, self.target.snapshot
            num_rows = plane.scan_files(snapshot, found.touched.files).count()
        return num_rows - counts.all_updated - counts.all_deleted

    def _write_rows(self, parts: Sequence[DataFrame], *, is_rewrite: bool) -> WrittenFiles:
        """Write rows with their clauses and values.

        Args:
            parts: The rows.
            is_rewrite: Whether some of these rows were in the table before. Then their ids are
                written where the table tracks rows, and changes are recorded.
        """
        columns, writer = self.stages.columns, self.target.writer
        made = WrittenRows(columns)
        has_changes = is_rewrite and columns.records_changes
        rows = made.finished(*parts, carries=is_rewrite, has_changes=has_changes)
        partitioning = writer.txn.metadata.partition_columns
        missing = made.missing
        if partitioning and not writer.brings_together(missing):
            # A join leaves rows of every partition in every task.
            rows = rows.repartition(*map(column_of, partitioning))
        if missing:
            rows = with_identity_values(rows, columns.sql, missing).drop(*missing.values())
        exempt = made.is_deleted if has_changes else None
        rows = checked_rows(rows, columns.sql, writer.txn.metadata, exempt=exempt)
        if has_changes:
            before = columns.before_names
            told = {columns.names.clause, *before.values()}
            names = [name for name in rows.columns if name not in told]
            rows = with_changes(rows, names, made.kinds, before)
        return writer.write(rows, self.pending, has_changes=has_changes, identities=missing)
