"""MERGE by copy on write (spec 10.15, profiles MG and MGi of 2.13).

1. Spark resolves every expression; no row is read.
2. If its rows could differ from pass to pass, the source is stored on the executors.
3. One pass over the source counts its rows, and collects the values of what the condition asks to
   be equal. With them, the log tells which files can hold rows that match; these are recorded as
   read.
4. One pass joins their rows with the source and finds the files to be touched, what happens to each
   row, and rows that match more than once.
5. One pass joins the rows of the touched files with the source, and writes them again, changed,
   together with the new rows.

Where nothing but new rows can come of it, steps 4 and 5 are one: the source's rows that match none
of the table's are added, and no file is removed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from operator import and_

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from optimist.core.commands.command import Changes, Stopwatch, run_command
from optimist.core.commands.rewrite import Rewrite
from optimist.core.commands.uncommitted_files import UncommittedFiles
from optimist.core.commands.written_files import WrittenFiles
from optimist.core.data.stats_text import num_live_rows_in
from optimist.core.errors import UsageError
from optimist.core.log.file_table import add_files
from optimist.core.predicates import Predicate
from optimist.core.table.delta_log import DeltaLog
from optimist.core.transaction.optimistic import OptimisticTransaction
from optimist.spark.commands.checks import checked_rows
from optimist.spark.commands.merge.builder import MergeRequest
from optimist.spark.commands.merge.clauses import ensure_order
from optimist.spark.commands.merge.evolution import evolve_schema
from optimist.spark.commands.merge.outcome import MergeCounts, Outcome, counts_frame
from optimist.spark.commands.merge.resolution import ResolvedMerge
from optimist.spark.commands.merge.source import SourceFacts, facts_of, repeatable
from optimist.spark.commands.merge.stages import COPIED, Names, Stages
from optimist.spark.commands.own_sources import own_sources
from optimist.spark.commands.target import Target
from optimist.spark.conditions.join_condition import read_join
from optimist.spark.conditions.join_reading import JoinReading
from optimist.spark.rows.row_shape import column_of
from optimist.spark.rows.touched_files import aliased
from optimist.spark.spark_schema import from_spark_schema

__all__ = ["OWN_ALIAS", "merge"]

OWN_ALIAS = "__optimist_target"
"""The alias of the table's rows, where the caller has given them none."""


def merge(spark: SparkSession, log: DeltaLog, request: MergeRequest, alias: str) -> DataFrame:
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
    request = replace(request, evolves_schema=evolves_schema)
    txn, is_own = _transaction(log, request.source)
    counts = MergeCounts()

    def work(files: UncommittedFiles) -> Changes:
        nonlocal counts
        target = Target.of(spark, log, txn, alias)
        if is_own:
            # What becomes of the table is made of its own rows: any change of it is a conflict.
            txn.read_whole_table()
        if evolves_schema:
            evolve_schema(txn, from_spark_schema(request.source.schema), request.clauses)
        watch = target.stopwatch()
        command = _Merge.of(target, request)
        outcome = command.run(files)
        counts = outcome.counts
        operation = outcome.operation(command.stages.merge, watch.total_ms())
        return Changes(
            outcome.rewrite.actions(txn.table.clock.now_ms()),
            operation,
            balance=command.stages.merge.balance,
        )

    run_command(txn, work)
    return counts_frame(spark, counts)


def _transaction(log: DeltaLog, source: DataFrame) -> tuple[OptimisticTransaction, bool]:
    """The transaction, and whether the source is made of the table as it is now.

    Then it starts at the version that the source reads, or it would miss what came in between. A
    version that the caller chose is a constant, and does not count.
    """
    begun = log.start_transaction(log.update())
    read = [item.version for item in own_sources(source, log, begun) if not item.is_time_travel]
    if read and min(read) < begun.read_version:
        begun = log.start_transaction(log.snapshot(version=min(read)))
    return begun, bool(read)


@dataclass(frozen=True, slots=True)
class _Matches:
    """What the pass that looks for matches has found.

    Attributes:
        touched: The files whose rows are written again, as rows of `Snapshot.files`.
        counts: How many rows change.
    """

    touched: pa.Table
    counts: MergeCounts


