"""`CommitQueue`: the threads that wait to append to one table, and who commits for them.

There is no thread in the background. Of the threads that wait, one leads at a time:

1. A transaction that may join (`may_join`) enters the queue.
2. While another thread leads, it waits; a leader may settle it meanwhile.
3. Otherwise it leads: it takes those at the head of the queue that go together, within the bounds
   of the options, and moves each past the commits that landed since it began.
4. It commits them as one version (`group_loop`), and runs the hooks once.
5. It ends its lead: each member that was taken is told its outcome, by the evidence alone
   (`GroupLoop.known_outcome`). All waiting threads wake up. Those with an outcome return. Those of
   which nothing was sent are at the head of the queue again, and one of them leads.

So no thread waits for others to come: a thread that is alone commits at once, and threads that come
meanwhile go with the next group.

An interrupt ends the wait of its own thread only. A transaction that was not taken leaves the queue
and is certainly not committed. One that was taken is in no further put (`Member.has_left`). If the
interrupt strikes the leader, step 5 is still done. So no thread is told of a success or a failure
of another, and nothing that may be in the table is put a second time.

In a forked child the queue is empty but for the transaction of the forking thread.
"""

from __future__ import annotations

import copy
import logging
import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import replace

from optimist.core.data.table_ref import TableRef
from optimist.core.errors import CommitOutcomeUnknownError, OptimistError, StorageError
from optimist.core.forking import ForkSafeLock, renew_in_child
from optimist.core.runtime.begun_changes import note_change_begun
from optimist.core.snapshot import Snapshot
from optimist.core.transaction.after_commit import finish_commit
from optimist.core.transaction.commit_lock import is_commit_lock_held_here
from optimist.core.transaction.commit_loop import Landed
from optimist.core.transaction.conflicts.ours_and_theirs import Ours
from optimist.core.transaction.groups.group_loop import GroupLoop
from optimist.core.transaction.groups.members import Member, may_join
from optimist.core.transaction.groups.recent_commits import RecentCommits
from optimist.core.transaction.listener import CommitListener
from optimist.core.transaction.result import CommitResult

__all__ = ["CommitQueue"]

_LOG = logging.getLogger(__name__)


