"""`CommitListener`: what a table's handle does for the transactions that it started."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from optimist.core.log.file_sums import ReadFiles
from optimist.core.log.many_files import ManyFiles
from optimist.core.protocol.actions import Action
from optimist.core.snapshot import Snapshot
from optimist.core.transaction.conflicts.ours_and_theirs import Theirs
from optimist.core.transaction.hooks.hooks import CommittedTransaction, HookOutcome, PostCommitHook

__all__ = ["CommitListener"]


class CommitListener(Protocol):
    """Is told of a commit before each attempt and after it has landed.

    A transaction keeps nothing beyond its own end. The listener keeps what must be known
    afterwards: the newest snapshot, the versions tried, the work left to the background.
    """

    def note_attempt(self, txn_id: str, version: int) -> None:
        """Remember that a transaction is about to try a version: its outcome may stay unknown."""

    def update_after_commit(
        self,
        base: Snapshot,
        winners: Sequence[Theirs],
        version: int,
        actions: tuple[Action, ...],
        files: ManyFiles | None = None,
        *,
        read: ReadFiles | None = None,
    ) -> Snapshot | None:
        """Take note of a commit, and return the table at its version.

        The snapshot is built from what is known. Only if that fails, it is read from the log. The
        commit has landed, so nothing is raised: None means that the log could not be read either.

        Args:
            base: The snapshot that the transaction started from.
            winners: The commits between that and ours.
            version: The version of our commit.
            actions: What our commit wrote, commitInfo first where there is one.
            files: The files that it wrote as columns, if it did.
            read: What the transaction knows of the files of `base`; None for nothing.
        """

    def run_hooks(
        self, registered: Sequence[PostCommitHook], committed: CommittedTransaction
    ) -> tuple[HookOutcome, ...]:
        """Run the hooks of every commit, then those registered. No failure undoes the commit."""
