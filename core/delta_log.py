"""`DeltaLog`, the handle of one table: its newest snapshot, its transactions (spec 1.1)."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Hashable, Mapping, MutableMapping, Sequence

import pyarrow as pa

from optimist.core.actions import Action
from optimist.core.clock import Clock, SystemClock
from optimist.core.commit_resolution import CommitResolution, resolve_commit
from optimist.core.errors import (
    LogFileNotFoundError,
    StorageError,
    TableError,
    TableNotFoundError,
    UsageError,
)
from optimist.core.lease import Lease
from optimist.core.local_append import append
from optimist.core.local_scan import to_arrow
from optimist.core.lock_registry import find_lease
from optimist.core.log.checkpoint import write_checkpoint
from optimist.core.log.last_checkpoint import read_last_checkpoint
from optimist.core.log.names import commit_path, log_path_of
from optimist.core.log.segment import list_commits_after, list_segment
from optimist.core.log.time_travel import (
    CommitRecord,
    commit_history,
    ensure_version_exists,
    parse_timestamp,
    version_at_timestamp,
)
from optimist.core.logstore import FileStatus, LogStore
from optimist.core.logstore_registry import find_store
from optimist.core.options import EngineOptions
from optimist.core.paths import join, normalize
from optimist.core.predicates import Predicate
from optimist.core.snapshot import Snapshot
from optimist.core.transaction.default_hooks import default_hooks
from optimist.core.transaction.hooks import CommittedTransaction, PostCommitHook
from optimist.core.transaction.optimistic import OptimisticTransaction
from optimist.core.transaction.result import CommitResult
from optimist.core.transaction.sides import Theirs

__all__ = ["DeltaLog"]

_LOG = logging.getLogger(__name__)
LAST_COMMIT_VERSION = "spark.databricks.delta.lastCommitVersionInSession"


class DeltaLog:
    """One Delta table, by its path. Threads may share it.

    Attributes:
        table_path: The table's directory, as given.
        log_path: Its `_delta_log`.
        store: The LogStore that serves the path.
        options: The engine's options.
        lease: What serialises commit loops across processes where the commit lock is taken; None
            leaves the lock to this process.
        clock: Where time comes from.
    """

    def __init__(
        self,
        table_path: str,
        store: LogStore,
        options: EngineOptions | None = None,
        *,
        lease: Lease | None = None,
        clock: Clock | None = None,
        session: MutableMapping[str, str] | None = None,
    ) -> None:
        self.table_path = normalize(table_path)
        self.log_path = log_path_of(self.table_path)
        self.store = store
        self.options = options or EngineOptions()
        self.lease = lease
        self.clock: Clock = clock or SystemClock()
        self._session = session
        self._mutex = threading.RLock()
        self._snapshot: Snapshot | None = None
        self._last_status: FileStatus | None = None
        self._attempts: OrderedDict[str, int] = OrderedDict()

    @classmethod
    def for_path(
        cls,
        path: str,
        options: Mapping[str, str] | None = None,
        *,
        session: MutableMapping[str, str] | None = None,
    ) -> DeltaLog:
        """The handle of the table at a path; the table need not exist yet.

        Handles are cached per path and options, so that asking twice costs nothing.

        Args:
            path: A local path or a URL; the scheme decides the store.
            options: A plain mapping, for example the entries of a Spark conf.
            session: Receives `lastCommitVersionInSession` after each commit.

        Raises:
            ConfigError: An option, or the choice of the store or of the lease, is wrong.
        """
        given = {k: v for k, v in (options or {}).items() if k != LAST_COMMIT_VERSION}
        engine_options = EngineOptions.from_options(given)
        store = find_store(path, given)
        key = (store.resolve_path(normalize(path)), id(session), tuple(sorted(given.items())))
        fresh = cls(path, store, engine_options, lease=find_lease(given), session=session)
        return _CACHE.get_or_put(key, fresh, engine_options, fresh.clock)

    # Versions

    def table_exists(self) -> bool:
        """Whether there is a table at the path, now."""
        return self._refresh() is not None

    def update(self) -> Snapshot:
        """The newest version. Costs one listing from the version known, and the commits since.

        Raises:
            TableNotFoundError: There is no table at the path.
            TableError: The log is damaged.
            ProtocolError: The table demands a feature this engine can't read.
        """
        snapshot = self._refresh()
        if snapshot is None:
            raise self._not_found()
        return snapshot

    def snapshot(self, version: int | None = None, timestamp: str | int | None = None) -> Snapshot:
        """The table as it was at a version, or at a time; the newest version without either.

        Args:
            version: A version number.
            timestamp: Epoch milliseconds, or text such as `2026-11-20 10:00:00` (UTC unless it says
                otherwise): the newest version that is not younger.

        Raises:
            UsageError: Both are given, or the text is no timestamp.
            TableError: The version or time is outside what the log still holds.
        """
        if version is not None and timestamp is not None:
            raise UsageError(
                "Give a version or a timestamp, not both.", kind="DELTA_ONEOF_IN_TIMETRAVEL"
            )
        latest = self.update()
        if timestamp is not None:
            wanted = timestamp if isinstance(timestamp, int) else parse_timestamp(timestamp)
            version = version_at_timestamp(self.store, self.log_path, wanted, latest=latest)
        if version is None or version == latest.version:
            return latest
        return self._load_version(version, latest)

    def start_transaction(self, snapshot: Snapshot | None = None) -> OptimisticTransaction:
        """A new transaction on the newest version or the one given; also where no table is."""
        if snapshot is None:
            snapshot = self._refresh() or Snapshot.absent(
                self.table_path, options=self.options, clock=self.clock
            )
        return OptimisticTransaction(self, snapshot)

    # Without Spark

    def append(
        self,
        data: pa.Table,
        *,
        partition_by: Sequence[str] = (),
        user_metadata: str | None = None,
        txn: tuple[str, int] | None = None,
    ) -> CommitResult | None:
        """Append an Arrow table in one commit; the first append creates the Delta table.

        Args:
            data: The rows. Columns are matched by name; missing nullable ones become null.
            partition_by: The partition columns of a new table; on an existing one it must agree.
            user_metadata: Text for the history.
            txn: (application id, version): a version not above the last one is a replay, and
                skipped.

        Returns:
            The commit, or None for a replay.

        Raises:
            SchemaError: The data does not fit the table; nothing was written.
        """
        return append(self, data, partition_by=partition_by, user_metadata=user_metadata, txn=txn)

    def to_arrow(
        self, predicate: str | Predicate | None = None, columns: Sequence[str] | None = None
    ) -> pa.Table:
        """The rows of the newest version for which a predicate is true, read in this process.

        The log leaves out files that can't match; the rows of the others are judged one by one.
        Times are read in UTC. The order of the rows is not defined.

        Args:
            predicate: SQL text or a tree; all rows without one.
            columns: The columns wanted, in this order; all without it.

        Raises:
            UsageError: The predicate does not parse, or a part of it needs Spark to be judged
                (kind `OPTIMIST_NEEDS_SPARK`, field `part`).
            SchemaError: There is no such column.
            ProtocolError: The files need a feature that the reader does not have.
        """
        access = self.store.data_access(self.table_path)
        return to_arrow(self.update(), predicate, columns, access=access)

    def history(self, limit: int | None = None) -> list[CommitRecord]:
        """The commits, newest first; reads no more of them than asked for."""
        latest = self.update().version
        return commit_history(self.store, self.log_path, limit=limit, latest_version=latest)

    def checkpoint(self) -> None:
        """Write a checkpoint of the newest version: opening the table then reads fewer commits."""
        write_checkpoint(self.store, self.update(), options=self.options, clock=self.clock)

    def resolve_commit(self, txn_id: str) -> CommitResolution:
        """Whether a transaction landed whose outcome was unknown (`CommitOutcomeUnknownError`).

        In the process that made the attempt this reads one file. Elsewhere it reads commits from
        the newest
        backwards until the transaction is found.
        """
        snapshot = self._refresh()
        return resolve_commit(
            self.store,
            self.log_path,
            txn_id,
            attempted=self._attempts.get(txn_id),
            latest=snapshot.version if snapshot else -1,
        )

    # For the transaction

    def note_attempt(self, txn_id: str, version: int) -> None:
        """Remember which version a transaction tries, should its outcome stay unknown."""
        with self._mutex:
            self._attempts[txn_id] = version
            self._attempts.move_to_end(txn_id)
            while len(self._attempts) > _MAX_ATTEMPTS_KNOWN:
                self._attempts.popitem(last=False)

    def ensure_log_directory(self) -> None:
        """Make `_delta_log` for a new table (spec 1.7.6)."""
        self.store.ensure_directory(self.log_path)

    def default_hooks(self, committed: CommittedTransaction) -> tuple[PostCommitHook, ...]:
        """What runs after every commit: checksum, checkpoint with cleanup, symlink manifest."""
        return default_hooks(committed)

    def update_after_commit(
        self,
        base: Snapshot,
        winners: Sequence[Theirs],
        version: int,
        actions: tuple[Action, ...],
    ) -> Snapshot | None:
        """The snapshot of a version just committed, made without reading anything again.

        The commit has landed, so nothing is raised: None means that the snapshot could not be made.
        """
        if self._session is not None:
            self._session[LAST_COMMIT_VERSION] = str(version)
        try:
            snapshot = base
            for winner in winners:
                status = self._commit_status(winner.version, winner.modified_ms)
                snapshot = snapshot.with_commit(winner.version, winner.actions, status)
            status = self._commit_status(version, self.clock.now_ms())
            snapshot = snapshot.with_commit(version, actions, status)
        except Exception:  # noqa: BLE001 - the commit stands whatever happens here
            _LOG.warning("Version %d landed, but its snapshot failed.", version, exc_info=True)
            return None
        with self._mutex:
            if self._snapshot is None or self._snapshot.version < version:
                self._snapshot, self._last_status = snapshot, None
        return snapshot

    def _commit_status(self, version: int, modified_ms: int) -> FileStatus:
        return FileStatus(commit_path(self.log_path, version), 0, modified_ms)

    # Loading

    def _refresh(self) -> Snapshot | None:
        with self._mutex:
            known = self._snapshot
            if known is not None:
                extended = self._extend(known)
                if extended is not None:
                    self._snapshot = extended
                    return extended
            self._snapshot = self._load_patiently()
            return self._snapshot

    def _load_patiently(self) -> Snapshot | None:
        # Another process may clean up the log between our listing and our reading: list once more.
        try:
            return self._load()
        except LogFileNotFoundError:
            return self._load()

    def _load(self) -> Snapshot | None:
        hint = read_last_checkpoint(self.store, self.log_path, clock=self.clock)
        segment = list_segment(self.store, self.log_path, hint=hint.version if hint else None)
        if segment is None:
            return None
        self._last_status = segment.commits[-1] if segment.commits else None
        return Snapshot.load(
            self.store, self.table_path, segment, options=self.options, clock=self.clock
        )

    def _load_version(self, version: int, latest: Snapshot) -> Snapshot:
        ensure_version_exists(self.store, self.log_path, version, latest_version=latest.version)
        segment = list_segment(self.store, self.log_path, version=version)
        assert segment is not None
        return Snapshot.load(
            self.store, self.table_path, segment, options=self.options, clock=self.clock
        )

    def _extend(self, known: Snapshot) -> Snapshot | None:
        """The known snapshot with the commits since; None when it must be loaded anew."""
        try:
            commits = list_commits_after(self.store, self.log_path, known.version - 1)
        except (TableError, LogFileNotFoundError):
            return None
        except StorageError as error:
            if error.kind == "OPTIMIST_COMMIT_REPLACED":
                self._snapshot = None  # what it was made from is no longer in the log
            raise
        if not commits or not self._is_same_table(commits[0]):
            return None
        extended = known
        if known.segment is not None and len(commits) > 1:
            extended = known.updated_to(self.store, known.segment.extended(commits[1:]))
        elif known.segment is not None and self._last_status is None:
            extended = known.confirmed(commits[0])
        # Only now: a read that failed above must find the table as it was known.
        self._last_status = commits[-1]
        return extended

    def _is_same_table(self, status: FileStatus) -> bool:
        # A table deleted and made anew has other files under the same names.
        return self._last_status is None or self._last_status == status

    def _not_found(self) -> TableNotFoundError:
        try:
            has_files = next(iter(self.store.list_from(join(self.table_path, ""))), None)
        except LogFileNotFoundError:
            return TableNotFoundError(
                f"There is nothing at {self.table_path}. Check the path; to make a table there, "
                "write to it.",
                kind="DELTA_PATH_DOES_NOT_EXIST",
                path=self.table_path,
            )
        found = "holds files but" if has_files else "is a directory but"
        return TableNotFoundError(
            f"{self.table_path} {found} is no Delta table: it has no _delta_log with commits. "
            "Check the path.",
            kind="DELTA_TABLE_NOT_FOUND",
            path=self.table_path,
        )


_MAX_ATTEMPTS_KNOWN = 1000


class _HandleCache:
    """The handles of this process, least recently used first; bounded in number and age."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._handles: OrderedDict[Hashable, tuple[DeltaLog, float]] = OrderedDict()

    def get_or_put(
        self, key: Hashable, fresh: DeltaLog, options: EngineOptions, clock: Clock
    ) -> DeltaLog:
        """The cached handle of a key that is young enough, or the fresh one, cached from now on."""
        now_s = clock.monotonic_s()
        oldest_s = now_s - 60 * options.log_cache_retention_minutes
        with self._mutex:
            handle, used_s = self._handles.pop(key, (fresh, now_s))
            chosen = handle if used_s >= oldest_s else fresh
            self._handles[key] = (chosen, now_s)
            while len(self._handles) > options.log_cache_size:
                self._handles.popitem(last=False)
            return chosen


_CACHE = _HandleCache()
