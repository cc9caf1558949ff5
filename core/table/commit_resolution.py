"""Finding out whether a commit of unknown outcome landed, by its `txnId` (spec 1.14)."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from optimist.core.errors import CommitOutcomeUnknownError, LogFileNotFoundError
from optimist.core.log.commits import read_commit_info
from optimist.core.log.names import commit_path
from optimist.core.plugins.logstore import LogStore
from optimist.core.protocol.group_tags import transactions_of

__all__ = ["CommitResolution", "CommitState", "resolve_commit"]


class CommitState(enum.Enum):
    """Whether a commit is in the table."""

    LANDED = "landed"
    """It is in the table. Do not run the operation again."""
    NOT_LANDED = "not landed"
    """It is not in the table and can't get in any more. Run the operation again."""
    PENDING = "pending"
    """It is not in the table yet, but the lost request may still arrive: the version at which it
    was tried is still free, or is not known. Ask again later, with the version."""


@dataclass(frozen=True, slots=True)
class CommitResolution:
    """The answer of `resolve_commit`.

    Attributes:
        state: Whether the commit is in the table.
        version: The version at which it landed, or else that at which it was last tried, if known.
    """

    state: CommitState
    version: int | None


def resolve_commit(
    store: LogStore,
    log_path: str,
    txn_id: str,
    *,
    attempted: int | None,
    latest: int,
    has_commit_info: bool = True,
) -> CommitResolution:
    """Look for a transaction in the log.

    Args:
        store: Where the log is.
        log_path: The log directory.
        txn_id: The transaction's id.
        attempted: The version it was last tried at, if known; then only that file is read. Without
            it a transaction that is found nowhere is `PENDING`, since nobody can tell whether its
            version is taken.
        latest: The newest version of the table.
        has_commit_info: Whether the transaction wrote commitInfo, which tells whose a commit is.

    Raises:
        CommitOutcomeUnknownError: The version is taken, and nothing tells by which transaction.
    """
    if attempted is None:
        return _found_in_log(store, log_path, txn_id, latest)
    found = _transactions_at(store, log_path, attempted)
    state = CommitState.LANDED if found and txn_id in found else CommitState.NOT_LANDED
    if found is None:
        if attempted <= latest:
            raise _unknown_outcome(txn_id, attempted, "its commit file was cleaned up")
        state = CommitState.PENDING
    elif not found and not has_commit_info:
        reason = (
            "commits without commitInfo (conf key spark.databricks.delta.commitInfo.enabled) do "
            "not say which transaction wrote them"
        )
        raise _unknown_outcome(txn_id, attempted, reason)
    return CommitResolution(state, attempted)


def _found_in_log(store: LogStore, log_path: str, txn_id: str, latest: int) -> CommitResolution:
    for version in range(latest, -1, -1):
        found = _transactions_at(store, log_path, version)
        if found is None:
            break
        if txn_id in found:
            return CommitResolution(CommitState.LANDED, version)
    return CommitResolution(CommitState.PENDING, None)


def _unknown_outcome(txn_id: str, version: int, reason: str) -> CommitOutcomeUnknownError:
    return CommitOutcomeUnknownError(
        f"Version {version} exists, but it is unknown whether the transaction {txn_id} wrote it: "
        f"{reason}. Look in the table for the rows that the transaction should have written before "
        "you run it again.",
        kind="OPTIMIST_COMMIT_OUTCOME_UNKNOWN",
        txn_id=txn_id,
        version=version,
    )


def _transactions_at(store: LogStore, log_path: str, version: int) -> frozenset[str] | None:
    """Return the transactions that a version names, or None where there is no file."""
    try:
        info = read_commit_info(store, commit_path(log_path, version))
    except LogFileNotFoundError:
        return None
    return frozenset() if info is None else transactions_of(info)
