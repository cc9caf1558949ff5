"""The newest version of a table that its handle knows, brought up to date by one listing.

Threads that ask at the same time share a listing. It begins after they have asked, so it shows all
that was committed before.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from optimist.core.data.table_ref import TableRef
from optimist.core.errors import (
    LogFileNotFoundError,
    OptimistError,
    StorageError,
    TableError,
)
from optimist.core.forking import ForkSafeLock
from optimist.core.log.checkpoint_kinds import Checkpoint
from optimist.core.log.commits import read_commit_info
from optimist.core.log.known_log import KnownLog
from optimist.core.log.last_checkpoint import read_last_checkpoint
from optimist.core.log.segment import (
    commit_version,
    commits_of_same_log,
    is_listed,
    list_commits_after,
    newer_checkpoint,
)
from optimist.core.plugins.logstore import COMMIT_REPLACED, FileStatus
from optimist.core.runtime.budget import within_budget
from optimist.core.snapshot import Snapshot
from optimist.core.snapshot.newest_version import load_newest

__all__ = ["NewestSnapshot"]

_LOG = logging.getLogger(__name__)
_MANY_COMMITS = 100
"""After so many commits a checkpoint is looked for that another handle has written."""


class NewestSnapshot:
    """One table's newest snapshot. Threads may share it, and refresh it one at a time."""

    def __init__(self, table: TableRef) -> None:
        self._table = table
        self._lock = ForkSafeLock()
        self._snapshot: Snapshot | None = None
        self._begun = self._done = 0
        self._look_at = _MANY_COMMITS

    @property
    def known(self) -> Snapshot | None:
        """The newest version that is in memory. None is read."""
        return self._snapshot

    def refresh(self) -> Snapshot | None:
        """Load the newest version, or return None where there is no table.

        Costs one listing from the known version on, and the reading of the commits since.

        Raises:
            TableError, ProtocolError, StorageError: See `DeltaLog.snapshot`.
        """
        options = self._table.options
        begun_before = self._begun
        with within_budget(self._table.clock, options.storage_budget_s), self._lock:
            # What another thread asked for after us is as new as what we would ask for.
            if self._done <= begun_before:
                self._begun += 1
                self._snapshot = self._look_for_newer()
                self._done = self._begun
            return self._snapshot

    def _look_for_newer(self) -> Snapshot | None:
        known = self._snapshot
        extended = None if known is None else self._extend(known)
        if extended is None:
            self._look_at = _MANY_COMMITS
            return self._load_patiently()
        return self._on_newest_checkpoint(extended)

    def adopt(self, snapshot: Snapshot) -> None:
        """Take over a version made from our own commit, unless a newer one is known by now."""
        with self._lock:
            if self._snapshot is None or self._snapshot.version < snapshot.version:
                self._snapshot = snapshot

    def take_up(self, log: KnownLog, checkpoint: Checkpoint) -> None:
        """Make the newest version from a checkpoint that was just written of its log.

        Nothing is raised, because a version from an older checkpoint is just as right.
        """
        with self._lock:
            known = self._snapshot
            if known is not None and known.known_log is log:
                self._snapshot = self._rebuild_on(known, checkpoint)

    def _on_newest_checkpoint(self, found: Snapshot) -> Snapshot:
        """Rebuild the version on the newest checkpoint, looked for once in many commits."""
        segment = found.segment
        if segment is None or len(segment.commits) < self._look_at:
            return found
        store, log_path = self._table.store, self._table.log_path
        newer = None
        try:
            last = read_last_checkpoint(store, log_path, clock=self._table.clock)
            newer = None if last is None else newer_checkpoint(store, segment, last.version)
        except OptimistError as error:
            _LOG.debug("No newer checkpoint was found: %s", error)
        found = found if newer is None else self._rebuild_on(found, newer)
        num_commits = len(found.segment.commits) if found.segment else 0
        self._look_at = num_commits + _MANY_COMMITS
        return found

    def _rebuild_on(self, known: Snapshot, checkpoint: Checkpoint) -> Snapshot:
        try:
            return known.made_from(self._table.store, checkpoint)
        except OptimistError as error:
            version = checkpoint.version
            _LOG.debug("The checkpoint of version %d is not taken up: %s", version, error)
            return known

    def _load_patiently(self) -> Snapshot | None:
        # Another process may clean up the log between our listing and our reading: list once more.
        try:
            return self._load()
        except LogFileNotFoundError:
            return self._load()

    def _load(self) -> Snapshot | None:
        table = self._table
        return load_newest(table.store, table.table_path, options=table.options, clock=table.clock)

    def _extend(self, known: Snapshot) -> Snapshot | None:
        """Extend the known snapshot by the commits since, or return None if that can't be done."""
        clock, asked_s = self._table.clock, self._table.clock.monotonic_s()
        try:
            commits = self._commits_from(known)
            seen = known.version + 1 - commit_version(commits[0]) if commits else 0
            if not self._is_still_ours(known, commits[:seen]):
                return None
        except (TableError, LogFileNotFoundError):
            return None
        except StorageError as error:
            if error.kind == COMMIT_REPLACED:
                self._snapshot = None  # what it was made from is no longer in the log
            raise
        if not commits:
            return None
        first = commit_version(commits[0])
        known.known_log.note_look(asked_s, clock.monotonic_s(), first)
        confirmed = known.confirmed(commits[:seen])
        if confirmed.segment is None or not commits[seen:]:
            return confirmed
        newer = confirmed.segment.extended(commits[seen:])
        return confirmed.updated_to(self._table.store, newer)

    def _is_still_ours(self, known: Snapshot, commits: Sequence[FileStatus]) -> bool:
        """Return whether a listing still shows the newest version, if that is our own commit.

        Nobody has listed our commit before, so its name alone proves nothing: somebody may have
        removed it, and another commit may have taken the version. The tag of the put tells that.
        Without a tag, the commit itself is read once.
        """
        mine = known.segment.last_commit if known.segment else None
        if mine is None or is_listed(mine) or not commits:
            return True
        if self._table.store.is_as_created(commits[-1]):
            return True
        info = read_commit_info(self._table.store, commits[-1].path)
        return (info.txn_id if info else None) == known.txn_id

    def _commits_from(self, known: Snapshot) -> tuple[FileStatus, ...]:
        """List the commits of the known log at least up to the known version, if it is there.

        The newest commit that a listing has shown is listed again. What follows it up to the known
        version is our own, and listed for the first time. Nothing was ever listed of a table that
        we created; `_is_still_ours` tells whether its newest commit is ours.
        """
        store, log_path = self._table.store, self._table.log_path
        last_seen = known.segment.last_seen if known.segment else None
        if last_seen is not None:
            return commits_of_same_log(store, log_path, last_seen, known.version)
        if known.txn_id is None:
            return ()
        return list_commits_after(store, log_path, known.version - 1)
