"""What follows a commit that is in the table: the handle's snapshot, the hooks (spec 1.15)."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from optimist.core.data.table_ref import TableRef
from optimist.core.secrets import without_secrets
from optimist.core.snapshot import Snapshot
from optimist.core.transaction.commit_loop import Landed
from optimist.core.transaction.hooks.default_hooks import missed_hooks
from optimist.core.transaction.hooks.hooks import CommittedTransaction, PostCommitHook
from optimist.core.transaction.listener import CommitListener
from optimist.core.transaction.result import CommitResult

__all__ = ["finish_commit", "result_of"]

_LOG = logging.getLogger(__name__)


def finish_commit(
    table: TableRef,
    listener: CommitListener,
    base: Snapshot,
    landed: Landed,
    *,
    hooks: Sequence[PostCommitHook] = (),
    is_large: bool = False,
) -> CommitResult:
    """Bring the table's handle up to date and run the hooks; failures go into the result.

    Args:
        table: The table.
        listener: The table's handle.
        base: The version that the transaction started from; `landed.winners` follow it.
        landed: The commit.
        hooks: Those registered, which run after those of every commit.
        is_large: Whether it was made by `commit_large`.
    """
    version, actions, result = landed.ours.attempt_version, landed.lines, result_of(landed)
    _LOG.info("Committed delta #%d to %s", version, without_secrets(table.log_path))
    snapshot = listener.update_after_commit(base, landed.winners, version, actions)
    if snapshot is None:
        missed = missed_hooks(hooks, version, actions, landed.ours.metadata)
        return replace(result, hooks=missed)
    committed = CommittedTransaction(table, version, actions, snapshot, result.txn_id, is_large)
    return replace(result, hooks=listener.run_hooks(hooks, committed))


def result_of(landed: Landed) -> CommitResult:
    """The result of a commit after which no hook has run yet."""
    return CommitResult(
        version=landed.ours.attempt_version,
        txn_id=landed.ours.commit_info.txn_id or "",
        attempts=landed.attempts,
        elapsed_ms=landed.elapsed_ms,
        isolation_level=landed.ours.isolation_level.value,
    )
