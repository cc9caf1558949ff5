"""OPTIMIZE on Spark: each group of files becomes one, by a job of its own (spec 10.14).

Groups that are small together are written by the driver without a job.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as st

from optimist.core.commands.uncommitted_files import UncommittedFiles
from optimist.core.local.compaction import write_bins
from optimist.core.local.moved_rows import TrackedRows
from optimist.core.local.progress import ProgressReport
from optimist.core.local.target import LocalTarget
from optimist.core.maintenance.optimize.arrangements import Rearrangement
from optimist.core.maintenance.optimize.compacted_bin import CompactedBin
from optimist.core.maintenance.optimize.optimize import ensure_no_clustering, ensure_of_partitions
from optimist.core.maintenance.optimize.optimize import optimize as optimize_table
from optimist.core.maintenance.optimize.optimize_metrics import CubeCounts, FileSizes, Optimized
from optimist.core.maintenance.optimize.row_order import RowOrder, num_files_of, num_rows_of
from optimist.core.paths import with_file_scheme
from optimist.core.runtime.read_ahead import read_ahead
from optimist.core.schema.arrow_types import to_arrow_schema
from optimist.core.snapshot import Snapshot
from optimist.core.table.delta_log import DeltaLog
from optimist.core.transaction.optimistic import OptimisticTransaction
from optimist.spark.commands.dml.target import Target
from optimist.spark.commands.maintenance.arranged_rows import arranged
from optimist.spark.rows.local_rows import answer_frame
from optimist.spark.rows.row_shape import without_void
from optimist.spark.session.job_scope import in_scope_of_caller
from optimist.spark.session.pyspark_versions import is_connect
from optimist.spark.spark_schema import from_spark_schema

__all__ = ["OPTIMIZE_SCHEMA", "optimize"]

_OPERATION = "OPTIMIZE"


def _numbers(*names: str) -> list[st.StructField]:
    return [st.StructField(name, st.LongType()) for name in names]


_SIZES = st.StructType(
    [
        *_numbers("min", "max"),
        st.StructField("avg", st.DoubleType()),
        *_numbers("totalFiles", "totalSize"),
    ]
)
_FILE_STATS = st.StructType(_numbers("num", "size"))
_Z_ORDER_STATS = st.StructType(
    [
        st.StructField("strategyName", st.StringType()),
        st.StructField("inputCubeFiles", _FILE_STATS),
        st.StructField("inputOtherFiles", _FILE_STATS),
        *_numbers("inputNumCubes"),
        st.StructField("mergedFiles", _FILE_STATS),
        *_numbers("numOutputCubes", "mergedNumCubes"),
    ]
)
_CLUSTERED_FILES = st.StructType(_numbers("numFiles", "size"))
_CLUSTERING_STATS = st.StructType(
    [
        st.StructField("inputZCubeFiles", _CLUSTERED_FILES),
        st.StructField("inputOtherFiles", _CLUSTERED_FILES),
        *_numbers("inputNumZCubes"),
        st.StructField("mergedFiles", _CLUSTERED_FILES),
        *_numbers("numOutputZCubes"),
    ]
)
_METRICS = st.StructType(
    [
        *_numbers("numFilesAdded", "numFilesRemoved"),
        st.StructField("filesAdded", _SIZES),
        st.StructField("filesRemoved", _SIZES),
        *_numbers("partitionsOptimized"),
        st.StructField("zOrderStats", _Z_ORDER_STATS),
        st.StructField("clusteringStats", _CLUSTERING_STATS),
        *_numbers("numBins", "numBatches", "totalConsideredFiles", "totalFilesSkipped"),
        st.StructField("preserveInsertionOrder", st.BooleanType()),
        *_numbers(
            "numFilesSkippedToReduceWriteAmplification",
            "numBytesSkippedToReduceWriteAmplification",
            "startTimeMs",
            "endTimeMs",
            "totalClusterParallelism",
            "totalScheduledTasks",
        ),
        st.StructField(
            "autoCompactParallelismStats",
            st.StructType(
                _numbers(
                    "maxClusterActiveParallelism",
                    "minClusterActiveParallelism",
                    "maxSessionActiveParallelism",
                    "minSessionActiveParallelism",
                )
            ),
        ),
        st.StructField(
            "deletionVectorStats",
            st.StructType(_numbers("numDeletionVectorsRemoved", "numDeletionVectorRowsRemoved")),
        ),
        *_numbers("numTableColumns", "numTableColumnsWithStats"),
    ]
)
OPTIMIZE_SCHEMA = st.StructType(
    [st.StructField("path", st.StringType()), st.StructField("metrics", _METRICS)]
)
"""What delta-spark 4.4 answers."""


def optimize(
    spark: SparkSession, log: DeltaLog, wanted: Rearrangement, where: str | None = None
) -> DataFrame:
    """Write files of a table again; see `DeltaLog.optimize` and `DeltaLog.purge`.

    Args:
        spark: The session.
        log: The table.
        wanted: What is asked for, without a predicate.
        where: SQL over partition columns; None for all partitions.

    Returns:
        One row with the table's path and what was done.
    """
    if where is not None:
        wanted = replace(wanted, chosen=_in_partitions(spark, log, where), text=where)
    done = optimize_table(
        lambda: log.start_transaction(log.snapshot()), _SparkBins(spark, log), wanted
    )
    return _told(spark, log, done)


def _in_partitions(
    spark: SparkSession, log: DeltaLog, where: str
) -> Callable[[Snapshot], pa.Table]:
    """What gives the files of the partitions for which a condition is true, as Spark says.

    Raises:
        pyspark.errors.AnalysisException: Spark can't resolve the condition.
        UsageError: The table is clustered, or the condition names a column that is no partition
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
        return own.in_matching_partitions(version.files, condition)

    return files_of


