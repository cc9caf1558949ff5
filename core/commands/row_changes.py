"""What DELETE and UPDATE commit, with Spark and without it (spec 8.2, 8.3, 10.15)."""

from __future__ import annotations

from optimist.core.commands.command import Changes, Stopwatch
from optimist.core.commands.rewrite import Rewrite
from optimist.core.commands.row_balance import RowBalance
from optimist.core.data.table_ref import TableRef
from optimist.core.transaction.conflicts.operations import Operation

__all__ = ["changes_of_delete", "changes_of_update", "num_affected_rows"]


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
    metrics = rewrite.metrics(watch.total_ms())
    if rewrite.num_matching_rows is not None:
        metrics["numDeletedRows"] = rewrite.num_matching_rows
        metrics["numCopiedRows"] = rewrite.written.num_rows
    operation = Operation.delete(["true" if predicate is None else predicate])
    return Changes(
        rewrite.actions(table.clock.now_ms()),
        operation.with_metrics(metrics),
        is_progress=not rewrite.is_empty,
        balance=RowBalance.NO_MORE,
    )


def changes_of_update(
    rewrite: Rewrite, predicate: str | None, table: TableRef, watch: Stopwatch
) -> Changes:
    """The commit of an UPDATE; the arguments are those of `changes_of_delete`."""
    metrics = rewrite.metrics(watch.total_ms())
    num_written, num_matching = rewrite.written.num_rows, rewrite.num_matching
    num_updated = num_written if num_matching is None else num_matching
    metrics["numUpdatedRows"] = num_updated
    metrics["numCopiedRows"] = num_written - num_updated
    operation = Operation.update([] if predicate is None else [predicate])
    return Changes(
        rewrite.actions(table.clock.now_ms()),
        operation.with_metrics(metrics),
        balance=RowBalance.EQUAL,
    )


def num_affected_rows(changes: Changes) -> int:
    """How many rows a DELETE or UPDATE changes; -1 where it was not counted, as in Delta."""
    metrics = changes.operation.metrics
    return int(str(metrics.get("numDeletedRows", metrics.get("numUpdatedRows", -1))))
