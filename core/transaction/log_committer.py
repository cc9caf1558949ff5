"""`LogCommitter`: puts a transaction's commit into the table's log (spec 1.12 to 1.16)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from optimist.core.data.table_ref import TableRef
from optimist.core.errors import NOTHING_COMMITTED
from optimist.core.protocol.actions import Action
from optimist.core.protocol.properties import IsolationLevel
from optimist.core.runtime.observers import observed
from optimist.core.snapshot import Snapshot
from optimist.core.transaction.after_commit import finish_commit, raise_loud
from optimist.core.transaction.commit_files import CommitFiles
from optimist.core.transaction.commit_loop import CommitLoop, Landed
from optimist.core.transaction.commit_outcome import CommitOutcome
from optimist.core.transaction.committer import CommitRequest
from optimist.core.transaction.conflicts.closer_look import CloserLook
from optimist.core.transaction.conflicts.operations import Operation
from optimist.core.transaction.conflicts.ours_and_theirs import Ours
from optimist.core.transaction.groups.queue import CommitQueue
from optimist.core.transaction.large_commit import LargeCommitLoop, as_large
from optimist.core.transaction.listener import CommitListener
from optimist.core.transaction.prepared_commit import prepared_commit
from optimist.core.transaction.result import CommitResult

__all__ = ["LogCommitter"]


class LogCommitter:
    """Commits one transaction to the log. Single use, and for one thread; see `Committer`.

    Args:
        table: The table.
        snapshot: The version that the transaction read.
        listener: The table's handle, which is told of the attempts and of the commit.
        queue: Where appends wait to be committed together; None if they do not.
    """

    def __init__(
        self,
        table: TableRef,
        snapshot: Snapshot,
        listener: CommitListener,
        queue: CommitQueue | None = None,
    ) -> None:
        self.txn_id = table.clock.new_uuid()
        self.outcome = CommitOutcome.NOT_COMMITTED
        self.version: int | None = None
        self.result: CommitResult | None = None
        self._table = table
        self._snapshot = snapshot
        self._listener = listener
        self._queue = queue
        self._num_attempts = 0

    def ensure_accepts(self, actions: Sequence[Action], operation: Operation) -> None:
        """Accept every operation."""
        del actions, operation

    def commit(self, request: CommitRequest) -> CommitResult:
        """Commit the actions as the next version."""
        with self._observed(request):
            return self._land(self.prepare(request), request)

    def commit_if_needed(self, request: CommitRequest) -> CommitResult | None:
        """Commit the actions, or skip an empty commit where the level allows it (spec 1.5)."""
        with self._observed(request):
            ours = self.prepare(request)
            return None if self._may_be_skipped(ours) else self._land(ours, request)

    def commit_large(self, request: CommitRequest) -> CommitResult:
        """Commit as the next version or not at all (spec 1.16)."""
        with self._observed(request):
            ours = as_large(self.prepare(request))
            with self._attempts(request, LargeCommitLoop) as loop:
                landed = loop.do_commit_retry_iteratively(ours)
            return self._post_commit(landed, request, is_large=True)

    @contextmanager
    def _observed(self, request: CommitRequest) -> Iterator[None]:
        """Tell observers of the commit, however it ends."""
        with observed("commit", self._table.table_path) as facts:
            try:
                yield
            finally:
                facts["operation"] = request.draft.operation.name
                facts["outcome"] = self.outcome.value
                facts["attempts"] = self._num_attempts
                if self.version is not None:
                    facts["version"] = self.version

    def prepare(self, request: CommitRequest) -> Ours:
        """Check the request, and return the commit as it is first tried."""
        return prepared_commit(request.draft, request.reads, txn_id=self.txn_id, tags=request.tags)

    def make_loop(self, written: CommitFiles, kind: type[CommitLoop] = CommitLoop) -> CommitLoop:
        """Return a loop that has not begun, for a commit that looks after these files."""
        look = CloserLook(self._table, self._snapshot, written)
        return kind(self._table, self.txn_id, self._note_attempt, look)

    def _note_attempt(self, txn_id: str, version: int) -> None:
        self._num_attempts += 1
        self._listener.note_attempt(txn_id, version)

    def _land(self, ours: Ours, request: CommitRequest) -> CommitResult:
        if self._queue is not None and not request.hooks and self._queue.accepts(ours):
            return self._land_in_group(ours, self._queue)
        with self._attempts(request) as loop:
            landed = loop.do_commit_retry_iteratively(ours)
        return self._post_commit(landed, request)

    def _land_in_group(self, ours: Ours, queue: CommitQueue) -> CommitResult:
        # Another thread may be at work on it, so an interrupt of this one settles nothing.
        self.outcome = CommitOutcome.UNKNOWN
        try:
            result = queue.commit(ours, self._snapshot)
        except NOTHING_COMMITTED:
            self.outcome = CommitOutcome.NOT_COMMITTED
            raise
        return self._note_result(result)

    @contextmanager
    def _attempts(
        self, request: CommitRequest, kind: type[CommitLoop] = CommitLoop
    ) -> Iterator[CommitLoop]:
        """Make the attempts, and note afterwards what is known of the commit, whatever came up."""
        written = request.written or CommitFiles(self._table, self._snapshot)
        loop = self.make_loop(written, kind)
        try:
            self.outcome = CommitOutcome.UNKNOWN
            yield loop
        except NOTHING_COMMITTED:
            if loop.landed is None:
                self.outcome = CommitOutcome.NOT_COMMITTED
            raise
        except BaseException:
            if not loop.may_be_in_table:
                self.outcome = CommitOutcome.NOT_COMMITTED
            raise
        finally:
            if loop.landed is not None:
                self._note_version(loop.landed.ours.attempt_version)
            if request.written is None:  # nobody else looks after what a rebase has written
                written.settle(self.outcome)

    def _post_commit(
        self, landed: Landed, request: CommitRequest, *, is_large: bool = False
    ) -> CommitResult:
        """Bring the table's handle up to date and run the hooks, after the commit."""
        return self._note_result(
            finish_commit(
                self._table,
                self._listener,
                self._snapshot,
                landed,
                hooks=request.hooks,
                is_large=is_large,
            )
        )

    def _note_version(self, version: int) -> None:
        self.version = version
        self.outcome = CommitOutcome.COMMITTED  # last: who sees it may ask for the version

    def _note_result(self, result: CommitResult) -> CommitResult:
        self._note_version(result.version)
        self.result = result
        self._num_attempts = result.attempts  # a group counts its own
        return raise_loud(result, self._table.options)

    def _may_be_skipped(self, ours: Ours) -> bool:
        # Delta's rule (spec 1.5): an empty commit keeps the level WriteSerializable only where its
        # operation says that it changes data, and such a commit is recorded.
        skippable = (IsolationLevel.SNAPSHOT_ISOLATION, IsolationLevel.SERIALIZABLE)
        enabled = self._table.options.skip_recording_empty_commits
        is_empty = not (ours.actions or ours.files)
        return is_empty and enabled and ours.isolation_level in skippable