@dataclass(frozen=True, slots=True)
class _SparkBins:
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
        return written if written is not None else _by_jobs(target, bins, pending, order)


def _by_jobs(
    target: Target, bins: Sequence[pa.Table], pending: UncommittedFiles, order: RowOrder | None
) -> list[CompactedBin]:
    """Write each bin by a job, several of them at once."""
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
        trace = TrackedRows(local, files, written.adds) if carried else None
        return CompactedBin.of(target.txn, files, written, trace)

    threads = options.optimize_max_threads
    work = in_scope_of_caller(target.spark, write_one)
    return list(read_ahead(work, bins, threads=threads, ahead=threads))


def _told(spark: SparkSession, log: DeltaLog, done: Optimized) -> DataFrame:
    """The row that Delta answers."""
    snapshot = log.snapshot()
    indexed, num_columns = snapshot.properties.data_skipping_num_indexed_cols, len(snapshot.schema)
    vectors = {
        "numDeletionVectorsRemoved": done.num_vectors_removed,
        "numDeletionVectorRowsRemoved": done.num_rows_purged,
    }
    metrics = {
        **{item.name: 0 for item in _METRICS if isinstance(item.dataType, st.LongType)},
        "numFilesAdded": done.added.num_files,
        "numFilesRemoved": done.removed.num_files,
        "filesAdded": _sizes(done.added),
        "filesRemoved": _sizes(done.removed),
        "partitionsOptimized": done.num_partitions,
        "zOrderStats": _z_order_stats(done) if done.is_z_ordered else None,
        "clusteringStats": _clustering_stats(done.cubes, done),
        "numBins": done.num_bins,
        "numBatches": max(done.num_batches, 1),
        "totalConsideredFiles": done.num_considered,
        "totalFilesSkipped": done.num_considered - done.removed.num_files,
        "preserveInsertionOrder": False,
        "startTimeMs": done.started_ms,
        "endTimeMs": done.ended_ms,
        "totalClusterParallelism": _num_tasks_at_once(spark),
        "deletionVectorStats": vectors if done.num_vectors_removed else None,
        "numTableColumns": num_columns,
        "numTableColumnsWithStats": min(num_columns, indexed) if indexed >= 0 else num_columns,
    }
    row = {"path": with_file_scheme(log.table_path), "metrics": metrics}
    schema = to_arrow_schema(from_spark_schema(OPTIMIZE_SCHEMA))
    return answer_frame(spark, pa.Table.from_pylist([row], schema=schema), OPTIMIZE_SCHEMA)


def _num_tasks_at_once(spark: SparkSession) -> int:
    """How many tasks run beside each other; 0 for a client of Spark Connect, which can't tell."""
    return 0 if is_connect(spark) else spark.sparkContext.defaultParallelism


def _z_order_stats(done: Optimized) -> dict[str, object]:
    merged = {"num": done.removed.num_files, "size": done.removed.total}
    return {
        "strategyName": "all",
        "inputCubeFiles": {"num": 0, "size": 0},
        "inputOtherFiles": merged,
        "inputNumCubes": 0,
        "mergedFiles": merged,
        "numOutputCubes": done.num_partitions,
    }


def _clustering_stats(cubes: CubeCounts | None, done: Optimized) -> dict[str, object] | None:
    if cubes is None:
        return None

    def counted(files: FileSizes) -> dict[str, object]:
        return {"numFiles": files.num_files, "size": files.total}

    return {
        "inputZCubeFiles": counted(cubes.in_cubes),
        "inputOtherFiles": counted(cubes.others),
        "inputNumZCubes": cubes.num_cubes,
        "mergedFiles": counted(done.removed),
        "numOutputZCubes": done.num_bins,
    }


def _sizes(files: FileSizes) -> dict[str, object]:
    return {
        "min": files.smallest,
        "max": files.largest,
        "avg": files.mean,
        "totalFiles": files.num_files,
        "totalSize": files.total,
    }
