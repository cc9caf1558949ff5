"""`SeveralSteps`: a transaction of several operations, which makes one commit (spec 1.18).

1. Each operation is a `Step`, a transaction on the table as the steps before it leave it.
2. A step that is done is staged: the next one sees what it did. Nothing is in the log yet.
3. The commit has what all steps come to (`staged`), depends on all that any of them has read of the
   version at which the transaction began, and is made as any other: checked against the commits
   that landed meanwhile, moved past them, put. No step runs twice.
4. If the transaction is given up, or its commit fails for certain, the files of all steps go.

A step that ends in an error is not staged, and what it has read counts all the same.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from optimist.core.data.table_ref import TableRef
from optimist.core.errors import UsageError
from optimist.core.protocol.actions import Metadata, Protocol
from optimist.core.snapshot import Snapshot
from optimist.core.transaction.conflicts.reads import ReadTracker
from optimist.core.transaction.identity_marks import IDENTITY_ONLY, are_same_but_for_marks
from optimist.core.transaction.listener import CommitListener
from optimist.core.transaction.optimistic import OptimisticTransaction
from optimist.core.transaction.result import CommitResult
from optimist.core.transaction.staged import (
    StagedStep,
    folded_actions,
    new_files,
    whole_operation,
)
from optimist.core.transaction.step import Step

__all__ = ["SeveralSteps"]


@dataclass(frozen=True, slots=True)
class _Staged:
    """The steps that are done, and the table after them."""

    snapshot: Snapshot
    steps: tuple[StagedStep, ...] = ()


class SeveralSteps(OptimisticTransaction):
    """One transaction of several operations; single use, and for one thread."""

    def __init__(self, table: TableRef, snapshot: Snapshot, listener: CommitListener) -> None:
        super().__init__(table, snapshot, listener)
        self._begun: list[Step] = []
        self._staged = _Staged(snapshot)
        self._process = os.getpid()

    @property
    def provisional(self) -> Snapshot:
        """The table after the steps so far.

        Raises:
            UsageError: The transaction has ended.
        """
        self._ensure_open()
        return self._staged.snapshot

    def begin_step(self) -> Step:
        """A transaction on the table after the steps so far, whose commit is the next step.

        Raises:
            UsageError: The transaction has ended.
        """
        step = Step(self.table, self.provisional, self._listener, self._stage)
        self._begun.append(step)
        return step

    def commit_steps(self, user_metadata: str | None = None) -> CommitResult | None:
        """Commit the steps; see `OptimisticTransaction.commit`.

        Args:
            user_metadata: Text for the history.

        Returns:
            The commit; None where there is no step.
        """
        self._ensure_open()
        steps = self._staged.steps
        try:
            if not steps:
                self._is_closed = True
                return None
            self._reads = self._reads_of_steps()
            tags = self._adopt_steps()
            return self.commit(folded_actions(steps), whole_operation(steps, user_metadata), tags)
        except BaseException:
            if not self.may_be_in_table:
                self.give_up()
            raise
        finally:
            if self.has_landed:
                self._release_files()

    def give_up(self) -> None:
        """End the transaction without a commit, and remove what its steps have written.

        In a forked child this does nothing: the transaction is the parent's, which may commit it.
        """
        if self._process != os.getpid():
            return
        self._is_closed = True
        for step in self._begun:
            step.undo()
        self._release_files()

    def _release_files(self) -> None:
        """End the intents of the steps, which guard their files for as long as they are staged."""
        for step in self._begun:
            if step.is_staged:
                step.release()

    def _ensure_open(self) -> None:
        if self._process != os.getpid():
            raise UsageError(
                "The transaction was begun by the process that this one was forked from, and is "
                "that process's to commit. Nothing was written. Begin another one.",
                kind="OPTIMIST_TRANSACTION_FAILED",
            )
        super()._ensure_open()

    def _stage(self, step: Step, done: StagedStep) -> int:
        self._ensure_open()
        if step.snapshot is not self._staged.snapshot:
            raise UsageError(
                f"Another step of the transaction came before {done.operation.name}, which has not "
                "seen it. It did nothing. Do the steps one after the other, in one thread.",
                kind="OPTIMIST_STEPS_OUT_OF_ORDER",
                operation=done.operation.name,
            )
        after = step.snapshot.provisional(self.read_version + 1, done.actions)
        steps = (*self._staged.steps, done)
        self._ensure_feed_can_tell(steps, after)
        for hook in step.hooks:
            self.register_post_commit_hook(hook)
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
        """All that steps have read, those included that ended in an error, of the version."""
        tracker, new = ReadTracker(), new_files(self._staged.steps)
        for step in self._begun:
            # A predicate is judged by the columns of the version that the transaction began at.
            as_then = self.read_version < 0 or are_same_but_for_marks(
                self.snapshot.metadata, step.snapshot.metadata
            )
            tracker.record(step.reads.of_version(new, by_predicate=as_then))
        if self.read_version >= 0 and tracker.freeze().has_read_files:
            _ = self.snapshot.files  # so that they are held against the checksum
        return tracker

    def _adopt_steps(self) -> dict[str, str]:
        """Take over the metadata and the protocol as the steps leave them; the tags of all."""
        exists, after = self.read_version >= 0, self._staged.snapshot
        has_set = {type(each) for step in self._staged.steps for each in step.actions}
        if Metadata in has_set and not (exists and after.metadata == self.snapshot.metadata):
            self._new_metadata = after.metadata
        if not exists or (Protocol in has_set and after.protocol != self.snapshot.protocol):
            self._new_protocol = after.protocol
        tags = {name: text for step in self._staged.steps for name, text in step.tags.items()}
        tags.pop(IDENTITY_ONLY, None)
        changed = self._new_metadata
        if exists and changed and are_same_but_for_marks(self.snapshot.metadata, changed):
            tags[IDENTITY_ONLY] = "true"
        return tags
