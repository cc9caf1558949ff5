"""What a MERGE has found and done, for its history and its caller (spec 8.2, 8.3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from optimist.core.commands.merge_outcome import MergeCounts, merge_metrics
from optimist.core.commands.rewrite import Rewrite
from optimist.core.transaction.conflicts.operations import Operation
from optimist.spark.commands.merge.clauses import Action, Kind
from optimist.spark.commands.merge.resolution import ResolvedMerge
from optimist.spark.rows.local_rows import numbers_frame

__all__ = ["Outcome", "counts_frame", "counts_of"]


def counts_of(merge: ResolvedMerge, found: Mapping[str, int]) -> MergeCounts:
    """The rows by what their clauses do to them; those copied and inserted are not known yet.

    Args:
        merge: The expressions.
        found: How many rows got each clause, by its number; and under `matched`, how many rows
            match.
    """

    def rows(kind: Kind, action: Action) -> int:
        items = (item for item in merge.of_kind(kind) if item.clause.action == action)
        return sum(found[str(item.number)] for item in items)

    return MergeCounts(
        updated=rows("MATCHED", "update"),
        updated_by_source=rows("NOT MATCHED BY SOURCE", "update"),
        # Where a row may match several times, it is deleted once.
        deleted=found["matched"] if merge.takes_several_matches else rows("MATCHED", "delete"),
        deleted_by_source=rows("NOT MATCHED BY SOURCE", "delete"),
    )


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
        metrics = merge_metrics(
            self.counts,
            self.rewrite,
            num_source_rows=self.num_source_rows,
            elapsed_ms=elapsed_ms,
            materialize_ms=self.materialize_ms,
        )
        return merge.operation(merge.on.text).with_metrics(metrics)


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
