"""A commit that can't be moved past another: no conflict checks, any winner ends it (spec 1.16)."""

from __future__ import annotations

from dataclasses import replace

from optimist.core.errors import ConcurrentWriteException, Conflict, LogFileNotFoundError
from optimist.core.errors.foreign_text import shown
from optimist.core.log.commits import read_commit
from optimist.core.protocol.properties import IsolationLevel
from optimist.core.transaction.commit_loop import CommitLoop, Rebased, as_written
from optimist.core.transaction.conflicts.ours_and_theirs import Ours, Theirs

__all__ = ["LargeCommitLoop", "as_large"]


def as_large(ours: Ours) -> Ours:
    """Return the commit as it is recorded: at the strictest level, and never a blind append.

    It replaces one state of the table by another, and writers that lose to it must not take it for
    an append, whatever its actions look like.
    """
    level = IsolationLevel.SERIALIZABLE
    info = replace(ours.commit_info, isolation_level=level.value, is_blind_append=False)
    return replace(ours, commit_info=info, isolation_level=level, is_blind_append=False)


class LargeCommitLoop(CommitLoop):
    """The attempts of one large commit, all at the version after the one that was read.

    There is a second one only where the first lost to a file that is not there to be read yet. A
    winner that turns out to be our own commit means that it has landed, as for any other.
    """

    def check_for_conflicts(self, ours: Ours) -> Rebased:
        """Read who has the version, and give up unless it is our own commit.

        Raises:
            ConcurrentWriteException: Another commit took the version; nothing was committed.
        """
        winners = self.read_winners(ours) or self._winner_by_name(ours)
        if not winners:
            return Rebased(ours, ())
        if not winners[0].holds(ours.commit_info.txn_id):
            raise _lost_to(ours, winners[0])
        return Rebased(as_written(ours, winners[0]), (), has_landed=True)

    def _winner_by_name(self, ours: Ours) -> tuple[Theirs, ...]:
        """Read the commit at our version, which no listing shows yet, if it can be read."""
        try:
            actions = read_commit(self._table.store, self._commit_path(ours))
        except LogFileNotFoundError:
            return ()
        return (Theirs(ours.attempt_version, self._table.clock.now_ms(), actions),)


def _lost_to(ours: Ours, winner: Theirs) -> ConcurrentWriteException:
    theirs = winner.commit_info
    conflict = Conflict(
        check="concurrent write",
        winning_version=ours.attempt_version,
        winning_operation=theirs.operation if theirs else None,
        winning_engine=theirs.engine_info if theirs else None,
        winning_timestamp_ms=theirs.timestamp if theirs else None,
    )
    return ConcurrentWriteException(
        f"A concurrent transaction ({shown(conflict.winning_operation or 'without commitInfo')}) "
        f"has written version {ours.attempt_version} of {ours.table_path}, and {ours.operation} "
        f"can't be rebased onto it. {conflict.remedy}",
        kind="DELTA_CONCURRENT_WRITE",
        conflict=conflict,
    )
