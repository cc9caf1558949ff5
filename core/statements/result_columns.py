"""The columns that statements answer with: the names and types of delta-spark, as Arrow."""

from __future__ import annotations

import pyarrow as pa

__all__ = [
    "CLONED",
    "DETAIL",
    "HISTORY",
    "MERGED",
    "NO_COLUMNS",
    "OPTIMIZED",
    "RESTORED",
    "ROWS_AFFECTED",
    "VACUUMED",
]

_TEXT, _TEXTS = pa.string(), pa.list_(pa.string())
_TEXT_MAP = pa.map_(_TEXT, _TEXT)
_TIME = pa.timestamp("us", tz="UTC")


def _longs(*names: str) -> list[pa.Field]:
    return [pa.field(name, pa.int64()) for name in names]


def _struct(*fields: pa.Field) -> pa.DataType:
    return pa.struct(list(fields))


NO_COLUMNS = pa.schema([])
HISTORY = pa.schema(
    [
        ("version", pa.int64()),
        ("timestamp", _TIME),
        ("userId", _TEXT),
        ("userName", _TEXT),
        ("operation", _TEXT),
        ("operationParameters", _TEXT_MAP),
        (
            "job",
            pa.struct(
                [
                    (name, _TEXT)
                    for name in (
                        *("jobId", "jobName", "jobRunId"),
                        *("runId", "jobOwnerId", "triggerType"),
                    )
                ]
            ),
        ),
        ("notebook", pa.struct([("notebookId", _TEXT)])),
        ("clusterId", _TEXT),
        ("readVersion", pa.int64()),
        ("isolationLevel", _TEXT),
        ("isBlindAppend", pa.bool_()),
        ("operationMetrics", _TEXT_MAP),
        ("userMetadata", _TEXT),
        ("engineInfo", _TEXT),
    ]
)
DETAIL = pa.schema(
    [
        ("format", _TEXT),
        ("id", _TEXT),
        ("name", _TEXT),
        ("description", _TEXT),
        ("location", _TEXT),
        ("createdAt", _TIME),
        ("lastModified", _TIME),
        ("partitionColumns", _TEXTS),
        ("clusteringColumns", _TEXTS),
        ("numFiles", pa.int64()),
        ("sizeInBytes", pa.int64()),
        ("properties", _TEXT_MAP),
        ("minReaderVersion", pa.int32()),
        ("minWriterVersion", pa.int32()),
        ("tableFeatures", _TEXTS),
    ]
)
_SIZES = _struct(
    *_longs("min", "max"), pa.field("avg", pa.float64()), *_longs("totalFiles", "totalSize")
)
_FILE_STATS = _struct(*_longs("num", "size"))
_Z_ORDER_STATS = _struct(
    pa.field("strategyName", _TEXT),
    pa.field("inputCubeFiles", _FILE_STATS),
    pa.field("inputOtherFiles", _FILE_STATS),
    *_longs("inputNumCubes"),
    pa.field("mergedFiles", _FILE_STATS),
    *_longs("numOutputCubes", "mergedNumCubes"),
)
_CLUSTERED_FILES = _struct(*_longs("numFiles", "size"))
_CLUSTERING_STATS = _struct(
    pa.field("inputZCubeFiles", _CLUSTERED_FILES),
    pa.field("inputOtherFiles", _CLUSTERED_FILES),
    *_longs("inputNumZCubes"),
    pa.field("mergedFiles", _CLUSTERED_FILES),
    *_longs("numOutputZCubes"),
)
_METRICS = _struct(
    *_longs("numFilesAdded", "numFilesRemoved"),
    pa.field("filesAdded", _SIZES),
    pa.field("filesRemoved", _SIZES),
    *_longs("partitionsOptimized"),
    pa.field("zOrderStats", _Z_ORDER_STATS),
    pa.field("clusteringStats", _CLUSTERING_STATS),
    *_longs("numBins", "numBatches", "totalConsideredFiles", "totalFilesSkipped"),
    pa.field("preserveInsertionOrder", pa.bool_()),
    *_longs(
        "numFilesSkippedToReduceWriteAmplification",
        "numBytesSkippedToReduceWriteAmplification",
        "startTimeMs",
        "endTimeMs",
        "totalClusterParallelism",
        "totalScheduledTasks",
    ),
    pa.field(
        "autoCompactParallelismStats",
        _struct(
            *_longs(
                "maxClusterActiveParallelism",
                "minClusterActiveParallelism",
                "maxSessionActiveParallelism",
                "minSessionActiveParallelism",
            )
        ),
    ),
    pa.field(
        "deletionVectorStats",
        _struct(*_longs("numDeletionVectorsRemoved", "numDeletionVectorRowsRemoved")),
    ),
    *_longs("numTableColumns", "numTableColumnsWithStats"),
)
OPTIMIZED = pa.schema([("path", _TEXT), ("metrics", _METRICS)])
VACUUMED = pa.schema([("path", _TEXT)])
RESTORED = pa.schema(
    _longs(
        "table_size_after_restore",
        "num_of_files_after_restore",
        "num_removed_files",
        "num_restored_files",
        "removed_files_size",
        "restored_files_size",
    )
)
CLONED = pa.schema(
    _longs(
        "source_table_size",
        "source_num_of_files",
        "num_removed_files",
        "num_copied_files",
        "removed_files_size",
        "copied_files_size",
    )
)
ROWS_AFFECTED = pa.schema(_longs("num_affected_rows"))
MERGED = pa.schema(
    _longs("num_affected_rows", "num_updated_rows", "num_deleted_rows", "num_inserted_rows")
)
