"""The results of commands, with deltalake's names."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any

from optimist.core import CommitResult, DeltaLog, FileSizes, Optimized, RestoredTable, RowsChanged
from optimist.core.errors import OptimistError
from optimist.core.log.commits import read_commit_info
from optimist.core.log.names import commit_path

__all__ = ["deleted", "merged", "optimized", "restored", "updated"]

_LOG = logging.getLogger(__name__)

_FILES = {"num_added_files": "numAddedFiles", "num_removed_files": "numRemovedFiles"}
_TIMES = {"execution_time_ms": "executionTimeMs", "scan_time_ms": "scanTimeMs"}
_REWRITE_TIME = {"rewrite_time_ms": "rewriteTimeMs"}
_MERGE = {
    "num_source_rows": "numSourceRows",
    "num_target_rows_inserted": "numTargetRowsInserted",
    "num_target_rows_updated": "numTargetRowsUpdated",
    "num_target_rows_deleted": "numTargetRowsDeleted",
    "num_target_rows_copied": "numTargetRowsCopied",
    "num_output_rows": "numOutputRows",
    "num_target_files_added": "numTargetFilesAdded",
    "num_target_files_removed": "numTargetFilesRemoved",
    **_TIMES,
    **_REWRITE_TIME,
}


def deleted(log: DeltaLog, done: RowsChanged) -> dict[str, Any]:
    """Return the metrics of a DELETE. Without `num_deleted_rows` the log can't tell."""
    counts = {"num_copied_rows": done.num_copied}
    if done.num_deleted is not None:
        counts = {"num_deleted_rows": done.num_deleted, **counts}
    told = _told(log, done.commit, _FILES | _TIMES | _REWRITE_TIME)
    return {**_chosen(told, _FILES), **counts, **_chosen(told, _TIMES | _REWRITE_TIME)}


def updated(log: DeltaLog, done: RowsChanged) -> dict[str, Any]:
    """Return the metrics of an UPDATE."""
    counts = {"num_updated_rows": done.num_updated, "num_copied_rows": done.num_copied}
    told = _told(log, done.commit, _FILES | _TIMES)
    return {**_chosen(told, _FILES), **counts, **_chosen(told, _TIMES)}


def merged(log: DeltaLog, done: RowsChanged) -> dict[str, Any]:
    """Return the metrics of a MERGE."""
    return _told(log, done.commit, _MERGE) | {
        "num_target_rows_inserted": done.num_inserted,
        "num_target_rows_updated": done.num_updated,
        "num_target_rows_deleted": done.num_deleted,
        "num_target_rows_copied": done.num_copied,
    }


def restored(done: RestoredTable | None) -> dict[str, Any]:
    """Return the metrics of a RESTORE."""
    if done is None:
        return {"numRemovedFile": 0, "numRestoredFile": 0}
    return {"numRemovedFile": done.num_removed_files, "numRestoredFile": done.num_restored_files}


def optimized(done: Optimized) -> dict[str, Any]:
    """Return the metrics of an OPTIMIZE."""
    return {
        "numFilesAdded": done.added.num_files,
        "numFilesRemoved": done.removed.num_files,
        "filesAdded": _sizes(done.added),
        "filesRemoved": _sizes(done.removed),
        "partitionsOptimized": done.num_partitions,
        "numBatches": done.num_batches,
        "totalConsideredFiles": done.num_considered,
        "totalFilesSkipped": done.num_considered - done.removed.num_files,
        "preserveInsertionOrder": not done.is_z_ordered,
    }


def _sizes(sizes: FileSizes) -> str:
    found = {
        "avg": sizes.mean,
        "max": sizes.largest or 0,
        "min": sizes.smallest or 0,
        "totalFiles": sizes.num_files,
        "totalSize": sizes.total,
    }
    return json.dumps(found, separators=(",", ":"))


def _told(
    log: DeltaLog, commit: CommitResult | None, names: Mapping[str, str]
) -> dict[str, int | None]:
    """Return what the commit says of itself; zeros without a commit.

    The commit has landed, so a store that fails now costs the metrics, and raises nothing.
    """
    if commit is None:
        return dict.fromkeys(names, 0)
    try:
        info = read_commit_info(log.store, commit_path(log.log_path, commit.version))
    except OptimistError as error:
        _LOG.warning("The metrics of version %d can't be read: %s", commit.version, error)
        info = None
    metrics = (info and info.operation_metrics) or {}
    return {name: _number(metrics.get(theirs)) for name, theirs in names.items()}


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdigit() else None


def _chosen(told: Mapping[str, int | None], names: Mapping[str, str]) -> dict[str, int | None]:
    return {name: told[name] for name in names}
