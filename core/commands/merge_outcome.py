"""How many rows a MERGE changed, and what its history tells (spec 8.3)."""

from __future__ import annotations

from dataclasses import dataclass

from optimist.core.commands.rewrite import Rewrite

__all__ = ["MergeCounts", "merge_metrics"]


@dataclass(frozen=True, slots=True)
class MergeCounts:
    """How many rows of the table changed; those of the source that were added come on top.

    Attributes:
        updated: Rows that match and were updated.
        updated_by_source: Rows that match none and were updated.
        deleted: Rows that match and were deleted.
        deleted_by_source: Rows that match none and were deleted.
        copied: Rows that were written again as they were.
        inserted: Rows that were added.
    """

    updated: int = 0
    updated_by_source: int = 0
    deleted: int = 0
    deleted_by_source: int = 0
    copied: int = 0
    inserted: int = 0

    @property
    def all_updated(self) -> int:
        """Rows that were updated."""
        return self.updated + self.updated_by_source

    @property
    def all_deleted(self) -> int:
        """Rows that were deleted."""
        return self.deleted + self.deleted_by_source


def merge_metrics(
    counts: MergeCounts,
    rewrite: Rewrite,
    *,
    num_source_rows: int,
    elapsed_ms: int,
    materialize_ms: int = 0,
) -> dict[str, object]:
    """The metrics of a MERGE.

    Args:
        counts: How many rows it changed.
        rewrite: The files that it removed and wrote.
        num_source_rows: How many rows the source has.
        elapsed_ms: How long it took.
        materialize_ms: How long it took to store the source's rows.
    """
    return {
        "numSourceRows": num_source_rows,
        "numTargetRowsInserted": counts.inserted,
        "numTargetRowsUpdated": counts.all_updated,
        "numTargetRowsMatchedUpdated": counts.updated,
        "numTargetRowsNotMatchedBySourceUpdated": counts.updated_by_source,
        "numTargetRowsDeleted": counts.all_deleted,
        "numTargetRowsMatchedDeleted": counts.deleted,
        "numTargetRowsNotMatchedBySourceDeleted": counts.deleted_by_source,
        "numTargetRowsCopied": counts.copied,
        "numOutputRows": rewrite.written.num_rows,
        "numTargetFilesAdded": len(rewrite.written.adds),
        "numTargetFilesRemoved": len(rewrite.removed),
        "numTargetBytesAdded": rewrite.written.size_bytes,
        "numTargetBytesRemoved": sum(add.size for add in rewrite.removed),
        "numTargetChangeFilesAdded": len(rewrite.written.changes),
        "numTargetDeletionVectorsAdded": len(rewrite.marked),
        "numTargetDeletionVectorsRemoved": rewrite.num_vectors_removed,
        "numTargetDeletionVectorsUpdated": rewrite.num_vectors_updated,
        "executionTimeMs": elapsed_ms,
        "materializeSourceTimeMs": materialize_ms,
        "scanTimeMs": rewrite.scan_ms,
        "rewriteTimeMs": rewrite.rewrite_ms,
    }
