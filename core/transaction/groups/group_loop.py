"""`GroupLoop`: the attempts of a group, which is one commit of several transactions.

It is the commit loop of any transaction, with three differences:

1. Before each put, members whose thread has given up are left out, and the version is noted for all
   others. Both happen in one step. So a member that gives up is either in no later put, or its
   version is noted and `DeltaLog.resolve_commit` can answer for it.
2. After a lost race each member is checked against the winners by itself. One that conflicts ends
   alone. If a winner holds some of them, only these have landed: nobody is told of a commit that
   does not name its transaction.
3. If the thread that makes the attempts is interrupted, the members of the last put are told what
   is known of it (`known_outcome`). If the store has confirmed the commit, it has landed. If the
   store has not answered, its outcome is unknown. Otherwise nothing of them is in the table, and
   another thread may commit them.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

from optimist.core.data.table_ref import TableRef
from optimist.core.errors import CommitOutcomeUnknownError
from optimist.core.protocol.actions import actions_from_bytes
from optimist.core.transaction.after_commit import result_without_hooks
from optimist.core.transaction.commit_files import CommitFiles
from optimist.core.transaction.commit_loop import (
    CommitLoop,
    Landed,
    Rebased,
    as_written,
)
from optimist.core.transaction.conflicts.closer_look import CloserLook
from optimist.core.transaction.conflicts.ours_and_theirs import Ours, Theirs
from optimist.core.transaction.groups.combined import combine
from optimist.core.transaction.groups.members import Member
from optimist.core.transaction.result import CommitResult

__all__ = ["GroupLoop"]


class _NobodyLeft(Exception):  # noqa: N818 - it ends a loop, and nobody is told of it
    """Every member has an outcome, and nothing of the group is in the table."""


class GroupLoop(CommitLoop):
    """The attempts of one group. Single use, and for one thread.

    Args:
        table: The table.
        members: The members, past the same winners; those that end in a conflict are dropped.
        txn_id: The id of the commit.
        note_attempt: As for `CommitLoop`; it is called for the commit and for each member.
        turn: Held while it is decided who is in a put; see `Member.has_left`.

    Attributes:
        members: Those of the put that was made last, or of the next one.
    """

    def __init__(
        self,
        table: TableRef,
        members: list[Member],
        txn_id: str,
        note_attempt: Callable[[str, int], None],
        turn: AbstractContextManager[object],
    ) -> None:
        # Appends have read nothing, so that a closer look at a winner could decide nothing.
        base = members[0].base
        look = CloserLook(table, base, CommitFiles(table, base))
        super().__init__(table, txn_id, note_attempt, look)
        self.members = members
        self._turn = turn

    def run(self) -> Landed | None:
        """Try until the commit lands, or return None if every member ended in a conflict.

        Raises:
            OptimistError: As `do_commit_retry_iteratively`; it is the outcome of all members left.
        """
        try:
            return self.do_commit_retry_iteratively(self._combine_members())
        except _NobodyLeft:
            return None

    def announce(self, ours: Ours) -> Ours:
        """Note the version for each member whose thread still waits; see `CommitLoop.announce`."""
        with self._turn:
            staying = [member for member in self.members if not member.has_left]
            if len(staying) < len(self.members):
                self.members = staying
                ours = self._combine_members()
            for each in {self._txn_id, *(member.txn_id for member in staying)}:
                self._note_attempt(each, ours.attempt_version)
        return ours

    def check_for_conflicts(self, ours: Ours) -> Rebased:
        """Check each member by itself: a conflict ends its own member only."""
        winners = self.read_winners(ours)
        rebased = [member.pass_winners(winners, self._table) for member in self.members]
        landed = [each for each in rebased if each is not None and each.has_landed]
        if landed:
            return self._landed_in(min(each.ours.attempt_version for each in landed), winners, ours)
        self.members = [member for member in self.members if member.outcome is None]
        return Rebased(self._combine_members(), winners)

    def as_put(self, ours: Ours, data: bytes) -> Ours:
        """Keep the members of the commit's file: some may have left since it was put."""
        path = self.file_of(ours).path
        actions = tuple(actions_from_bytes(data, path))
        winner = Theirs(ours.attempt_version, self._table.clock.now_ms(), actions)
        return self._landed_in(winner.version, (winner,), ours).ours

    def _landed_in(self, version: int, winners: tuple[Theirs, ...], ours: Ours) -> Rebased:
        """Keep the members that the winner of this version holds. The others are not in it."""
        winner = next(each for each in winners if each.version == version)
        self.members = [member for member in self.members if winner.holds(member.txn_id)]
        before = tuple(each for each in winners if each.version < version)
        return Rebased(as_written(ours, winner), before, has_landed=True)

    def known_outcome(self) -> CommitResult | CommitOutcomeUnknownError | None:
        """Return what the members may be told now, or None if nothing of them was committed."""
        if self.landed is not None:
            reason = "the thread that committed for several was interrupted"
            return result_without_hooks(self.landed, (), reason)
        if self.unanswered is not None:
            reason = "the thread that committed for several was interrupted"
            return self.unanswered.unknown(reason)
        return None

    def _combine_members(self) -> Ours:
        if not self.members:
            raise _NobodyLeft
        return combine([member.ours for member in self.members], self._txn_id)
