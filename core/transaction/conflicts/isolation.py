"""Isolation levels, and which one a commit gets (spec 1.8, 1.9)."""

from __future__ import annotations

from collections.abc import Sequence

from optimist.core.protocol.actions import Action, AddCDCFile, AddFile, DomainMetadata, RemoveFile
from optimist.core.protocol.domains import ROW_TRACKING_DOMAIN
from optimist.core.protocol.properties import IsolationLevel
from optimist.core.transaction.conflicts.operations import Operation

__all__ = ["FILE_ACTIONS", "is_append_only", "isolation_level_for"]

FILE_ACTIONS = (AddFile, RemoveFile, AddCDCFile)


def isolation_level_for(
    actions: Sequence[Action], operation: Operation, table_level: IsolationLevel
) -> IsolationLevel:
    """Return the isolation level of a commit with these prepared actions.

    A commit that only rearranges files (`dataChange` false), or has no actions, is downgraded to
    snapshot isolation. On a WriteSerializable table that happens only if its operation does not
    change data.
    """
    if table_level is IsolationLevel.SNAPSHOT_ISOLATION:
        return table_level
    rearranges = all(_is_rearranging(action) for action in actions)
    may_downgrade = table_level is IsolationLevel.SERIALIZABLE or not operation.changes_data
    if rearranges and may_downgrade:
        return IsolationLevel.SNAPSHOT_ISOLATION
    return table_level


def is_append_only(actions: Sequence[Action]) -> bool:
    """Return whether every file action among these adds a file, even if there are none."""
    return all(isinstance(a, AddFile) for a in actions if isinstance(a, FILE_ACTIONS))


def _is_rearranging(action: Action) -> bool:
    if isinstance(action, FILE_ACTIONS):
        return not action.data_change
    return isinstance(action, DomainMetadata) and action.domain == ROW_TRACKING_DOMAIN
