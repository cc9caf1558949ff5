"""Creating the file of one version so that its outcome is always known, or said to be unknown.

The store answers `CREATED`, `EXISTS` or `UNKNOWN`. An unknown outcome is settled by reading the
file back:

1. The file holds our `txnId` (or, without commitInfo, exactly our bytes): it is created.
2. It holds another's: the race is lost, as with `EXISTS`.
3. It is absent: the same bytes are put at the same version again.
4. It can't be read: `CommitOutcomeUnknownError`. No other version may be tried before that is
   settled.

An `EXISTS` that follows an unknown outcome may be our own file and is settled in the same way. The
timeline of the
race this guards against: put (the file is created, the answer lost) -> put again (`EXISTS`) -> a
naive engine takes its own commit for a winner, and commits twice.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from optimist.core.clock import Clock
from optimist.core.errors import (
    CommitOutcomeUnknownError,
    LogFileNotFoundError,
    OptimistError,
    StorageError,
    TableError,
)
from optimist.core.logstore import LogStore, PutOutcome
from optimist.core.options import RetryPolicy
from optimist.core.protocol.actions import CommitInfo, actions_from_bytes
from optimist.core.transaction.backoff import pause_s

__all__ = ["VersionFile", "create_version_file", "read_txn_id"]

_LOG = logging.getLogger(__name__)


class VersionFile:
    """One file that we want to create: where, what, and by which id we know it as ours."""

    __slots__ = ("data", "has_commit_info", "path", "txn_id", "version")

    def __init__(
        self, path: str, data: bytes, *, version: int, txn_id: str, has_commit_info: bool
    ) -> None:
        self.path = path
        self.data = data
        self.version = version
        self.txn_id = txn_id
        self.has_commit_info = has_commit_info

    def is_same(self, found: bytes) -> bool:
        """Whether a file read back is ours."""
        if not self.has_commit_info:
            return found == self.data
        return read_txn_id(found, self.path) == self.txn_id


def read_txn_id(data: bytes, path: str) -> str | None:
    """The `txnId` in the commitInfo of a commit file, or None where there is none."""
    for action in actions_from_bytes(data, path):
        if isinstance(action, CommitInfo):
            return action.txn_id
    return None


def create_version_file(
    store: LogStore,
    file: VersionFile,
    policy: RetryPolicy,
    clock: Clock,
    *,
    ensure_may_write: Callable[[], None] = lambda: None,
) -> PutOutcome:
    """Create the file, whatever it takes to know the outcome.

    Args:
        store: Where it goes.
        file: What it is.
        policy: How often to try again without a clear answer.
        clock: For the pauses.
        ensure_may_write: Called right before each put; raises where nothing may be written any
            more.

    Returns:
        `CREATED` or `EXISTS`; never `UNKNOWN`.

    Raises:
        CommitOutcomeUnknownError: The store gave no answer and could not be asked.
        StorageError: The store refused; nothing was written.
    """
    was_unknown = False
    for retry in range(policy.max_non_conflict_attempts + 1):
        if retry:
            clock.sleep(pause_s(retry, policy, clock))
        try:
            ensure_may_write()
            outcome = _try_put(store, file, may_retry=retry < policy.max_non_conflict_attempts)
        except OptimistError as error:
            if was_unknown:  # an earlier put may still arrive
                raise _unknown(file, f"after an unanswered put came: {error}") from error
            raise
        if outcome is None:
            continue
        if outcome is PutOutcome.CREATED:
            return outcome
        if outcome is PutOutcome.EXISTS and not was_unknown:
            return outcome
        was_unknown = True
        settled = _settle(store, file, policy, clock)
        if settled is not None:
            return settled
    raise _unknown(file, "every attempt to create the file went unanswered")


def _try_put(store: LogStore, file: VersionFile, *, may_retry: bool) -> PutOutcome | None:
    """One put; None when certainly nothing was written and the store may be asked again."""
    try:
        return store.put_if_absent(file.path, file.data)
    except StorageError as error:
        if error.retryable and may_retry:
            _LOG.warning("Creating %s failed, trying again: %s", file.path, error)
            return None
        raise
    except OptimistError:
        raise
    except Exception:  # noqa: BLE001 - a store may raise anything; after the put, that is no answer
        _LOG.warning(
            "No clear answer while creating %s; reading it back.", file.path, exc_info=True
        )
        return PutOutcome.UNKNOWN


def _settle(
    store: LogStore, file: VersionFile, policy: RetryPolicy, clock: Clock
) -> PutOutcome | None:
    """Read the file back: ours, another's, or None when it is absent."""
    problem: Exception | None = None
    for retry in range(policy.max_non_conflict_attempts + 1):
        if retry:
            clock.sleep(pause_s(retry, policy, clock))
        try:
            found = store.read_bytes(file.path)
            return PutOutcome.CREATED if file.is_same(found) else PutOutcome.EXISTS
        except LogFileNotFoundError:
            return None
        except TableError as error:
            problem = error
        except Exception as error:  # noqa: BLE001 - whatever the store raises, it is no answer
            problem = error
    raise _unknown(file, "the file can't be read back") from problem


def _unknown(file: VersionFile, reason: str) -> CommitOutcomeUnknownError:
    return CommitOutcomeUnknownError(
        f"It is not known whether version {file.version} was committed: {reason}. Do not run the "
        f"operation again before DeltaLog.resolve_commit({file.txn_id!r}) has told whether it "
        "landed; nothing was deleted.",
        kind="OPTIMIST_COMMIT_OUTCOME_UNKNOWN",
        txn_id=file.txn_id,
        version=file.version,
        path=file.path,
    )
