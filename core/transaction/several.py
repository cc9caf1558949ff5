"""`SeveralSteps`: a block of several operations, which makes one commit (spec 1.18).

1. Each operation is a step: a transaction on the table as the steps before it leave it.
2. A step that is done is staged: the next one sees what it did. Nothing is in the log yet.
3. The commit has what all steps come to (`staged`), depends on all that any of them has read of the
   version at which the block began, and is made as any other: checked against the commits that
   landed meanwhile, moved past them, put. No step runs twice.
4. If the block is given up, or its commit fails for certain, the files of all steps go.

A step that ends in an error is not staged, and what it has read counts all the same.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from optimist.core.data.table_ref import TableRef
from optimist.core.errors import UsageError
from optimist.core.forking import ForkSafeLock
from optimist.core.protocol.actions import Metadata, Protocol
from optimist.core.snapshot import Snapshot
from optimist.core.transaction.commit_outcome import CommitOutcome
from optimist.core.transaction.committer import Committer, ended_transaction, forked_transaction
from optimist.core.transaction.conflicts.reads import ReadTracker
from optimist.core.transaction.hooks.hooks import PostCommitHook
from optimist.core.transaction.identity_marks import IDENTITY_ONLY, are_same_but_for_marks
from optimist.core.transaction.optimistic import OptimisticTransaction
from optimist.core.transaction.pending_metadata import PendingMetadata
from optimist.core.transaction.result import CommitResult
from optimist.core.transaction.staged import (
    StagedStep,
    folded_actions,
    new_files,
    whole_operation,
)
from optimist.core.transaction.step import StepCommitter

__all__ = ["SeveralSteps"]


@dataclass(frozen=True, slots=True)
class _Begun:
    """A step that has begun, whether or not it was staged."""

    txn: OptimisticTransaction
    committer: StepCommitter


@dataclass(frozen=True, slots=True)
class _Staged:
    """The steps that are done, and the table after them."""

    snapshot: Snapshot
    steps: tuple[StagedStep, ...] = ()


class SeveralSteps:
    """One block of several operations. Single use, and for one thread.

    Args:
        table: The table.
        snapshot: The version at which the block begins.
        committer: Commits what all steps come to.
        hooks: What is to run after the commit, beside the hooks of the steps.
    """

    def __init__(
        self,
        table: TableRef,
        snapshot: Snapshot,
        committer: Committer,
        hooks: Sequence[PostCommitHook] = (),
    ) -> None:
        self._table = table
        self._snapshot = snapshot
        self._committer = committer
        self._hooks = hooks
        self._begun: list[_Begun] = []
        self._staged = _Staged(snapshot)
        self._is_closed = False
        self._staging = ForkSafeLock()  # around each step's staging, and the end of it
        self._process = os.getpid()

    @property
    def read_version(self) -> int:
        """The version at which the block began, or -1 when there is no table yet."""
        return self._snapshot.version

    @property
    def result(self) -> CommitResult | None:
        """Its commit once it has landed, even if a hook's failure was raised, or None."""
        return self._committer.result

    @property
    def provisional(self) -> Snapshot:
        """The table after the steps so far.

        Raises:
            UsageError: The block has ended.
        """
        self._ensure_open()
        return self._staged.snapshot

    def begin_step(self) -> OptimisticTransaction:
        """Start a transaction after the steps so far, whose commit is the next step.

        Raises:
            UsageError: The block has ended.
        """
        base = self.provisional
        committer = StepCommitter(self._table.clock.new_uuid(), partial(self._stage_step, base))
        txn = OptimisticTransaction(self._table, base, committer)
        self._begun.append(_Begun(txn, committer))
        return txn

    def commit_steps(self, user_metadata: str | None = None) -> CommitResult | None:
        """Commit the steps, as `OptimisticTransaction.commit` does.

        Args:
            user_metadata: Text for the history.

        Returns:
            The commit; None where there is no step.
        """
        is_ours = False
        try:
            with self._staging:  # a step of another thread is in the commit, or is refused
                self._ensure_open()
                is_ours = self._is_closed = True
                steps = self._staged.steps
            if not steps:
                return None
            reads = self._reads_of_steps()
            pending, tags = self._metadata_after_steps(), self._tags_of_steps()
            txn = OptimisticTransaction(
                self._table, self._snapshot, self._committer, reads=reads, pending=pending
            )
            for hook in (*self._hooks, *(hook for step in steps for hook in step.hooks)):
                txn.register_post_commit_hook(hook)
            return txn.commit(folded_actions(steps), whole_operation(steps, user_metadata), tags)
        except BaseException:
            if is_ours and self._committer.outcome is CommitOutcome.NOT_COMMITTED:
                self.give_up()
            raise
        finally:
            if is_ours and self._committer.outcome is CommitOutcome.COMMITTED:
                self._release_files()

    def give_up(self) -> None:
        """End the block without a commit, and remove what its steps have written.

        In a forked child this does nothing: the block is the parent's, which may commit it.
        """
        if self._process != os.getpid():
            return
        self._is_closed = True
        for each in self._begun:
            if each.committer.written is not None:
                each.committer.written.remove()
        self._release_files()

    def _release_files(self) -> None:
        """End the intents of the steps, which guard their files for as long as they are staged."""
        for each in self._begun:
            written = each.committer.written
            if written is not None and each.committer.outcome is CommitOutcome.STAGED:
                written.release()

    def _ensure_open(self) -> None:
        if self._process != os.getpid():
            raise forked_transaction()
        if self._is_closed:
            raise ended_transaction(self._committer)

    def _stage_step(self, base: Snapshot, done: StagedStep) -> int:
        """Take a step that was begun on `base`, and return the version that will be tried first."""
        with self._staging:
            return self._stage_after(base, done)

    def _stage_after(self, base: Snapshot, done: StagedStep) -> int:
        self._ensure_open()
        if base is not self._staged.snapshot:
            raise UsageError(
                f"Another step of the transaction came before {done.operation.name}, which has not "
                "seen it. It did nothing. Do the steps one after the other, in one thread.",
                kind="OPTIMIST_STEPS_OUT_OF_ORDER",
                operation=done.operation.name,
            )
        after = base.provisional(self.read_version + 1, done.actions)
        steps = (*self._staged.steps, done)
        self._ensure_feed_can_tell(steps, after)
        self._staged = _Staged(after, steps)  # in one go: an interrupt finds it done or not
        return after.version

    def _ensure_feed_can_tell(self, steps: tuple[StagedStep, ...], after: Snapshot) -> None:
        """Refuse changes of rows that the change data feed of one commit could not tell."""
        of_rows = [step for step in steps if step.changes_rows]
        was_on = any(step.recorded for step in of_rows)
        has_feed = was_on or after.properties.enable_change_data_feed
        is_one = len(of_rows) == 1 and of_rows[0].recorded
        if not has_feed or is_one or all(step.only_appends for step in of_rows):
            return
        raise UsageError(
            f"{steps[-1].operation.name} can't be a step of this transaction: the table records "
            "its changes (delta.enableChangeDataFeed), and the feed of one commit can't tell that "
            "a row changed more than once. It did nothing. On such a table a transaction has any "
            "number of appends, or one other operation that changes rows.",
            kind="OPTIMIST_CHANGE_FEED_IN_TRANSACTION",
            operation=steps[-1].operation.name,
        )

    def _reads_of_steps(self) -> ReadTracker:
        """Collect what all steps have read of the version, those included that have failed."""
        tracker, new = ReadTracker(), new_files(self._staged.steps)
        for each in self._begun:
            # A predicate is judged by the columns of the version that the block began at.
            as_then = self.read_version < 0 or are_same_but_for_marks(
                self._snapshot.metadata, each.txn.snapshot.metadata
            )
            tracker.record(each.txn.reads.of_version(new, by_predicate=as_then))
        if self.read_version >= 0 and tracker.freeze().has_read_files:
            _ = self._snapshot.num_files  # so that they are held against the checksum
        return tracker

    def _metadata_after_steps(self) -> PendingMetadata:
        """Return the metadata and the protocol as the steps leave them, where they change."""
        exists, after = self.read_version >= 0, self._staged.snapshot
        has_set = {type(each) for step in self._staged.steps for each in step.actions}
        is_metadata_new = Metadata in has_set and not (
            exists and after.metadata == self._snapshot.metadata
        )
        is_protocol_new = not exists or (
            Protocol in has_set and after.protocol != self._snapshot.protocol
        )
        return PendingMetadata(
            self._table,
            self._snapshot,
            new_metadata=after.metadata if is_metadata_new else None,
            new_protocol=after.protocol if is_protocol_new else None,
        )

    def _tags_of_steps(self) -> dict[str, str]:
        """Return the tags of all steps. The one for identity marks must be true of the whole."""
        tags = {name: text for step in self._staged.steps for name, text in step.tags.items()}
        tags.pop(IDENTITY_ONLY, None)
        before, after = self._snapshot.metadata, self._staged.snapshot.metadata
        is_changed = self.read_version >= 0 and before != after
        if is_changed and are_same_but_for_marks(before, after):
            tags[IDENTITY_ONLY] = "true"
        return tags
