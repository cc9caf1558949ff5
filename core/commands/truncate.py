"""TRUNCATE TABLE: remove all files of a table in one commit (spec 8.1, 8.3)."""

from __future__ import annotations

from optimist.core.commands.command import Changes, run_command
from optimist.core.commands.removed_files import RemovedFiles
from optimist.core.commands.stopwatch import Stopwatch
from optimist.core.commands.uncommitted_files import UncommittedFiles
from optimist.core.transaction.conflicts.operations import Operation
from optimist.core.transaction.optimistic import OptimisticTransaction
from optimist.core.transaction.result import CommitResult

__all__ = ["truncate"]


def truncate(txn: OptimisticTransaction) -> CommitResult | None:
    """Remove all rows of a table.

    Args:
        txn: A transaction that has just begun.

    Returns:
        The commit, or None if the table has no rows.

    Raises:
        DeltaConcurrentModificationException: Another commit won. Nothing was removed.
    """
    watch = Stopwatch(txn.table.clock)

    def work(_: UncommittedFiles) -> Changes:
        removed = RemovedFiles(txn.filter_files())
        metrics = {"numRemovedFiles": len(removed), **watch.metrics()}
        actions, files = removed.removes(txn.table.clock.now_ms())
        return Changes(
            actions,
            Operation.truncate().with_metrics(metrics),
            is_progress=bool(removed),
            files=files,
        )

    return run_command(txn, work).commit
