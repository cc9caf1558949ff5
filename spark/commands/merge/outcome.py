"""How many rows a MERGE changes, as it finds them and tells its caller."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession

from optimist.core.commands.row_counts import RowCounts
from optimist.core.requests.merge_clauses import Action, Kind
from optimist.spark.commands.merge.resolution import ResolvedMerge
from optimist.spark.rows.local_rows import numbers_frame

__all__ = ["counts_frame", "counts_of"]


def counts_of(merge: ResolvedMerge, found: Mapping[str, int]) -> RowCounts:
    """The rows by what their clauses do to them; those copied and inserted are not known yet.

    Args:
        merge: The expressions.
        found: How many rows got each clause, by its number; and under `matched`, how many rows
            match.
    """

    def rows(kind: Kind, action: Action) -> int:
        items = (item for item in merge.of_kind(kind) if item.clause.action == action)
        return sum(found[str(item.number)] for item in items)

    return RowCounts(
        updated=rows("MATCHED", "update"),
        updated_by_source=rows("NOT MATCHED BY SOURCE", "update"),
        # Where a row may match several times, it is deleted once.
        deleted=found["matched"] if merge.takes_several_matches else rows("MATCHED", "delete"),
        deleted_by_source=rows("NOT MATCHED BY SOURCE", "delete"),
    )


def counts_frame(spark: SparkSession, counts: RowCounts) -> DataFrame:
    """The row that `DeltaMergeBuilder.execute` returns."""
    row = {
        "num_affected_rows": counts.num_affected,
        "num_updated_rows": counts.all_updated,
        "num_deleted_rows": counts.all_deleted,
        "num_inserted_rows": counts.inserted,
    }
    return numbers_frame(spark, row)
