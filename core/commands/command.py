"""The steps of every command that changes a table, with Spark or without it.

1. A write that its application has already recorded is not repeated (spec 10.6).
2. The table must be writable by this engine.
3. The command's work plans, writes files, and returns its changes.
4. Changes that would double or lose rows are refused.
5. One commit adds the changes to the table, and records the application's progress.
6. After an error or an interrupt, the files that the work wrote are removed, unless a version may
   contain them.

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
from optimist.core.log.many_files import ManyFiles
from optimist.core.protocol.actions import Action
from optimist.core.transaction.conflicts.operations import Operation
from optimist.core.transaction.optimistic import OptimisticTransaction
from optimist.core.transaction.result import CommitResult

__all__ = ["Changes", "Done", "Work", "run_command"]


@dataclass(frozen=True, slots=True)
class Changes:
    """The result of a command's work, before the commit.

    Attributes:
        actions: The actions to commit.
        operation: The operation for the history, with its metrics.
        must_land: Whether to commit even if nothing changed, instead of leaving that to
            `commit_if_needed`.
        is_progress: Whether to record the application's progress. As in Delta, a DELETE that finds
            no rows records none.
        balance: The number of rows that the actions may add, compared with the removed files.
        counts: The number of changed rows, for a command that returns it.
        files: The removed files, if they are columns and not among the actions.
    """

    actions: tuple[Action, ...]
    operation: Operation
    must_land: bool = False
    is_progress: bool = True
    balance: RowBalance = RowBalance.ANY
    counts: RowCounts = NO_ROWS
    files: ManyFiles | None = None


@dataclass(frozen=True, slots=True)
class Done:
    """The result of a command, after its commit.

    Attributes:
        commit: The commit; None if there was nothing to record, or the write is recorded already.
        counts: The number of changed rows.
    """

    commit: CommitResult | None = None
    counts: RowCounts = NO_ROWS


Work: TypeAlias = Callable[[UncommittedFiles], Changes]
"""Does a command's work, and registers the files that it writes, for removal after an error."""


def run_command(
    txn: OptimisticTransaction, work: Work, *, app_txn: tuple[str, int] | None = None
) -> Done:
    """Run a command to its commit.

    Args:
        txn: A transaction that has just begun.
        work: Does the command's work.
        app_txn: Application id and version of a write that may be repeated; None to take both from
            the options.

    Raises:
        TableError: The files' statistics show that rows were doubled or lost (kind
            `DELTA_NUM_RECORDS_MISMATCH`). Errors of the transaction are raised unchanged.
    """
    app_txn = app_txn or conf_txn(txn.table.options)
    if is_replay(txn, app_txn):
        return Done()
    txn.ensure_writable()
    with UncommittedFiles(txn) as files:
        changes = work(files)
        ensure_balanced(changes.actions, changes.balance, changes.operation.name, changes.files)
        recorded = progress(txn, app_txn) if changes.is_progress else ()
        commit = files.commit if changes.must_land else files.commit_if_needed
        actions, operation = (*recorded, *changes.actions), _with_reruns(changes.operation, txn)
        result = commit(txn, actions, operation, changes.files)
        return Done(result, changes.counts)


def _with_reruns(operation: Operation, txn: OptimisticTransaction) -> Operation:
    if txn.num_reruns is None:
        return operation
    return operation.with_metrics({**operation.metrics, "numReruns": txn.num_reruns})
