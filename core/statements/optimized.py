"""The row of OPTIMIZE and REORG."""

from __future__ import annotations

import pyarrow as pa

from optimist.core.maintenance.optimize.optimize_metrics import CubeCounts, FileSizes, Optimized
from optimist.core.paths import with_file_scheme
from optimist.core.snapshot import Snapshot
from optimist.core.statements.result_columns import OPTIMIZED

__all__ = ["optimized_rows"]


def optimized_rows(done: Optimized, snapshot: Snapshot, num_tasks_at_once: int) -> pa.Table:
    """Return one row with the path of the table and the metrics.

    Args:
        done: What was done.
        snapshot: The newest version.
        num_tasks_at_once: How many tasks the engine runs at the same time; 0 if it can't tell.
    """
    zeros = {
        field.name: 0 for field in OPTIMIZED.field("metrics").type if pa.types.is_int64(field.type)
    }
    metrics = {
        **zeros,
        **_counts(done),
        **_columns(snapshot),
        "totalClusterParallelism": num_tasks_at_once,
    }
    row = {"path": with_file_scheme(snapshot.table_path), "metrics": metrics}
    return pa.Table.from_pylist([row], schema=OPTIMIZED)


def _counts(done: Optimized) -> dict[str, object]:
    vectors = {
        "numDeletionVectorsRemoved": done.num_vectors_removed,
        "numDeletionVectorRowsRemoved": done.num_rows_purged,
    }
    return {
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
        "deletionVectorStats": vectors if done.num_vectors_removed else None,
    }


def _columns(snapshot: Snapshot) -> dict[str, object]:
    indexed, num_columns = snapshot.properties.data_skipping_num_indexed_cols, len(snapshot.schema)
    return {
        "numTableColumns": num_columns,
        "numTableColumnsWithStats": min(num_columns, indexed) if indexed >= 0 else num_columns,
    }


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
