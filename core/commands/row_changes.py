"""What DELETE, UPDATE and MERGE commit, with Spark and without it (spec 8.2, 8.3, 10.15)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from optimist.core.commands.command import Changes
from optimist.core.commands.merge_clauses import MergeClauses
from optimist.core.commands.rewrite import Rewrite
from optimist.core.commands.row_balance import RowBalance
from optimist.core.commands.row_counts import RowCounts
from optimist.core.commands.stopwatch import Stopwatch
from optimist.core.data.table_ref import TableRef
from optimist.core.transaction.conflicts.operations import Operation

__all__ = ["MergedRows", "changes_of_delete", "changes_of_merge", "changes_of_update"]


def changes_of_delete(
    rewrite: Rewrite, predicate: str | None, table: TableRef, watch: Stopwatch
) -> Changes:
    """The commit of a DELETE.

    Args:
        rewrite: What became of the files.
        predicate: The condition as SQL; None for all rows.
        table: The table.
        watch: Started with the command.
    """
    metrics = {**rewrite.metrics(), **watch.metrics()}
    num_deleted, num_copied = rewrite.num_matching_rows, rewrite.written.num_rows
    if num_deleted is not None:
        metrics["numDeletedRows"] = num_deleted
        metrics["numCopiedRows"] = num_copied
    operation = Operation.delete(["true" if predicate is None else predicate])
    return Changes(
        rewrite.actions(table.clock.now_ms()),
        operation.with_metrics(metrics),
        is_progress=not rewrite.is_empty,
        balance=RowBalance.NO_MORE,
        counts=RowCounts(
            deleted=num_deleted or 0, copied=num_copied, is_counted=num_deleted is not None
        ),
    )


def changes_of_update(
    rewrite: Rewrite, predicate: str | None, table: TableRef, watch: Stopwatch
) -> Changes:
    """The commit of an UPDATE; the arguments are those of `changes_of_delete`."""
    num_written, num_matching = rewrite.written.num_rows, rewrite.num_matching
    num_updated = num_written if num_matching is None else num_matching
    metrics = {**rewrite.metrics(), **watch.metrics()}
    metrics["numUpdatedRows"] = num_updated
    metrics["numCopiedRows"] = num_written - num_updated
    operation = Operation.update([] if predicate is None else [predicate])
    return Changes(
        rewrite.actions(table.clock.now_ms()),
        operation.with_metrics(metrics),
        balance=RowBalance.EQUAL,
        counts=RowCounts(updated=num_updated, copied=num_written - num_updated),
    )


@dataclass(frozen=True, slots=True)
class MergedRows:
    """What a MERGE did.

    Attributes:
        rewrite: What became of the files.
        counts: How many rows changed.
        num_source_rows: How many rows the source has.
    """

    rewrite: Rewrite
    counts: RowCounts
    num_source_rows: int


def changes_of_merge(
    done: MergedRows, clauses: MergeClauses[Any], on: str, table: TableRef, watch: Stopwatch
) -> Changes:
    """The commit of a MERGE.

    Args:
        done: What it did.
        clauses: Its clauses, resolved.
        on: The condition by which rows match, as SQL.
        table: The table.
        watch: Started with the command.
    """
    rewrite, counts = done.rewrite, done.counts
    metrics = {
        "numSourceRows": done.num_source_rows,
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
        "materializeSourceTimeMs": 0,
        **watch.metrics(),
    }
    return Changes(
        rewrite.actions(table.clock.now_ms()),
        clauses.operation(on).with_metrics(metrics),
        balance=clauses.balance,
        counts=counts,
    )
