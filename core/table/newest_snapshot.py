"""The newest version of a table that its handle knows, brought up to date by one listing.

Threads that ask at the same time share a listing: one that began after a thread had asked shows all
that was committed before.
"""

from __future__ import annotations

from optimist.core.budget import within_budget
from optimist.core.data.table_ref import TableRef
from optimist.core.errors import LogFileNotFoundError, StorageError, TableError
from optimist.core.forking import ForkSafeRLock
from optimist.core.log.segment import list_commits_after
from optimist.core.plugins.logstore import COMMIT_REPLACED, FileStatus
from optimist.core.snapshot import Snapshot
from optimist.core.snapshot.newest_version import load_newest

__all__ = ["NewestSnapshot"]


class NewestSnapshot:
    """One table's newest snapshot. Threads may share it; they refresh it one at a time."""

    def __init__(self, table: TableRef) -> None:
        self._table = table
        self._lock = ForkSafeRLock()
        self._snapshot: Snapshot | None = None
        self._begun = self._done = 0
        self._last_status: FileStatus | None = None

    def refresh(self) -> Snapshot | None:
        """The newest version, or None where there is no table.

        Costs one listing from the known version on, and the reading of the commits since.

        Raises:
            TableError, ProtocolError, StorageError: See `DeltaLog.update`.
        """
        options = self._table.options
        begun_before = self._begun
        with within_budget(self._table.clock, options.storage_budget_s), self._lock:
            # What another thread asked for after us is as new as what we would ask for.
            if self._done <= begun_before:
                self._begun += 1
                self._snapshot = self._newer()
                self._done = self._begun
            return self._snapshot

    def _newer(self) -> Snapshot | None:
        known = self._snapshot
        extended = None if known is None else self._extend(known)
        return self._load_patiently() if extended is None else extended

    def adopt(self, snapshot: Snapshot) -> None:
        """Take over a version made from our own commit, unless a newer one is known by now."""
        with self._lock:
            if self._snapshot is None or self._snapshot.version < snapshot.version:
                # No listing has shown the commit's file yet, so nothing is known of its status.
                self._snapshot, self._last_status = snapshot, None

    def _load_patiently(self) -> Snapshot | None:
        # Another process may clean up the log between our listing and our reading: list once more.
        try:
            return self._load()
        except LogFileNotFoundError:
            return self._load()

    def _load(self) -> Snapshot | None:
        table = self._table
        loaded = load_newest(
            table.store, table.table_path, options=table.options, clock=table.clock
        )
        if loaded is not None and loaded.segment is not None:
            self._last_status = loaded.segment.last_commit
        return loaded

    def _extend(self, known: Snapshot) -> Snapshot | None:
        """The known snapshot extended by the commits since; None if it must be loaded anew."""
        store, log_path = self._table.store, self._table.log_path
        try:
            # The last commit known is listed again: its status tells whether this is still the
            # table that was read.
            commits = list_commits_after(store, log_path, known.version - 1)
        except (TableError, LogFileNotFoundError):
            return None
        except StorageError as error:
            if error.kind == COMMIT_REPLACED:
                self._snapshot = None  # what it was made from is no longer in the log
            raise
        if not commits or not self._is_same_table(commits[0]):
            return None
        extended = known
        if known.segment is not None and len(commits) > 1:
            extended = known.updated_to(store, known.segment.extended(commits[1:]))
        elif known.segment is not None and self._last_status is None:
            extended = known.confirmed(commits[0])
        # Set only now: if a read above fails, what we know must stay as it was.
        self._last_status = commits[-1]
        return extended

    def _is_same_table(self, status: FileStatus) -> bool:
        # A table that was deleted and made anew has other files under the same names. Without a
        # status there is nothing to compare; the listing's is then taken over.
        return self._last_status is None or self._last_status == status
