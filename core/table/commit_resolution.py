"""Did it land? A commit of unknown outcome is settled by looking for its `txnId` (design 3.6)."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from optimist.core.errors import LogFileNotFoundError
from optimist.core.log.commits import read_commit_info
from optimist.core.log.names import commit_path
from optimist.core.logstore import LogStore

__all__ = ["CommitResolution", "CommitState", "resolve_commit"]


class CommitState(enum.Enum):
    """What is known of a commit."""

    LANDED = "landed"
    """It is in the table. Do not run the operation again."""
    NOT_LANDED = "not landed"
    """It is not in the table and can't get in any more. Run the operation again."""
    PENDING = "pending"
    """Its version is still free: the lost request may yet arrive. Ask again later."""


@dataclass(frozen=True, slots=True)
class CommitResolution:
    """The answer; `version` is where it landed, or else the version it was tried at, if known."""

    state: CommitState
    version: int | None


def resolve_commit(
    store: LogStore, log_path: str, txn_id: str, *, attempted: int | None, latest: int
) -> CommitResolution:
    """Look for a transaction in the log.

    Args:
        store: Where the log is.
        log_path: The log directory.
        txn_id: The transaction's id.
        attempted: The version it was last tried at, if known; then only that file is read.
        latest: The newest version of the table.
    """
    if attempted is not None:
        found = _txn_id_at(store, log_path, attempted)
        if found is _ABSENT:
            return CommitResolution(CommitState.PENDING, attempted)
        landed = found == txn_id
        state = CommitState.LANDED if landed else CommitState.NOT_LANDED
        return CommitResolution(state, attempted)
    for version in range(latest, -1, -1):
        found = _txn_id_at(store, log_path, version)
        if found == txn_id:
            return CommitResolution(CommitState.LANDED, version)
        if found is _ABSENT:
            break
    return CommitResolution(CommitState.NOT_LANDED, None)


_ABSENT = object()


def _txn_id_at(store: LogStore, log_path: str, version: int) -> object:
    try:
        info = read_commit_info(store, commit_path(log_path, version))
    except LogFileNotFoundError:
        return _ABSENT
    return None if info is None else info.txn_id
