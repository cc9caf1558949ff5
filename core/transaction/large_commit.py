"""A commit that can't be rebased: one attempt, no conflict checks (spec 1.16)."""

from __future__ import annotations

from dataclasses import replace

from optimist.core.data.table_ref import TableRef
from optimist.core.errors import ConcurrentWriteException, Conflict
from optimist.core.errors.foreign_text import shown
from optimist.core.protocol.properties import IsolationLevel
from optimist.core.transaction.commit_loop import CommitLoop, Landed
from optimist.core.transaction.conflicts.ours_and_theirs import Ours
from optimist.core.transaction.winners import read_winners

__all__ = ["commit_large"]


def commit_large(ours: Ours, loop: CommitLoop, table: TableRef) -> Landed:
    """Try the next version once.

    Such a commit replaces one state of the table by another. It is therefore recorded at the
    strictest level and never as a blind append, whatever its actions look like: writers that lose
    to it must not take it for one.

    Raises:
        ConcurrentWriteException: Another commit took the version; nothing was committed.
    """
    level = IsolationLevel.SERIALIZABLE
    info = replace(ours.commit_info, isolation_level=level.value, is_blind_append=False)
    ours = replace(ours, commit_info=info, isolation_level=level, is_blind_append=False)
    landed = loop.do_commit_once(ours)
    if landed is not None:
        return landed
    winners = read_winners(table, ours)
    winner = winners[0] if winners else None
    theirs = winner.commit_info if winner else None
    conflict = Conflict(
        check="concurrent write",
        winning_version=ours.attempt_version,
        winning_operation=theirs.operation if theirs else None,
        winning_engine=theirs.engine_info if theirs else None,
        winning_timestamp_ms=theirs.timestamp if theirs else None,
    )
    raise ConcurrentWriteException(
        f"A concurrent transaction ({shown(conflict.winning_operation or 'without commitInfo')}) "
        f"has written version {ours.attempt_version} of {ours.table_path}, and {ours.operation} "
        f"can't be rebased onto it. {conflict.remedy}",
        kind="DELTA_CONCURRENT_WRITE",
        conflict=conflict,
    )
