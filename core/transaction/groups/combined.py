"""Several appends as the one commit that holds them all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from optimist.core.protocol.actions import Action, CommitInfo
from optimist.core.protocol.group_tags import group_tags
from optimist.core.transaction.conflicts.ours_and_theirs import Ours
from optimist.core.transaction.conflicts.row_ids import (
    ROWS_PRESERVED,
    assign_row_ids,
    is_row_tracking_on,
)

__all__ = ["combine"]


def combine(members: Sequence[Ours], txn_id: str) -> Ours:
    """Combine transactions into one that does what all of them do, at the version they try.

    Args:
        members: Blind appends that were checked against the same winners.
        txn_id: The id of the commit. A transaction that is alone keeps its own.
    """
    first = members[0]
    if len(members) == 1 and first.commit_info.txn_id == txn_id:
        return first
    actions: tuple[Action, ...] = tuple(action for ours in members for action in ours.actions)
    if is_row_tracking_on(first.protocol, first.metadata):
        mark = first.row_id_high_water_mark
        # Each of them was numbered as if it were alone, from the same mark on.
        actions = assign_row_ids(actions, known_mark=mark, next_mark=mark)
    info = _combined_info([ours.commit_info for ours in members], txn_id)
    # They differ only where a listing lagged behind. The lowest version is taken then, and the
    # attempt loses to a winner that the listing did not show.
    lowest = min(members, key=lambda ours: ours.attempt_version)
    return replace(
        first,
        read_version=min(ours.read_version for ours in members),
        attempt_version=lowest.attempt_version,
        last_seen=lowest.last_seen,
        actions=actions,
        commit_info=info,
    )


def _combined_info(infos: Sequence[CommitInfo], txn_id: str) -> CommitInfo:
    # "false" before "true": the rows of all of them kept their ids, or it must not be said.
    preserved = sorted((info.tags or {}).get(ROWS_PRESERVED) or "" for info in infos)[0]
    tags = {ROWS_PRESERVED: preserved} if preserved else {}
    times = [info.in_commit_timestamp for info in infos if info.in_commit_timestamp is not None]
    return replace(
        infos[0],
        in_commit_timestamp=max(times, default=None),
        timestamp=max(info.timestamp or 0 for info in infos),
        read_version=min(info.read_version or 0 for info in infos),
        operation_metrics=_sum_metrics([info.operation_metrics for info in infos]),
        tags={**tags, **group_tags([info.txn_id or "" for info in infos])},
        txn_id=txn_id,
    )


def _sum_metrics(metrics: Sequence[Mapping[str, str] | None]) -> Mapping[str, str] | None:
    """Sum each metric that is a whole number in all of them, or return None where one has none."""
    known = [each for each in metrics if each is not None]
    if len(known) < len(metrics):
        return None
    counts = Counter(name for each in known for name, value in each.items() if value.isdecimal())
    return {
        name: str(sum(int(each[name]) for each in known))
        for name, count in counts.items()
        if count == len(known)
    }
