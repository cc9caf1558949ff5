"""What DELETE and UPDATE commit, with Spark and without it (spec 8.2, 8.3, 10.15)."""

from __future__ import annotations

from optimist.core.commands.command import Changes
from optimist.core.commands.rewrite import Rewrite
from optimist.core.commands.row_balance import RowBalance
from optimist.core.commands.row_counts import RowCounts
from optimist.core.commands.stopwatch import Stopwatch
from optimist.core.data.table_ref import TableRef
from optimist.core.transaction.conflicts.operations import Operation

__all__ = ["changes_of_delete", "changes_of_update"]


def changes_of_delete(
    rewrite: Rewrite, predicate: str | None, table: TableRef, watch: Stopwatch
) -> Changes:
    """Return the commit of a DELETE.

    Args:
        rewrite: The replaced files.
        predicate: The condition as SQL; None for all rows.
        table: The table.
        watch: Measures time since the start of the command.
    """
    metrics = {**rewrite.metrics(), **watch.metrics()}
    num_deleted, num_copied = rewrite.num_matching_rows, rewrite.written.num_rows
    if num_deleted is not None:
        metrics["numDeletedRows"] = num_deleted
        metrics["numCopiedRows"] = num_copied
    operation = Operation.delete(["true" if predicate is None else predicate])
    actions, files = rewrite.changes(table.clock.now_ms())
    return Changes(
        actions,
        operation.with_metrics(metrics),
        files=files,
        is_progress=not rewrite.is_empty,
        balance=RowBalance.NO_MORE,
        counts=RowCounts(
            deleted=num_deleted or 0, copied=num_copied, is_counted=num_deleted is not None
        ),
    )


def changes_of_update(
    rewrite: Rewrite, predicate: str | None, table: TableRef, watch: Stopwatch
) -> Changes:
    """Return the commit of an UPDATE.

    The arguments are those of `changes_of_delete`.
    """
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
