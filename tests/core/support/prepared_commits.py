"""The parts of a commit that tests take one by one: how it is first tried, and its loop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from optimist.core.protocol.actions import Action
from optimist.core.transaction.commit_files import CommitFiles
from optimist.core.transaction.commit_loop import CommitLoop
from optimist.core.transaction.conflicts.operations import Operation
from optimist.core.transaction.conflicts.ours_and_theirs import Ours
from optimist.core.transaction.log_committer import LogCommitter
from optimist.core.transaction.optimistic import OptimisticTransaction

__all__ = ["loop_of", "prepared"]


def prepared(
    txn: OptimisticTransaction,
    actions: Sequence[Action],
    operation: Operation,
    tags: Mapping[str, str] | None = None,
) -> Ours:
    """The commit as it is first tried."""
    return _committer(txn).prepare(txn._request(actions, operation, tags))


def loop_of(txn: OptimisticTransaction) -> CommitLoop:
    """Its attempts, before the first."""
    return _committer(txn).make_loop(CommitFiles(txn.table, txn.snapshot))


def _committer(txn: OptimisticTransaction) -> LogCommitter:
    committer = txn._committer
    assert isinstance(committer, LogCommitter)
    return committer
