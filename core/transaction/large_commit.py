"""A commit that can't be rebased: one attempt, no conflict checks (spec 1.16)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from optimist.core.errors import ConcurrentWriteException, Conflict
from optimist.core.logstore import PutOutcome
from optimist.core.transaction.commit_loop import Landed, read_winners
from optimist.core.transaction.conflicts.ours_and_theirs import Ours

if TYPE_CHECKING:
    from optimist.core.table.delta_log import DeltaLog

__all__ = ["commit_large"]


def commit_large(ours: Ours, do_commit: Callable[[Ours], PutOutcome], log: DeltaLog) -> Landed:
    """Try the next version once.

    Raises:
        ConcurrentWriteException: Another commit took the version; nothing was committed.
    """
    start_s = log.clock.monotonic_s()
    if do_commit(ours) is PutOutcome.CREATED:
        elapsed_ms = round((log.clock.monotonic_s() - start_s) * 1000)
        return Landed(ours, (), 1, elapsed_ms)
    winners = read_winners(log.store, log.log_path, ours.attempt_version - 1)
    winner = winners[0] if winners else None
    info = winner.commit_info if winner else None
    conflict = Conflict(
        check="concurrent write",
        winning_version=ours.attempt_version,
        winning_operation=info.operation if info else None,
        winning_engine=info.engine_info if info else None,
        winning_timestamp_ms=info.timestamp if info else None,
    )
    raise ConcurrentWriteException(
        f"A concurrent transaction ({conflict.winning_operation or 'without commitInfo'}) has "
        f"written version {ours.attempt_version} of {ours.table_path}, and {ours.operation} can't "
        f"be moved past it. {conflict.remedy}",
        kind="DELTA_CONCURRENT_WRITE",
        conflict=conflict,
    )
