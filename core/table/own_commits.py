"""The commits that a handle's own transactions made or tried."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import MutableMapping, Sequence

from optimist.core.data.table_ref import TableRef
from optimist.core.forking import ForkSafeLock
from optimist.core.log.file_sums import ReadFiles
from optimist.core.log.many_files import ManyFiles
from optimist.core.log.names import commit_path
from optimist.core.log_upkeep.cleanup import LogCleaner
from optimist.core.options.handles import LAST_COMMIT_VERSION
from optimist.core.plugins.logstore import FileStatus
from optimist.core.protocol.actions import Action
from optimist.core.snapshot import KnownCommit, Snapshot
from optimist.core.snapshot.one_version import load_version
from optimist.core.table.commit_watchers import tell_watchers
from optimist.core.table.newest_snapshot import NewestSnapshot
from optimist.core.transaction.conflicts.ours_and_theirs import Theirs
from optimist.core.transaction.hooks.background import BackgroundWork
from optimist.core.transaction.hooks.default_hooks import default_hooks, runs_late
from optimist.core.transaction.hooks.hooks import (
    CommittedTransaction,
    HookOutcome,
    PostCommitHook,
    run_hooks,
)

__all__ = ["OwnCommits"]

_LOG = logging.getLogger(__name__)
_MAX_ATTEMPTS_KNOWN = 1000


class OwnCommits:
    """The `CommitListener` of one handle. Threads may share it.

    Attributes:
        background: The work of hooks that run later.
    """

    def __init__(
        self,
        table: TableRef,
        newest: NewestSnapshot,
        session: MutableMapping[str, str] | None = None,
    ) -> None:
        self.background = BackgroundWork()
        self._table = table
        self._newest = newest
        self._session = session
        self._cleaner = LogCleaner()
        self._lock = ForkSafeLock()
        self._attempts: OrderedDict[str, int] = OrderedDict()

    def note_attempt(self, txn_id: str, version: int) -> None:
        """See `CommitListener.note_attempt`. Only the most recent transactions are remembered."""
        with self._lock:
            self._attempts[txn_id] = version
            self._attempts.move_to_end(txn_id)
            while len(self._attempts) > _MAX_ATTEMPTS_KNOWN:
                self._attempts.popitem(last=False)

    def attempted_version(self, txn_id: str) -> int | None:
        """Return the version that this handle last tried for a transaction, if any."""
        return self._attempts.get(txn_id)

    def update_after_commit(
        self,
        base: Snapshot,
        winners: Sequence[Theirs],
        version: int,
        actions: tuple[Action, ...],
        files: ManyFiles | None = None,
        *,
        read: ReadFiles | None = None,
    ) -> Snapshot | None:
        """See `CommitListener.update_after_commit`."""
        self._tell_session(version)
        snapshot = self._snapshot_after(base, winners, version, actions, files, read)
        tell_watchers(self._table, actions, files, snapshot)
        return snapshot

    def _snapshot_after(
        self,
        base: Snapshot,
        winners: Sequence[Theirs],
        version: int,
        actions: tuple[Action, ...],
        files: ManyFiles | None,
        read: ReadFiles | None,
    ) -> Snapshot | None:
        try:
            theirs = [
                KnownCommit(
                    each.version, each.actions, each.status or self._status_of_commit(each.version)
                )
                for each in winners
            ]
            status = self._status_of_commit(version)
            ours = KnownCommit(version, actions, status, files, read)
            snapshot = base.with_commits([*theirs, ours])
        except Exception:  # noqa: BLE001 - the commit stands whatever happens here
            _LOG.warning(
                "Version %d was committed, but its snapshot could not be made.",
                version,
                exc_info=True,
            )
            return self._read_again(version)
        self._newest.adopt(snapshot)
        return snapshot

    def _tell_session(self, version: int) -> None:
        """Set the last version in the session's conf, which may be on a server that is gone."""
        if self._session is None:
            return
        try:
            self._session[LAST_COMMIT_VERSION] = str(version)
        except Exception:  # noqa: BLE001 - the commit stands whatever happens here
            _LOG.warning(
                "Version %d was committed, but the session's conf was not updated.",
                version,
                exc_info=True,
            )

    def _read_again(self, version: int) -> Snapshot | None:
        """Read the version from the log for the hooks, or return None if that fails."""
        try:
            return load_version(self._table, version)
        except Exception:  # noqa: BLE001 - the commit stands whatever happens here
            _LOG.warning(
                "Version %d was committed, but could not be read back.", version, exc_info=True
            )
            return None

    def run_hooks(
        self, registered: Sequence[PostCommitHook], committed: CommittedTransaction
    ) -> tuple[HookOutcome, ...]:
        """See `CommitListener.run_hooks`."""
        hooks = (*default_hooks(committed, self._cleaner, self._newest.take_up), *registered)
        return run_hooks(hooks, committed, self.background, runs_late)

    def _status_of_commit(self, version: int) -> FileStatus:
        """Return the status of our own commit as listed, without a size where that costs."""
        store, path = self._table.store, commit_path(self._table.log_path, version)
        found = store.find(path) if store.finds_cheaply else None
        return found or FileStatus(path, 0, self._table.clock.now_ms())
