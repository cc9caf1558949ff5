"""The steps of every command that changes a table, with Spark or without it.

1. A write that its application has recorded already is not done again (spec 10.6).
2. The table must be one that this engine can write.
3. The command's work plans, writes files, and says what changed.
4. What it says is refused if rows were doubled or lost on the way.
5. One commit makes that part of the table, and records the application's progress.
6. After an error or an interrupt the files that the work wrote are removed, unless a version may
   hold them.

So a command is a transaction, which its caller starts, and a `Work`: DELETE, UPDATE, MERGE and
writes on Spark, and appends of Arrow tables without it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from optimist.core.commands.idempotence import conf_txn, is_replay, progress
from optimist.core.commands.row_balance import RowBalance, ensure_balanced
from optimist.core.commands.row_counts import NO_ROWS, RowCounts
from optimist.core.commands.uncommitted_files import UncommittedFiles
from optimist.core.protocol.actions import Action
from optimist.core.transaction.conflicts.operations import Operation
from optimist.core.transaction.optimistic import OptimisticTransaction
from optimist.core.transaction.result import CommitResult

__all__ = ["Changes", "Done", "Work", "run_command"]


@dataclass(frozen=True, slots=True)
class Changes:
    """What a command has done, before it is committed.

    Attributes:
        actions: The actions to commit.
        operation: The operation for the history, metrics included.
        must_land: Whether to commit even if nothing changed, instead of leaving that to
            `commit_if_needed`.
        is_progress: Whether the application's progress is recorded. As in Delta, a DELETE that
            found nothing makes none.
        balance: How many rows the actions may add, against those in the files that they remove.
        counts: How many rows changed, for a command that tells its caller.
    """

    actions: tuple[Action, ...]
    operation: Operation
    must_land: bool = False
    is_progress: bool = True
    balance: RowBalance = RowBalance.ANY
    counts: RowCounts = NO_ROWS


@dataclass(frozen=True, slots=True)
class Done:
    """What a command has done, after its commit.

    Attributes:
        commit: The commit; None if there was nothing to record, or the write is recorded already.
        counts: How many rows changed.
    """

    commit: CommitResult | None = None
    counts: RowCounts = NO_ROWS


Work: TypeAlias = Callable[[UncommittedFiles], Changes]
"""Does a command's work. It registers what it writes, so that an error leaves no files behind."""


def run_command(
    txn: OptimisticTransaction, work: Work, *, app_txn: tuple[str, int] | None = None
) -> Done:
    """Run a command to its commit.

    Args:
        txn: A transaction that has just begun.
        work: What the command does.
        app_txn: Application id and version of a write that may be repeated; None leaves both to
            the options.

    Raises:
        TableError: Rows were doubled or lost, by the statistics of the files (kind
            `DELTA_NUM_RECORDS_MISMATCH`). What the transaction raises comes through as well.
    """
    app_txn = app_txn or conf_txn(txn.table.options)
    if is_replay(txn, app_txn):
        return Done()
    txn.ensure_writable()
    with UncommittedFiles(txn) as files:
        changes = work(files)
        ensure_balanced(changes.actions, changes.balance, changes.operation.name)
        recorded = progress(txn, app_txn) if changes.is_progress else ()
        commit = files.commit if changes.must_land else files.commit_if_needed
        result = commit(txn, (*recorded, *changes.actions), _with_reruns(changes.operation, txn))
        return Done(result, changes.counts)


def _with_reruns(operation: Operation, txn: OptimisticTransaction) -> Operation:
    if txn.num_reruns is None:
        return operation
    return operation.with_metrics({**operation.metrics, "numReruns": txn.num_reruns})
