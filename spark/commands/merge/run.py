"""MERGE, by vectors or by copy on write (spec 10.15, profiles MG and MGi of 2.13).

1. Spark resolves every expression; no row is read.
2. The source's rows are stored on the executors, each with a number.
3. One pass over them counts them, and collects the values of the columns that must be equal. With
   these, the log tells which files can hold rows that match; they are recorded as read.
4. One pass joins their rows with the source, and finds which rows change, what happens to each,
   their new values, and rows that change more than once; see `changes`.
5. Where the table has deletion vectors, those rows are marked in vectors. Elsewhere the other rows
   of their files are read by their places, and written again. The new values, and rows of the
   source that match none, are written beside them.

Each condition is asked in one pass, because a subquery in it may answer otherwise the next time.

If the MERGE can only add rows, steps 4 and 5 are one: the source's rows that match none of the
table's are added, and no file is removed.

Where the work is small, the driver does steps 2 to 5 without a Spark job, see `local_merge`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import and_

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from optimist.core.commands.command import Changes
from optimist.core.commands.merge_clauses import ensure_order
from optimist.core.commands.rewrite import Rewrite
from optimist.core.commands.row_changes import MergedRows, changes_of_merge
from optimist.core.commands.row_counts import RowCounts
from optimist.core.commands.row_rewrite import marked_or_removed, marks_rows
from optimist.core.commands.stopwatch import Stopwatch
from optimist.core.commands.uncommitted_files import UncommittedFiles
from optimist.core.commands.written_files import WrittenFiles
from optimist.core.data.statistics.stats_text import num_live_rows_in
from optimist.core.predicates import Predicate
from optimist.core.table.table_handle import TableHandle
from optimist.core.transaction.optimistic import OptimisticTransaction
from optimist.spark.commands.checks import checked_rows
from optimist.spark.commands.dml.own_reads import own_versions, transaction_from
from optimist.spark.commands.dml.row_rewrite import run
from optimist.spark.commands.dml.target import Target
from optimist.spark.commands.merge.changes import MergeChanges, MergeSearch
from optimist.spark.commands.merge.columns import MergeColumns
from optimist.spark.commands.merge.evolution import evolve_schema
from optimist.spark.commands.merge.local_merge import merge_here
from optimist.spark.commands.merge.names import Names
from optimist.spark.commands.merge.outcome import counts_frame
from optimist.spark.commands.merge.request import MergeRequest
from optimist.spark.commands.merge.resolution import ResolvedMerge
from optimist.spark.commands.merge.source import SourceFacts, facts_of, repeatable
from optimist.spark.commands.merge.stages import Stages
from optimist.spark.commands.merge.written_rows import WrittenRows
from optimist.spark.conditions.bound_condition import has_subquery, rebound
from optimist.spark.conditions.join_condition import read_join
from optimist.spark.conditions.join_reading import JoinReading
from optimist.spark.planes.sources import of_fixed_versions
from optimist.spark.rows.changed_rows import with_changes
from optimist.spark.rows.identity_values import with_identity_values
from optimist.spark.rows.row_shape import column_of
from optimist.spark.rows.touched_files import aliased
from optimist.spark.session.jvm import Jvm
from optimist.spark.session.pyspark_versions import is_connect
from optimist.spark.spark_schema import from_spark_schema

__all__ = ["OWN_ALIAS", "merge"]

OWN_ALIAS = "__optimist_target"
"""The alias of the table's rows, where the caller has given them none."""


