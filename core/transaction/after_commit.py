"""What follows a commit that is in the table: the handle's snapshot, the hooks (spec 1.15)."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from optimist.core.data.table_ref import TableRef
from optimist.core.errors import PostCommitHookError
from optimist.core.options.engine import EngineOptions
from optimist.core.secrets import without_secrets
from optimist.core.snapshot import Snapshot
from optimist.core.transaction.commit_loop import Landed
from optimist.core.transaction.hooks.default_hooks import (
    missed_hooks,
    names_files,
    raises_on_failure,
)
from optimist.core.transaction.hooks.hooks import CommittedTransaction, PostCommitHook
from optimist.core.transaction.listener import CommitListener
from optimist.core.transaction.result import CommitResult

__all__ = ["finish_commit", "raise_loud", "result_of", "result_without_hooks"]

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
    """Bring the table's handle up to date and run the hooks. Failures go into the result.

    The commit stands: no failure here raises an error. Only an interrupt comes through.

    Args:
        table: The table.
        listener: The table's handle.
        base: The version that the transaction started from; `landed.winners` follow it.
        landed: The commit.
        hooks: Those registered, which run after those of every commit.
        is_large: Whether it was made by `commit_large`.
    """
    version = landed.ours.attempt_version
    _LOG.info("Committed delta #%d to %s", version, without_secrets(table.log_path))
    try:
        files = landed.ours.files
        read = landed.ours.reads.files
        snapshot = listener.update_after_commit(
            base, landed.winners, version, landed.lines, files, read=read
        )
        if snapshot is None:
            reason = "the version can't be read back. The program's log names the cause"
            return result_without_hooks(landed, hooks, reason)
        result = result_of(landed)
        committed = CommittedTransaction(
            table, version, landed.lines, snapshot, result.txn_id, is_large, files
        )
        return replace(result, hooks=listener.run_hooks(hooks, committed))
    except Exception as error:  # noqa: BLE001 - the commit stands whatever happens here
        _LOG.warning(
            "Version %d was committed, but not all steps after the commit were done.",
            version,
            exc_info=True,
        )
        return result_without_hooks(landed, hooks, f"{type(error).__name__}: {error}")


def raise_loud(result: CommitResult, options: EngineOptions) -> CommitResult:
    """Raise the first failure of a hook that may not fail in silence.

    Raises:
        PostCommitHookError: The failure. The commit stands.
    """
    for failed in result.failed_hooks:
        if not raises_on_failure(failed.name, options):
            continue
        raise PostCommitHookError(
            f"The commit of version {result.version} succeeded, but the post-commit hook "
            f"{failed.name} failed: {failed.error}. Do not run the operation again.",
            kind="DELTA_POST_COMMIT_HOOK_FAILED",
            hook=failed.name,
            version=result.version,
        ) from failed.error
    return result


def result_without_hooks(
    landed: Landed, hooks: Sequence[PostCommitHook], reason: str
) -> CommitResult:
    """Return the result of a commit whose hooks did not all run, and name those that matter.

    Args:
        landed: The commit.
        hooks: Those registered.
        reason: Why they did not run, in words.
    """
    version, metadata = landed.ours.attempt_version, landed.ours.metadata
    has_files = names_files(landed.lines, landed.ours.files)
    missed = missed_hooks(hooks, version, metadata, reason, has_files=has_files)
    return replace(result_of(landed), hooks=missed)


def result_of(landed: Landed) -> CommitResult:
    """Return the result of a commit after which no hook has run yet."""
    return CommitResult(
        version=landed.ours.attempt_version,
        txn_id=landed.ours.commit_info.txn_id or "",
        attempts=landed.attempts,
        elapsed_ms=landed.elapsed_ms,
        isolation_level=landed.ours.isolation_level.value,
    )
