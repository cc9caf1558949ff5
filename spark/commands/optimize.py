"""OPTIMIZE on Spark: each group of files becomes one, by a job of its own (spec 10.14).

Groups that are small together are written by the driver without a job.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as st

from optimist.core.care.compacted_bin import CompactedBin
from optimist.core.care.optimize import Rearrangement, partition_predicate
from optimist.core.care.optimize import optimize as optimize_table
from optimist.core.care.optimize_metrics import FileSizes, Optimized
from optimist.core.commands.uncommitted_files import UncommittedFiles
from optimist.core.commands.written_files import WrittenFiles
from optimist.core.local.rewriting import RowWriter
from optimist.core.running.read_ahead import read_ahead
from optimist.core.schema.arrow_types import to_arrow_schema
from optimist.core.table.delta_log import DeltaLog
from optimist.core.transaction.optimistic import OptimisticTransaction
from optimist.spark.commands.target import Target
from optimist.spark.rows.local_rows import local_frame
from optimist.spark.rows.row_shape import without_void
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
    spark: SparkSession, log: DeltaLog, predicate: str | None = None, *, purges: bool = False
) -> DataFrame:
    """Make few large files of many small ones; see `DeltaLog.optimize`.

    Args:
        spark: The session.
        log: The table.
        predicate: SQL over partition columns; None for all partitions.
        purges: Write those files again that have deletion vectors; see `DeltaLog.purge`.

    Returns:
        One row with the table's path and what was done.
    """
    chosen = None if predicate is None else partition_predicate(predicate, log.snapshot())
    done = optimize_table(
        lambda: log.start_transaction(log.snapshot()),
        _SparkBins(spark, log),
        Rearrangement(chosen, predicate, purges),
    )
    return _told(spark, log, done)


@dataclass(frozen=True, slots=True)
class _SparkBins:
    """Writes bins, as a `BinWriter`."""

    spark: SparkSession
    log: DeltaLog

    def __call__(
        self, txn: OptimisticTransaction, bins: Sequence[pa.Table], pending: UncommittedFiles
    ) -> Sequence[CompactedBin]:
        if not bins:
            return ()
        target = Target.of(self.spark, self.log, txn, None)
        written = None
        if target.shortcut.takes(pa.concat_tables(bins)):
            written = target.shortcut.done(
                pending, lambda writer: _in_driver(writer, bins), is_checked=False
            )
        if written is None:
            found = self._by_jobs(target, bins, pending)
            return [CompactedBin.of(*pair, None) for pair in zip(bins, found, strict=True)]
        return [
            CompactedBin.of(files, found, counts)
            for files, (found, counts) in zip(bins, written, strict=True)
        ]

    def _by_jobs(
        self, target: Target, bins: Sequence[pa.Table], pending: UncommittedFiles
    ) -> list[WrittenFiles]:
        """Write each bin by a job, several of them at once."""
        writer = replace(target.writer, data_change=False)
        schema, carried = target.snapshot.schema, target.carried.names

        def write_one(files: pa.Table) -> WrittenFiles:
            rows = without_void(target.rows_of(files, _OPERATION), schema, *carried)
            return writer.write(rows.coalesce(1), pending)

        threads = target.txn.table.options.optimize_max_threads
        return list(read_ahead(write_one, bins, threads=threads, ahead=threads))


def _in_driver(
    writer: RowWriter, bins: Sequence[pa.Table]
) -> list[tuple[WrittenFiles, tuple[int, ...]]]:
    return replace(writer, data_change=False).copy(bins, _OPERATION)


def _told(spark: SparkSession, log: DeltaLog, done: Optimized) -> DataFrame:
    """The row that Delta answers."""
    indexed = log.snapshot().properties.data_skipping_num_indexed_cols
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
        "numBins": done.num_bins,
        "numBatches": max(done.num_batches, 1),
        "totalConsideredFiles": done.num_considered,
        "totalFilesSkipped": done.num_considered - done.removed.num_files,
        "preserveInsertionOrder": False,
        "startTimeMs": done.started_ms,
        "endTimeMs": done.ended_ms,
        "deletionVectorStats": vectors if done.num_vectors_removed else None,
        "numTableColumns": done.num_columns,
        "numTableColumnsWithStats": min(done.num_columns, indexed)
        if indexed >= 0
        else done.num_columns,
    }
    row = {"path": log.table_path, "metrics": metrics}
    schema = to_arrow_schema(from_spark_schema(OPTIMIZE_SCHEMA))
    return local_frame(spark, pa.Table.from_pylist([row], schema=schema), OPTIMIZE_SCHEMA)


def _sizes(files: FileSizes) -> dict[str, object]:
    return {
        "min": files.smallest,
        "max": files.largest,
        "avg": files.mean,
        "totalFiles": files.num_files,
        "totalSize": files.total,
    }
