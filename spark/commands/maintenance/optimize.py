"""OPTIMIZE on Spark, which makes one file of each group of files, by one job each (spec 10.14).

The driver writes groups that are small together, without a job.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from optimist.core.commands.uncommitted_files import UncommittedFiles
from optimist.core.local.compaction import write_bins
from optimist.core.local.equal_rows import EqualRows
from optimist.core.local.moved_rows import TrackedRows
from optimist.core.local.target import LocalTarget
from optimist.core.maintenance.optimize.compacted_bin import CompactedBin
from optimist.core.maintenance.optimize.optimize import ensure_no_clustering, ensure_of_partitions
from optimist.core.maintenance.optimize.row_order import RowOrder, num_files_of, num_rows_of
from optimist.core.runtime.progress import ProgressReport
from optimist.core.runtime.read_ahead import read_ahead
from optimist.core.snapshot import Snapshot
from optimist.core.table.delta_log import DeltaLog
from optimist.core.transaction.optimistic import OptimisticTransaction
from optimist.spark.commands.dml.target import Target
from optimist.spark.commands.maintenance.arranged_rows import arranged
from optimist.spark.rows.row_shape import without_void
from optimist.spark.session.job_scope import described, in_scope_of_caller

__all__ = ["SparkBins", "files_in_partitions"]

_OPERATION = "OPTIMIZE"


def files_in_partitions(
    spark: SparkSession, log: DeltaLog, where: str
) -> Callable[[Snapshot], pa.Table]:
    """Return what gives the files of the partitions for which a condition is true, as Spark says.

    Raises:
        pyspark.errors.AnalysisException: Spark can't resolve the condition.
        UsageError: The table is clustered, or the condition names a column that is not a partition
            column, is not deterministic, or holds a subquery.
    """
    snapshot = log.snapshot()
    ensure_no_clustering(where, snapshot)
    target = Target.of(spark, log, log.start_transaction(snapshot), None)
    try:
        condition = target.resolve(where, target.columns())
    except AnalysisException as error:
        if not (error.getCondition() or "").startswith("UNRESOLVED_COLUMN"):
            raise
        unknown = (error.getMessageParameters() or {}).get("objectName", "")
        ensure_of_partitions([unknown.replace("`", "")], snapshot)
        raise
    ensure_of_partitions(condition.columns, snapshot)

    def files_of(version: Snapshot) -> pa.Table:
        own = Target.of(spark, log, log.start_transaction(version), None)
        return own.in_matching_partitions(version.scan(condition.predicate).files, condition)

    return files_of


@dataclass(frozen=True, slots=True)
class SparkBins:
    """Writes bins, as a `BinWriter`."""

    spark: SparkSession
    log: DeltaLog

    def __call__(
        self,
        txn: OptimisticTransaction,
        bins: Sequence[pa.Table],
        pending: UncommittedFiles,
        order: RowOrder | None,
    ) -> Sequence[CompactedBin]:
        """See `BinWriter`."""
        if not bins:
            return ()
        target = Target.of(self.spark, self.log, txn, None)
        written = None
        if target.shortcut.takes(pa.concat_tables(bins)):
            written = target.shortcut.done(
                pending,
                lambda writer: write_bins(replace(writer, data_change=False), bins, order),
                is_checked=False,
            )
        if written is not None:
            return written
        with described(self.spark, "OPTIMIZE", self.log.table_path):
            return _by_jobs(target, bins, pending, order)


def _by_jobs(
    target: Target, bins: Sequence[pa.Table], pending: UncommittedFiles, order: RowOrder | None
) -> list[CompactedBin]:
    """Write each bin by a job, with several jobs at once."""
    writer = replace(target.writer, data_change=False, optimizes=False)
    schema, carried = target.snapshot.schema, target.carried.names
    options = target.txn.table.options
    local = LocalTarget(target.txn, ProgressReport(target.txn.table.clock, None, _OPERATION))

    def write_one(files: pa.Table) -> CompactedBin:
        rows = without_void(target.rows_of(files, _OPERATION), schema, *carried)
        count = 1 if order is None else num_files_of(files, options.optimize_max_file_size)
        if order is None or count == 1:
            rows = rows.coalesce(1)
        else:
            rows = arranged(rows, order, count, num_rows=num_rows_of(files))
        written = writer.write(rows, pending)
        trace = (TrackedRows if carried else EqualRows)(local, files, written.adds)
        return CompactedBin.of(target.txn, files, written, trace)

    threads = options.optimize_max_threads
    work = in_scope_of_caller(target.spark, write_one)
    return list(read_ahead(work, bins, threads=threads, ahead=threads))
