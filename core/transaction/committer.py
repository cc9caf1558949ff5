"""`Committer`: where the commit of a transaction goes.

A transaction reads, decides, and hands a `CommitRequest` to its committer. `LogCommitter` puts it
into the log; `StepCommitter` stages it as one operation of a block (spec 1.18).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from optimist.core.errors import UsageError
from optimist.core.protocol.actions import Action
from optimist.core.transaction.commit_files import CommitFiles
from optimist.core.transaction.commit_outcome import CommitOutcome
from optimist.core.transaction.conflicts.operations import Operation
from optimist.core.transaction.conflicts.reads import Reads
from optimist.core.transaction.hooks.hooks import PostCommitHook
from optimist.core.transaction.prepare import Draft
from optimist.core.transaction.result import CommitResult

__all__ = ["CommitRequest", "Committer", "ended_transaction", "forked_transaction"]


@dataclass(frozen=True, slots=True)
class CommitRequest:
    """What one transaction asks to have committed.

    Attributes:
        draft: The actions and the operation, with the metadata and protocol that they bring.
        reads: What the transaction has read.
        tags: Tags for commitInfo; None for none.
        hooks: What is to run after the commit.
        written: The files that the commit names for the first time, if its caller looks after
            them. None where the caller wrote none.
    """

    draft: Draft
    reads: Reads
    tags: Mapping[str, str] | None = None
    hooks: Sequence[PostCommitHook] = ()
    written: CommitFiles | None = None


class Committer(Protocol):
    """Commits what one transaction asks for. Single use.

    Attributes:
        txn_id: The transaction's id.
        outcome: What is known of the commit now. It is right at any moment, so that files may be
            removed or kept by it after an error or an interrupt, whatever that was.
        version: The version of the commit, once it is known to be in the table.
        result: The commit, once it has landed, even if a hook's failure was raised.
    """

    txn_id: str
    outcome: CommitOutcome
    version: int | None
    result: CommitResult | None

    def ensure_accepts(self, actions: Sequence[Action], operation: Operation) -> None:
        """Refuse an operation that can't be committed here, before anything is prepared.

        Raises:
            UsageError: It can't be (kind `OPTIMIST_NOT_A_STEP`).
        """

    def commit(self, request: CommitRequest) -> CommitResult:
        """Commit the actions, even if there are none."""

    def commit_if_needed(self, request: CommitRequest) -> CommitResult | None:
        """Commit the actions, unless there are none and the table allows to skip the commit."""

    def commit_large(self, request: CommitRequest) -> CommitResult:
        """Commit as the next version or not at all (spec 1.16)."""


def ended_transaction(committer: Committer) -> UsageError:
    """Return the error for the use of a transaction that has ended."""
    if committer.outcome is CommitOutcome.COMMITTED:
        return UsageError(
            f"Transaction already committed. Its commit is version {committer.version}. "
            "Start a new transaction.",
            kind="OPTIMIST_TRANSACTION_ALREADY_COMMITTED",
            version=committer.version,
        )
    return UsageError(
        f"The transaction has ended {_describe_end(committer)}, and can't be used again. Start a "
        "new transaction.",
        kind="OPTIMIST_TRANSACTION_FAILED",
    )


def forked_transaction() -> UsageError:
    """Return the error for the use of a transaction of the parent in a forked child.

    Both would commit under one id. Whoever comes second would take the other's commit for its own.
    """
    return UsageError(
        "The transaction was begun by the process that this one was forked from, and is that "
        "process's to commit. Nothing was written. Begin another one.",
        kind="OPTIMIST_TRANSACTION_FAILED",
    )


def _describe_end(committer: Committer) -> str:
    if committer.outcome is CommitOutcome.NOT_COMMITTED:
        return "without a commit"
    if committer.outcome is CommitOutcome.STAGED:
        return "as one of several operations, which are committed together"
    asked = f"DeltaLog.resolve_commit({committer.txn_id!r})"
    return f"without an answer; its commit may be in the table: ask {asked} first"
