"""What a prepared commit still lacks at its first attempt: row ids, timestamp (spec 1.7, 1.11).

`rebase.py` does the same again for every version that others take first.
"""

from __future__ import annotations

from dataclasses import replace

from optimist.core.protocol.actions import Action, AddFile, Metadata
from optimist.core.protocol.gates import supports
from optimist.core.protocol.properties import TableProperties
from optimist.core.snapshot.snapshot import Snapshot
from optimist.core.transaction.conflicts.in_commit_timestamp import first_timestamp, with_enablement
from optimist.core.transaction.conflicts.ours_and_theirs import Ours
from optimist.core.transaction.conflicts.row_ids import assign_row_ids, is_row_tracking_on

__all__ = ["complete_actions"]


def complete_actions(ours: Ours, snapshot: Snapshot, now_ms: int) -> Ours:
    """The commit with everything its first attempt needs.

    Raises:
        SchemaError: Rows must be numbered, but a file has no row count.
    """
    return _with_timestamp(_with_row_ids(ours), snapshot, now_ms)


def _with_row_ids(ours: Ours) -> Ours:
    has_adds = any(isinstance(a, AddFile) for a in ours.actions)
    if not has_adds or not is_row_tracking_on(ours.protocol, ours.metadata):
        return ours
    mark = ours.row_id_high_water_mark
    actions, _ = assign_row_ids(ours.actions, known_mark=mark, next_mark=mark)

    def with_version(action: Action) -> Action:
        if isinstance(action, AddFile) and action.default_row_commit_version is None:
            return replace(action, default_row_commit_version=ours.attempt_version)
        return action

    return replace(ours, actions=tuple(map(with_version, actions)))


def _with_timestamp(ours: Ours, snapshot: Snapshot, now_ms: int) -> Ours:
    properties = TableProperties.from_configuration(ours.metadata.configuration)
    is_on = properties.enable_in_commit_timestamps and supports(ours.protocol, "inCommitTimestamp")
    if not is_on:
        return ours
    exists = snapshot.version >= 0
    timestamp = first_timestamp(now_ms, snapshot.timestamp_ms if exists else None)
    ours = replace(ours, commit_info=replace(ours.commit_info, in_commit_timestamp=timestamp))
    if not exists or snapshot.properties.enable_in_commit_timestamps:
        return ours

    def enable(action: Action) -> Action:
        if not isinstance(action, Metadata):
            return action
        return with_enablement(action, version=ours.attempt_version, timestamp_ms=timestamp)

    actions = tuple(map(enable, ours.actions))
    metadata = next((a for a in actions if isinstance(a, Metadata)), ours.metadata)
    return replace(ours, actions=actions, metadata=metadata)
