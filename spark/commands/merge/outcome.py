"""What a MERGE has found and done, for its history and its caller (spec 8.2, 8.3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from optimist.core.commands.rewrite import Rewrite
from optimist.core.transaction.conflicts.operations import Operation
from optimist.spark.commands.merge.clauses import Action, Kind
from optimist.spark.commands.merge.resolution import ResolvedMerge
from optimist.spark.rows.local_rows import numbers_frame

__all__ = ["MergeCounts", "Outcome", "counts_frame"]


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

    @classmethod
    def of(cls, merge: ResolvedMerge, found: Mapping[str, int]) -> MergeCounts:
        """The rows by what their clauses do to them.

        Args:
            merge: The expressions.
            found: How many rows got each clause, by its number; and under `matched`, how many rows
                match.
        """

        def rows(kind: Kind, action: Action) -> int:
            items = (item for item in merge.of_kind(kind) if item.clause.action == action)
            return sum(found[str(item.number)] for item in items)

        return cls(
            updated=rows("MATCHED", "update"),
            updated_by_source=rows("NOT MATCHED BY SOURCE", "update"),
            # Where a row may match several times, it is deleted once.
            deleted=found["matched"] if merge.takes_several_matches else rows("MATCHED", "delete"),
            deleted_by_source=rows("NOT MATCHED BY SOURCE", "delete"),
        )

    @property
    def all_updated(self) -> int:
        """Rows that were updated."""
        return self.updated + self.updated_by_source

    @property
    def all_deleted(self) -> int:
        """Rows that were deleted."""
        return self.deleted + self.deleted_by_source


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a MERGE did.

    Attributes:
        rewrite: The files that it removed and wrote.
        counts: How many rows it changed.
        num_source_rows: How many rows the source has.
        materialize_ms: How long it took to store the source's rows.
    """

    rewrite: Rewrite
    counts: MergeCounts
    num_source_rows: int
    materialize_ms: int

    def operation(self, merge: ResolvedMerge, elapsed_ms: int) -> Operation:
        """The operation, as the history tells it."""
        operation = Operation.merge(
            merge.on.text,
            matched=[item.shown() for item in merge.of_kind("MATCHED")],
            not_matched=[item.shown() for item in merge.of_kind("NOT MATCHED")],
            not_matched_by_source=[item.shown() for item in merge.of_kind("NOT MATCHED BY SOURCE")],
        )
        return operation.with_metrics(self._metrics(elapsed_ms))

    def _metrics(self, elapsed_ms: int) -> dict[str, object]:
        counts, rewrite = self.counts, self.rewrite
        return {
            "numSourceRows": self.num_source_rows,
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
            "materializeSourceTimeMs": self.materialize_ms,
            "scanTimeMs": rewrite.scan_ms,
            "rewriteTimeMs": rewrite.rewrite_ms,
        }


def counts_frame(spark: SparkSession, counts: MergeCounts) -> DataFrame:
    """The row that `DeltaMergeBuilder.execute` returns."""
    updated, deleted = counts.all_updated, counts.all_deleted
    row = {
        "num_affected_rows": updated + deleted + counts.inserted,
        "num_updated_rows": updated,
        "num_deleted_rows": deleted,
        "num_inserted_rows": counts.inserted,
    }
    return numbers_frame(spark, row)
