"""`UncommittedFiles`: the files of one command, settled when the command ends."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType

from optimist.core.log.many_files import ManyFiles
from optimist.core.protocol.actions import Action
from optimist.core.transaction.commit_files import CommitFiles
from optimist.core.transaction.commit_outcome import CommitOutcome
from optimist.core.transaction.conflicts.operations import Operation
from optimist.core.transaction.optimistic import OptimisticTransaction
from optimist.core.transaction.result import CommitResult

__all__ = ["UncommittedFiles"]


class UncommittedFiles(CommitFiles):
    """The files that one command writes, as a context that ends with the commit.

    An error or an interrupt removes them, unless the transaction says that a version may hold them
    (`OptimisticTransaction.outcome`): its commit has landed, or a request of it has no answer. The
    error itself does not decide, because a step after the commit may have raised it.

    Args:
        txn: The transaction; another one on its table may be the one that commits.
        within: See `CommitFiles`.
    """

    def __init__(self, txn: OptimisticTransaction, within: CommitFiles | None = None) -> None:
        super().__init__(txn.table, txn.snapshot, within)
        self._txn: OptimisticTransaction | None = None

    def commit(
        self,
        txn: OptimisticTransaction,
        actions: Sequence[Action],
        operation: Operation,
        files: ManyFiles | None = None,
    ) -> CommitResult:
        """Call `txn.commit`; from here on the files may be part of the table."""
        self._txn = txn
        return txn.commit(actions, operation, files=files, written=self)

    def commit_if_needed(
        self,
        txn: OptimisticTransaction,
        actions: Sequence[Action],
        operation: Operation,
        files: ManyFiles | None = None,
    ) -> CommitResult | None:
        """Call `txn.commit_if_needed`; from here on the files may be part of the table."""
        self._txn = txn
        return txn.commit_if_needed(actions, operation, files=files, written=self)

    def commit_large(
        self,
        txn: OptimisticTransaction,
        actions: Sequence[Action],
        operation: Operation,
        files: ManyFiles | None = None,
    ) -> CommitResult:
        """Call `txn.commit_large`; from here on the files may be part of the table."""
        self._txn = txn
        return txn.commit_large(actions, operation, files=files, written=self)

    def __enter__(self) -> UncommittedFiles:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        outcome = CommitOutcome.NOT_COMMITTED if self._txn is None else self._txn.outcome
        if error is not None:
            self.settle(outcome)
        elif outcome is not CommitOutcome.STAGED:
            self.release()