@dataclass(frozen=True, slots=True)
class _Merge:
    """One MERGE, its expressions resolved."""

    target: Target
    request: MergeRequest
    rows: DataFrame
    reading: JoinReading
    stages: Stages

    @classmethod
    def of(cls, target: Target, request: MergeRequest) -> _Merge:
        rows, alias = target.rows(), target.alias or OWN_ALIAS
        merge = ResolvedMerge.of(target, rows, request)
        snapshot = target.snapshot
        reading = JoinReading()
        if not merge.of_kind("NOT MATCHED BY SOURCE"):
            reading = read_join(
                rows,
                request.source,
                request.condition,
                schema=snapshot.schema,
                partition_columns=snapshot.partition_columns,
                alias=alias,
            )
        names = Names.beside(
            [*snapshot.schema.names, *merge.sql.schema.names, *request.source.columns]
        )
        stages = Stages(merge, snapshot.schema, names, alias, target.carried)
        return cls(target, request, rows, reading, stages)

    def run(self, files: UncommittedFiles) -> Outcome:
        """Find the matches, write the rows, and tell what was done."""
        watch = self.target.stopwatch()
        with repeatable(self.request.source) as source:
            materialize_ms = watch.lap_ms()
            facts = facts_of(source, self.reading.keys, self.target, self.rows)
            candidates = self.target.writer.txn.filter_files(self._predicate(facts))
            other = self.stages.marked(source, self.stages.names.other)
            if self.stages.merge.only_inserts:
                rewrite, counts = self._insert(other, candidates, watch, files)
            else:
                rewrite, counts = self._rewrite(other, candidates, watch, files)
        return Outcome(rewrite, counts, facts.num_rows, materialize_ms)

    def _predicate(self, facts: SourceFacts) -> Predicate | None:
        """What rows of the table that can match satisfy; None where all rows are needed."""
        if self.stages.merge.of_kind("NOT MATCHED BY SOURCE"):
            return None
        parts = [part for part in (self.reading.own, facts.predicate) if part != Predicate.TRUE]
        return reduce(and_, parts) if parts else None

    # Rows that are only added

    def _insert(
        self, other: DataFrame, candidates: pa.Table, watch: Stopwatch, files: UncommittedFiles
    ) -> tuple[Rewrite, MergeCounts]:
        if candidates.num_rows:
            rows = self.target.writer.plane.scan_files(self.target.snapshot, candidates)
            own = aliased(rows, self.stages.alias)
            other = other.join(own, self.stages.merge.on.column, "left_anti")
        scan_ms = watch.lap_ms()
        written = self._write(self.stages.only_inserted(other), files)
        rewrite = Rewrite((), written, 0, scan_ms, watch.lap_ms())
        return rewrite, MergeCounts(inserted=written.num_rows)

    # Rows that change

    def _rewrite(
        self, other: DataFrame, candidates: pa.Table, watch: Stopwatch, files: UncommittedFiles
    ) -> tuple[Rewrite, MergeCounts]:
        found = self._matches(other, candidates)
        if not found.touched.num_rows and self.stages.merge.has_inserts:
            # No row of the source matches, so each of them is new.
            return self._insert(other, candidates.slice(0, 0), watch, files)
        scan_ms = watch.lap_ms()
        written = WrittenFiles()
        if found.touched.num_rows:
            rows = self.target.rows_of(found.touched, "MERGE", keeps_row_ids=True)
            own = self._aliased(self.stages.marked(rows, self.stages.names.own))
            written = self._write(self.stages.rewritten(own, other), files)
        removed = add_files(found.touched)
        rewrite = Rewrite(removed, written, None, scan_ms, watch.lap_ms())
        return rewrite, self._counted(found, rewrite)

    def _matches(self, other: DataFrame, candidates: pa.Table) -> _Matches:
        """The files that hold rows to be changed, and how many rows that are.

        Raises:
            UsageError: Several rows of the source match one of the table.
        """
        merge, names = self.stages.merge, self.stages.names
        if not candidates.num_rows:
            return _Matches(candidates, MergeCounts())
        plane, snapshot = self.target.writer.plane, self.target.snapshot
        wanted = merge.columns_for_search()
        rows = plane.placed_rows(snapshot, candidates, names.places, wanted)
        own = self._aliased(self.stages.marked(rows, names.own))
        found = _by_file(self.stages.matches(own, other), names)
        if _most_matches(found) > 1 and not merge.takes_several_matches:
            raise UsageError(
                "Cannot perform Merge as multiple source rows matched and attempted to modify the "
                "same target row in the Delta table in possibly conflicting ways. Nothing was "
                "written. Leave out, or combine, the rows of the source that match the same row, "
                "or tell them apart in the condition.",
                kind="DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE",
            )
        is_touched = pc.greater(found["clause"], COPIED)
        if merge.has_inserts:
            # Rows of the source that match a row here must be known as such in the next pass.
            is_touched = pc.or_(is_touched, pc.greater(found["most"], 0))
        paths = pc.unique(found.filter(is_touched)["path"].cast(pa.string()))
        touched = candidates.filter(pc.is_valid(plane.find_paths(snapshot, candidates, paths)))
        return _Matches(touched, MergeCounts.of(merge, found))

    def _counted(self, found: _Matches, rewrite: Rewrite) -> MergeCounts:
        """The counts with what was copied and inserted."""
        counts, num_written = found.counts, rewrite.written.num_rows
        if not self.stages.merge.has_inserts:
            return replace(counts, copied=num_written - counts.all_updated)
        num_rows = num_live_rows_in(rewrite.removed)
        if num_rows is None:
            plane, snapshot = self.target.writer.plane, self.target.snapshot
            num_rows = plane.scan_files(snapshot, found.touched).count()
        copied = num_rows - counts.all_updated - counts.all_deleted
        return replace(counts, copied=copied, inserted=num_written - counts.all_updated - copied)

    def _write(self, rows: DataFrame, files: UncommittedFiles) -> WrittenFiles:
        writer = self.target.writer
        partitioning = writer.txn.metadata.partition_columns
        if partitioning:
            # A join leaves rows of every partition in every task.
            rows = rows.repartition(*map(column_of, partitioning))
        return writer.write(checked_rows(rows, self.stages.sql, writer.txn.metadata), files)

    def _aliased(self, frame: DataFrame) -> DataFrame:
        return aliased(frame, self.stages.alias)


def _by_file(rows: DataFrame, names: Names) -> pa.Table:
    """How many rows of each file get each clause, and the most matches that one of them has."""
    place = [column_of(names.path).alias("path"), column_of(names.position).alias("position")]
    by_row = rows.groupBy(*place)
    single = by_row.agg(
        sf.count(column_of(names.other)).alias("matches"),
        sf.max(column_of(names.clause)).alias("clause"),
    )
    return (
        single.groupBy("path", "clause")
        .agg(sf.count(sf.lit(1)).alias("rows"), sf.max("matches").alias("most"))
        .toArrow()
    )


def _most_matches(found: pa.Table) -> int:
    return int(pc.max(found["most"], min_count=0).as_py() or 0)
