"""How many rows a MERGE changed, and what its history tells (spec 8.3)."""

from __future__ import annotations

from dataclasses import dataclass

from optimist.core.commands.rewritable_files import num_vectors
from optimist.core.commands.rewrite import Rewrite

__all__ = ["ChangedRows", "merge_metrics"]


@dataclass(frozen=True, slots=True)
class ChangedRows:
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
    rows: ChangedRows, rewrite: Rewrite, *, num_source_rows: int, elapsed_ms: int
) -> dict[str, object]:
    """The metrics of a MERGE whose source needed no storing."""
    num_updated_vectors = num_vectors([file.before for file in rewrite.marked])
    return {
        "numSourceRows": num_source_rows,
        "numTargetRowsInserted": rows.inserted,
        "numTargetRowsUpdated": rows.all_updated,
        "numTargetRowsMatchedUpdated": rows.updated,
        "numTargetRowsNotMatchedBySourceUpdated": rows.updated_by_source,
        "numTargetRowsDeleted": rows.all_deleted,
        "numTargetRowsMatchedDeleted": rows.deleted,
        "numTargetRowsNotMatchedBySourceDeleted": rows.deleted_by_source,
        "numTargetRowsCopied": rows.copied,
        "numOutputRows": rewrite.written.num_rows,
        "numTargetFilesAdded": len(rewrite.written.adds),
        "numTargetFilesRemoved": len(rewrite.removed),
        "numTargetBytesAdded": rewrite.written.size_bytes,
        "numTargetBytesRemoved": sum(add.size for add in rewrite.removed),
        "numTargetChangeFilesAdded": 0,
        "numTargetDeletionVectorsAdded": len(rewrite.marked),
        "numTargetDeletionVectorsRemoved": num_vectors(rewrite.removed) + num_updated_vectors,
        "numTargetDeletionVectorsUpdated": num_updated_vectors,
        "executionTimeMs": elapsed_ms,
        "materializeSourceTimeMs": 0,
        "scanTimeMs": rewrite.scan_ms,
        "rewriteTimeMs": rewrite.rewrite_ms,
    }