def merge(spark: SparkSession, log: TableHandle, request: MergeRequest, alias: str) -> DataFrame:
    """Run a MERGE.

    Args:
        spark: The session.
        log: The table.
        request: The MERGE.
        alias: The alias of the table's rows.

    Returns:
        One row with the numbers of changed rows, see `DeltaMergeBuilder.execute`.
    """
    ensure_order(request.clauses)
    evolves_schema = request.evolves_schema or log.options.schema_auto_merge_enabled
    source = of_fixed_versions(request.source)
    request = replace(request, source=source, evolves_schema=evolves_schema)

    def work(txn: OptimisticTransaction, pending: UncommittedFiles) -> Changes:
        target = Target.of(spark, log, txn, alias)
        if evolves_schema:
            evolve_schema(txn, from_spark_schema(source.schema), request.clauses, alias)
        watch = target.stopwatch()
        command = _Merge.of(target, request, watch)
        merge = command.stages.merge
        if any(own_versions(log, txn, rows) for rows in merge.reads):
            # What becomes of the table is made of its own rows: any change of it is a conflict.
            txn.read_whole_table()
        done = merge_here(target, command.rows, request, merge, pending, watch)
        done = done or command.run(pending)
        return changes_of_merge(done, merge, merge.on.text, txn.table, watch)

    def begin() -> OptimisticTransaction:
        txn = transaction_from(log, source)
        if not _asks_subqueries(spark, request):
            return txn
        if evolves_schema:
            evolve_schema(txn, from_spark_schema(source.schema), request.clauses, alias)
        target = Target.of(spark, log, txn, alias)
        merge = ResolvedMerge.of(target, _own_columns(target, request), request)
        return transaction_from(log, *merge.reads)

    return counts_frame(spark, run(spark, log, work, begin))


def _asks_subqueries(spark: SparkSession, request: MergeRequest) -> bool:
    """Whether a condition holds a subquery, which may read the table at a version of its own."""
    if is_connect(spark):
        return False
    jvm = Jvm.of(spark)
    given = (sf.expr(item) if isinstance(item, str) else item for item in request.conditions)
    return any(has_subquery(jvm, jvm.tree(item)) for item in given)


def _own_columns(target: Target, request: MergeRequest) -> DataFrame:
    """The table's columns for Spark to resolve expressions, which may be bound to some already."""
    rows = target.columns()
    if request.own_attributes is None:
        return rows
    return aliased(rebound(rows, request.own_attributes), target.alias)