class CommitQueue:
    """The queue of one handle. Threads may share it."""

    def __init__(self, table: TableRef, listener: CommitListener) -> None:
        self._table = table
        self._listener = listener
        self._recent = RecentCommits()
        self._mutex = ForkSafeLock()  # not the condition's own entry, which an interrupt can split
        self._turn = threading.Condition(self._mutex)
        self._waiting: deque[Member] = deque()
        self._taken: list[Member] = []
        self._loop: GroupLoop | None = None
        self._leader = 0
        renew_in_child(self, CommitQueue._renew)

    @property
    def num_waiting(self) -> int:
        """How many transactions wait and were not taken yet."""
        return len(self._waiting)

    def accepts(self, ours: Ours) -> bool:
        """Return whether a transaction may be committed by another thread, together with others."""
        if self._leader == threading.get_ident():
            return False
        # A thread that holds the commit lock must commit by itself: a leader would wait for it.
        return may_join(ours) and not is_commit_lock_held_here(self._table)

    def commit(self, ours: Ours, base: Snapshot) -> CommitResult:
        """Commit a transaction that `accepts` let in, alone or with others.

        Args:
            ours: The transaction as it is first tried.
            base: The version that it started from.

        Raises:
            OptimistError: As `CommitLoop.do_commit_retry_iteratively`. Members of one group get the
                same error, but for a conflict, which only its own member gets.
            StorageError: Others held the queue for all of the retry budget (kind
                `OPTIMIST_COMMIT_LOCK_BUSY`). Nothing was committed.
        """
        member = Member(ours, base)
        note_change_begun()
        try:
            with self._mutex:
                self._waiting.append(member)
            while (outcome := self._await(member)) is None:
                self._lead(self._take_group())
                self._end_lead()
        except BaseException:
            self._leave(member)
            raise
        if isinstance(outcome, OptimistError):
            raise copy.copy(outcome) from outcome  # several threads may be told of one error
        return outcome

    def _await(self, member: Member) -> CommitResult | OptimistError | None:
        """Wait for the member's outcome, or return None if this thread is to lead instead."""
        budget_s = self._table.options.retry_policy.budget_s
        with self._mutex:
            while member.outcome is None:
                if not self._leader:
                    self._leader = threading.get_ident()
                    return None
                is_taken = member not in self._waiting
                in_time = self._turn.wait(None if is_taken else budget_s)
                # One that was taken waits on: its leader has limits of its own.
                if not in_time and member in self._waiting:
                    # In one step: whoever is told that nothing was committed can't be taken now.
                    self._waiting.remove(member)
                    raise _queue_is_busy(self._table.table_path, budget_s)
            return member.outcome

    def _end_lead(self) -> None:
        """Tell all that were taken what is known of them, and let another thread lead."""
        with self._mutex:
            if self._leader == threading.get_ident():
                self._settle_by_evidence()
                open_ = [each for each in self._taken if each.outcome is None and not each.has_left]
                rest = [member for member in self._waiting if member not in open_]
                self._waiting = deque([*open_, *rest])
                self._taken, self._loop = [], None
                self._turn.notify_all()
                self._leader = 0  # last: an interrupt before it has all of this done again

    def _settle_by_evidence(self) -> None:
        known = None if self._loop is None else self._loop.known_outcome()
        if self._loop is not None and known is not None:
            _settle(self._loop.members, known)

    def _leave(self, member: Member) -> None:
        with self._mutex:
            member.has_left = True
            self._end_lead()
            if member in self._waiting:
                self._waiting.remove(member)
            elif member.outcome is None or isinstance(member.outcome, CommitOutcomeUnknownError):
                _LOG.warning(
                    "Interrupted while transaction %s was committed with others. Ask "
                    "DeltaLog.resolve_commit(%r) whether it landed.",
                    member.txn_id,
                    member.txn_id,
                )

    def _take_group(self) -> list[Member]:
        """Take the first in the queue, and those behind it that go with it."""
        options = self._table.options
        group: list[Member] = []
        rest: deque[Member] = deque()
        num_actions = size_bytes = 0
        with self._mutex:
            for member in self._waiting:
                num_actions += len(member.ours.actions)
                size_bytes += member.size_bytes
                fits = (
                    num_actions <= options.group_commit_max_actions
                    and size_bytes <= options.group_commit_max_bytes
                )
                if not group or (fits and member.goes_with(group)):
                    group.append(member)
                else:
                    rest.append(member)
            # In this order: wherever an interrupt strikes, each member is in one of the two.
            self._taken = group
            self._waiting = rest
        return group

    def _lead(self, group: Sequence[Member]) -> None:
        """Commit the group as one version, as far as its members do not end in conflicts."""
        try:
            members = self._move_to_one_version(group)
            if members:
                self._loop = loop = self._loop_of(members)
                landed = loop.run()
                if landed is not None:
                    self._finish(landed, loop.members)
        except OptimistError as error:
            _settle(group, error)

    def _loop_of(self, members: list[Member]) -> GroupLoop:
        alone = len(members) == 1
        txn_id = members[0].txn_id if alone else self._table.clock.new_uuid()
        return GroupLoop(self._table, members, txn_id, self._listener.note_attempt, self._mutex)

    def _move_to_one_version(self, group: Sequence[Member]) -> list[Member]:
        """Check each member against the commits since it began. Keep those without a conflict."""
        oldest = min((member.ours for member in group), key=lambda ours: ours.attempt_version)
        newest = max(member.ours.attempt_version for member in group)
        winners = self._recent.since(oldest, newest, self._table)
        for member in group:
            member.pass_winners(winners, self._table)
        return [member for member in group if member.outcome is None]

    def _finish(self, landed: Landed, members: Sequence[Member]) -> None:
        """Do what follows a commit, and give its members the result."""
        newest = max(members, key=lambda member: member.base.version)
        seen = replace(landed, winners=newest.winners)
        self._recent.note(landed, self._table.clock)
        _settle(members, finish_commit(self._table, self._listener, newest.base, seen))

    def _renew(self) -> None:
        """Forget the parent's threads, in a forked child."""
        here = threading.get_ident()
        self._turn = threading.Condition(self._mutex)
        if self._leader != here:
            self._leader, self._taken, self._loop = 0, [], None
        self._waiting = deque(member for member in self._waiting if member.thread == here)


def _settle(members: Sequence[Member], outcome: CommitResult | OptimistError) -> None:
    for member in members:
        if member.outcome is None:
            member.outcome = outcome


def _queue_is_busy(table_path: str, budget_s: float) -> StorageError:
    return StorageError(
        f"Other commits of this process to {table_path} took the {budget_s:.0f} s that this commit "
        "could wait. Nothing was committed. Run the operation again when fewer writers are active, "
        "or raise optimist.commit.retry.budgetSeconds.",
        kind="OPTIMIST_COMMIT_LOCK_BUSY",
        name=table_path,
        elapsed_ms=round(budget_s * 1000),
        retryable=True,
    )
