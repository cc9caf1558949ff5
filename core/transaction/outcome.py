"""Creates the file of one version, so that its outcome is known or reported as unknown.

The steps are those of `core.plugins.creation`. We recognise a commit as ours by its `txnId`, or by
its bytes where it has no commitInfo.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from optimist.core.errors import CommitOutcomeUnknownError
from optimist.core.plugins.creation import FileToCreate, create_file
from optimist.core.plugins.logstore import LogStore, PutOutcome
from optimist.core.protocol.actions import CommitInfo, actions_from_bytes
from optimist.core.runtime.clock import Clock
from optimist.core.runtime.retry import RetryPolicy

__all__ = ["VersionFile", "create_version_file", "read_txn_id"]


@dataclass(frozen=True, slots=True)
class VersionFile(FileToCreate):
    """The file of a version that we want to create, and how we recognise it as ours.

    Attributes:
        data: The bytes.
        version: The version that they are the commit of.
        txn_id: The transaction's id, which stands in commitInfo.
        has_commit_info: Whether the bytes have a commitInfo; without one they are compared whole.
    """

    data: bytes
    version: int
    txn_id: str
    has_commit_info: bool

    @property
    def doubts_exists(self) -> bool:
        """See `FileToCreate.doubts_exists`.

        The commit loop reads the winner, whose commitInfo tells. Without commitInfo only the bytes
        tell.
        """
        return not self.has_commit_info

    def put(self, store: LogStore) -> PutOutcome:
        """See `FileToCreate.put`."""
        return store.put_if_absent(self.path, self.data)

    def is_there(self, store: LogStore) -> bool:
        """See `FileToCreate.is_there`."""
        return self.is_same(store.read_bytes(self.path))

    def is_same(self, found: bytes) -> bool:
        """Return whether these bytes, read back from the store, are our commit."""
        if not self.has_commit_info:
            return found == self.data
        return read_txn_id(found, self.path) == self.txn_id

    def unknown(self, reason: str) -> CommitOutcomeUnknownError:
        """See `FileToCreate.unknown`."""
        return CommitOutcomeUnknownError(
            f"Version {self.version} may or may not have been committed: {reason}. Nothing was "
            f"deleted. Call DeltaLog.resolve_commit({self.txn_id!r}, {self.version}) to learn "
            "whether it landed before you run the operation again.",
            kind="OPTIMIST_COMMIT_OUTCOME_UNKNOWN",
            txn_id=self.txn_id,
            version=self.version,
            path=self.path,
        )


def read_txn_id(data: bytes, path: str) -> str | None:
    """Return the `txnId` in the commitInfo of a commit file, or None where there is none."""
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
    """Create the file of a version, as `create_file` does.

    Raises:
        CommitOutcomeUnknownError: The store gave no answer, and reading back did not settle whether
            the commit landed.
        StorageError: The store refused; nothing was written.
    """
    return create_file(store, file, policy, clock, ensure_may_write=ensure_may_write)