@dataclass(frozen=True, slots=True)
class _Merge:
    """One MERGE, its expressions resolved."""

    target: Target
    request: MergeRequest
    rows: DataFrame
    reading: JoinReading
    stages: Stages
    watch: Stopwatch

    @classmethod
    def of(cls, target: Target, request: MergeRequest, watch: Stopwatch) -> _Merge:
        rows, alias = _own_columns(target, request), target.alias or OWN_ALIAS
        merge = ResolvedMerge.of(target, rows, request)
        snapshot = target.snapshot
        reading = JoinReading()
        if not merge.of_kind("NOT MATCHED BY SOURCE"):
            reading = read_join(
                rows,
                request.source,
                merge.on.readable,
                schema=snapshot.schema,
                partition_columns=snapshot.partition_columns,
                alias=alias,
            )
        names = Names.beside(
            [*snapshot.schema.names, *merge.sql.schema.names, *request.source.columns]
        )
        columns = MergeColumns(
            merge, snapshot.schema, names, target.carried, target.writer.records_changes
        )
        return cls(target, request, rows, reading, Stages(columns, alias), watch)

    def run(self, pending: UncommittedFiles) -> MergedRows:
        """Find the matches, write the rows, and tell what was done."""
        with repeatable(self.request.source, self.stages.number) as other:
            self.watch.lap("materializeSourceTimeMs")
            facts = facts_of(other, self.reading, self.target, self.rows)
            candidates = self.target.txn.filter_files(self._predicate(facts))
            if self.stages.merge.only_inserts:
                rewrite, counts = self._insert(other, candidates, pending)
            else:
                search = MergeSearch(self.target, self.stages, self._writes_changed_rows)
                with search.run(candidates, other, facts.num_rows) as found:
                    if not self.stages.merge.needs_unchanged_rows:
                        touched = found.touched
                        self.target.txn.need_only(touched.files, touched.rows)
                    rewrite, counts = self._change(other, found, pending)
        return MergedRows(rewrite, counts, facts.num_rows)

    @property
    def _is_by_vectors(self) -> bool:
        """Whether changed rows are marked in vectors, and no other row is written."""
        return marks_rows(self.target.txn, "MERGE")

    @property
    def _writes_changed_rows(self) -> bool:
        """Whether rows that change are written: with new values, or to be recorded as deleted."""
        if self.stages.merge.has_updates:
            return True
        return self.stages.columns.records_changes and not self._is_by_vectors

    def _predicate(self, facts: SourceFacts) -> Predicate | None:
        """A predicate that is true for the table's rows that can match; None if all are needed."""
        if self.stages.merge.of_kind("NOT MATCHED BY SOURCE"):
            return None
        parts = [part for part in (self.reading.own, facts.predicate) if part != Predicate.TRUE]
        return reduce(and_, parts) if parts else None

    def _insert(
        self, other: DataFrame, candidates: pa.Table, pending: UncommittedFiles
    ) -> tuple[Rewrite, RowCounts]:
        """Add the rows of the source that match none; no row of the table changes."""
        if candidates.num_rows:
            rows = self.target.plane.scan_files(self.target.snapshot, candidates)
            own = self.stages.merge.with_own_columns(rows, self.stages.alias)
            other = self._unmatched(other, own)
        self.watch.lap("scanTimeMs")
        written = self._write([self.stages.inserted(other)], pending)
        self.watch.lap("rewriteTimeMs")
        return Rewrite((), written, 0), RowCounts(inserted=written.num_rows)

    def _unmatched(self, other: DataFrame, own: DataFrame) -> DataFrame:
        """The rows of the source that match none of some rows of the table.

        Such a join evaluates keys for all rows on its left, so rows that can't match are kept out
        of it.
        """
        on, can_match = self.stages.merge.on.column, self.reading.other
        if self.stages.merge.on.bound is not None:
            return self.stages.unmatched(other, self.stages.matching(own, other))
        if can_match is None:
            return other.join(own, on, "left_anti")
        never = other.where(~sf.coalesce(can_match, sf.lit(False)))
        return never.unionAll(other.where(can_match).join(own, on, "left_anti"))

    def _change(
        self, other: DataFrame, found: MergeChanges, pending: UncommittedFiles
    ) -> tuple[Rewrite, RowCounts]:
        """Write the rows that change and those that are new; mark or remove the old ones."""
        self.watch.lap("scanTimeMs")
        merge, touched, counts = self.stages.merge, found.touched, found.counts
        chosen = touched.choose_rows(self.target.txn.table) if self._is_by_vectors else None
        parts = self._rows_instead(found)
        is_rewrite = bool(parts)
        if merge.has_inserts:
            alone = other if found.rows is None else self.stages.unmatched(other, found.rows)
            parts.append(self.stages.inserted(alone))
        written = WrittenFiles()
        if parts:
            written = self._write(parts, pending, is_rewrite=is_rewrite)
        marks = marked_or_removed(self.target.txn, touched, chosen, pending)
        copied = 0 if self._is_by_vectors else self._num_copied(found, written)
        inserted = written.num_rows - counts.all_updated - copied
        self.watch.lap("rewriteTimeMs")
        rewrite = Rewrite(marks.emptied, written, None, marks.marked)
        return rewrite, replace(counts, copied=copied, inserted=inserted)

    def _rows_instead(self, found: MergeChanges) -> list[DataFrame]:
        """The rows that take the place of those of the touched files.

        Those that change were computed in the pass that found them; the others are read by their
        places. So no condition is asked again.
        """
        touched, stages = found.touched, self.stages
        if found.rows is None or not touched.files.num_rows:
            return []
        if self._is_by_vectors and not found.counts.all_updated:
            return []
        self.target.ensure_rewritable(touched.files, "MERGE")
        parts = [stages.changed(found.rows)] if self._writes_changed_rows else []
        if not self._is_by_vectors:
            others = touched.others(self.target.txn.table)
            rows = self.target.plane.scan_files(self.target.snapshot, others, with_row_ids=True)
            parts.append(stages.kept(aliased(rows, stages.alias)))
        return parts

    def _num_copied(self, found: MergeChanges, written: WrittenFiles) -> int:
        """How many rows of the touched files were written as they were."""
        counts = found.counts
        if not self.stages.merge.has_inserts:
            return written.num_rows - counts.all_updated
        num_rows = num_live_rows_in(found.touched.adds)
        if num_rows is None:
            plane, snapshot = self.target.plane, self.target.snapshot
            num_rows = plane.scan_files(snapshot, found.touched.files).count()
        return num_rows - counts.all_updated - counts.all_deleted

    def _write(
        self, parts: Sequence[DataFrame], pending: UncommittedFiles, *, is_rewrite: bool = False
    ) -> WrittenFiles:
        """Write rows with their clauses and values.

        Args:
            parts: The rows.
            pending: Looks after the new files.
            is_rewrite: There are rows among them that the table had before, so where the table asks
                for it their ids are written, and changes are recorded.
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
        return writer.write(rows, pending, has_changes=has_changes, identities=missing)
