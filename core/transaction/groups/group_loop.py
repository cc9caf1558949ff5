"""`GroupLoop`: the attempts of a group, which is one commit of several transactions.

It is the commit loop of any transaction, with two differences. After a lost race each member is
checked against the winners by itself, and one that conflicts ends alone. And where the thread that
makes the attempts is interrupted, the others must be told what is known of theirs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from optimist.core.data.table_ref import TableRef
from optimist.core.errors import CommitOutcomeUnknownError
from optimist.core.plugins.logstore import PutOutcome
from optimist.core.transaction.commit_loop import CommitLoop, Landed, Rebased
from optimist.core.transaction.conflicts.closer_look import CloserLook
from optimist.core.transaction.conflicts.ours_and_theirs import Ours
from optimist.core.transaction.groups.combined import combine
from optimist.core.transaction.groups.members import Member
from optimist.core.transaction.winners import read_winners

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
    """

    def __init__(
        self,
        table: TableRef,
        members: list[Member],
        txn_id: str,
        note_attempt: Callable[[str, int], None],
    ) -> None:
        # Appends have read nothing, so that a closer look at a winner could decide nothing.
        look = CloserLook(table, members[0].base, lambda _: None)
        super().__init__(table, txn_id, self._note_attempts, look)
        self.members = members
        self._note_each = note_attempt
        self._is_putting = False

    def run(self) -> Landed | None:
        """Try until the commit lands; None if every member ended in a conflict.

        Raises:
            OptimistError: As `do_commit_retry_iteratively`; it is the outcome of all members left.
        """
        try:
            return self.do_commit_retry_iteratively(self._combined())
        except _NobodyLeft:
            return None

    def do_commit(self, ours: Ours) -> PutOutcome:
        """See `CommitLoop.do_commit`."""
        self._is_putting = True
        outcome = super().do_commit(ours)
        self._is_putting = False
        return outcome

    def check_for_conflicts(self, ours: Ours) -> Rebased:
        """See `CommitLoop.check_for_conflicts`; here a conflict ends its own member only."""
        winners = read_winners(self._table, ours)
        rebased = [member.pass_winners(winners, self._table) for member in self.members]
        landed = next((each for each in rebased if each is not None and each.has_landed), None)
        if landed is not None:
            version = landed.ours.attempt_version
            return replace(landed, ours=replace(ours, attempt_version=version))
        self.members = [member for member in self.members if member.outcome is None]
        return Rebased(self._combined(), winners)

    def unknown_if_putting(self) -> CommitOutcomeUnknownError | None:
        """What the others are told after an interrupt; None if certainly nothing was committed."""
        if not self._is_putting:
            return None
        ours = self._combined()
        reason = "the thread that committed for several was interrupted"
        return self.file_of(ours).unknown(reason)

    def _combined(self) -> Ours:
        if not self.members:
            raise _NobodyLeft
        return combine([member.ours for member in self.members], self._txn_id)

    def _note_attempts(self, txn_id: str, version: int) -> None:
        for each in {txn_id, *(member.txn_id for member in self.members)}:
            self._note_each(each, version)
