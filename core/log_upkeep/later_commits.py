"""The look at the log before something is written about a version that is known already (5.8)."""

from __future__ import annotations

from optimist.core.errors import StorageError
from optimist.core.errors.kinds import PREDECESSOR_MISSING
from optimist.core.log.names import commit_path
from optimist.core.log.segment import newer_commits
from optimist.core.plugins.logstore import FileStatus, LogStore
from optimist.core.snapshot import Snapshot

__all__ = ["commits_after"]


def commits_after(store: LogStore, snapshot: Snapshot) -> tuple[FileStatus, ...]:
    """Return the commits that landed after a version.

    Raises:
        StorageError: The version is no longer in the log (kind `OPTIMIST_PREDECESSOR_MISSING`).
    """
    last_seen = snapshot.segment.last_seen if snapshot.segment else None
    found = newer_commits(store, snapshot.log_path, last_seen, snapshot.version)
    if found is not None:
        return found
    raise StorageError(
        f"Version {snapshot.version} of {snapshot.table_path} was committed, but is no longer in "
        "the log: the table was dropped and made again, or restored, or its log was cleaned up. "
        "Nothing more was written about it.",
        kind=PREDECESSOR_MISSING,
        path=commit_path(snapshot.log_path, snapshot.version),
        version=snapshot.version,
        retryable=False,
    )
