"""What commits that landed say of themselves."""

from __future__ import annotations

from optimist.core.protocol.actions import CommitInfo


def txn_ids(versions):
    """The transaction ids of commits, given as the actions of each version."""
    return {
        action.txn_id
        for actions in versions.values()
        for action in actions
        if isinstance(action, CommitInfo)
    }
