"""`DeltaLog`, the handle of one table: its newest snapshot, its transactions (spec 1.1)."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Hashable, Mapping, MutableMapping, Sequence
from typing import overload

import pyarrow as pa

from optimist.core.changes.bounds import ChangeBounds
from optimist.core.changes.feed import change_feed, change_rows
from optimist.core.clock import Clock, SystemClock
from optimist.core.errors import (
    LogFileNotFoundError,
    StorageError,
    TableError,
    TableNotFoundError,
    UsageError,
)
from optimist.core.lease import Lease
from optimist.core.local_append import append
from optimist.core.log.last_checkpoint import LastCheckpoint, read_last_checkpoint
from optimist.core.log.names import commit_path, log_path_of
from optimist.core.log.segment import list_commits_after, list_segment
from optimist.core.logstore import FileStatus, LogStore
from optimist.core.maintenance.checkpoint import Progress, write_checkpoint
from optimist.core.options import EngineOptions
from optimist.core.paths import join, normalize
from optimist.core.plugins.lock_registry import find_lease
from optimist.core.plugins.logstore_registry import find_store
from optimist.core.predicates import Predicate
from optimist.core.protocol.actions import Action, Metadata, Protocol
from optimist.core.snapshot.local_scan import count_rows, to_arrow
from optimist.core.snapshot.snapshot import Snapshot
from optimist.core.snapshot.table_detail import TableDetail, table_detail
from optimist.core.snapshot.time_travel import (
    CommitRecord,
    commit_history,
    ensure_files_kept,
    ensure_version_exists,
    parse_timestamp,
    version_at_timestamp,
)
from optimist.core.table.commit_resolution import CommitResolution, resolve_commit
from optimist.core.transaction.conflicts.ours_and_theirs import Theirs
from optimist.core.transaction.hooks.background import BackgroundWork
from optimist.core.transaction.hooks.default_hooks import default_hooks
from optimist.core.transaction.hooks.hooks import CommittedTransaction, PostCommitHook
from optimist.core.transaction.optimistic import OptimisticTransaction
from optimist.core.transaction.result import CommitResult

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
        self._background = BackgroundWork()

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

    def snapshot(
        self,
        version: int | None = None,
        timestamp: str | int | None = None,
        *,
        to_read: bool = False,
    ) -> Snapshot:
        """The table as it was at a version, or at a time; the newest version without either.

        Args:
            version: A version number.
            timestamp: Epoch milliseconds, or text such as `2026-11-20 10:00:00` (UTC unless it says
                otherwise): the newest version that is not younger.
            to_read: Its rows are wanted, so that a version is refused whose files VACUUM may have
                removed (option `vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration`).

        Raises:
            UsageError: Both are given, or the text is no timestamp.
            TableError: The version or time is outside what the log still holds, or its files may be
                gone.
        """
        if version is not None and timestamp is not None:
            raise UsageError(
                "Give a version or a timestamp, not both.", kind="DELTA_ONEOF_IN_TIMETRAVEL"
            )
        try:
            latest = self.update()
        except TableNotFoundError:
            raise
        except TableError:
            if version is None:
                raise
            return self._load_version(version)  # the newest is damaged; this one may be whole
        if timestamp is not None:
            wanted = _epoch_ms(timestamp)
            version = version_at_timestamp(self.store, self.log_path, wanted, latest=latest)
        if version is None or version == latest.version:
            return latest
        found = self._load_version(version, latest_version=latest.version)
        if to_read and self.options.enforce_time_travel_within_retention:
            ensure_files_kept(found, latest=latest, now_ms=self.clock.now_ms())
        return found

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
        self,
        predicate: str | Predicate | None = None,
        columns: Sequence[str] | None = None,
        *,
        limit: int | None = None,
    ) -> pa.Table:
        """The rows of the newest version for which a predicate is true, read in this process.

        The log leaves out files that can't match; the rows of the others are judged one by one.
        Times are read in UTC. The order of the rows is not defined.

        Args:
            predicate: SQL text or a tree; all rows without one.
            columns: The columns wanted, in this order; all without it. Where rows are tracked
                (`delta.enableRowTracking`), `_metadata.row_id` and
                `_metadata.row_commit_version` may be among them.
            limit: At most so many rows, whichever come first; reads only files that it needs.

        Raises:
            UsageError: The predicate does not parse, or a part of it needs Spark to be judged
                (kind `OPTIMIST_NEEDS_SPARK`, field `part`).
            SchemaError: There is no such column.
            ProtocolError: The files need a feature that the reader does not have.
        """
        access = self.store.data_access(self.table_path)
        return to_arrow(self.update(), predicate, columns, limit=limit, access=access)

    def changes(
        self,
        predicate: str | Predicate | None = None,
        columns: Sequence[str] | None = None,
        *,
        starting_version: int | None = None,
        ending_version: int | None = None,
        starting_timestamp: str | int | None = None,
        ending_timestamp: str | int | None = None,
    ) -> pa.Table:
        """The rows that were inserted, updated or deleted in a run of versions (spec 10.11).

        The table's columns as they are at the end of the run, and then `_change_type` (`insert`,
        `update_preimage`, `update_postimage` or `delete`), `_commit_version` and
        `_commit_timestamp`. The order of the rows is not defined.

        Args:
            predicate: Only rows for which it is true; it may name the three columns, too.
            columns: The columns wanted, in this order; all without it.
            starting_version: The first version.
            ending_version: The last version; the newest one without an end.
            starting_timestamp: Epoch milliseconds or text as for `snapshot`, instead of a version:
                the first commit that is not older.
            ending_timestamp: As `starting_timestamp`: the last commit that is not younger.

        Raises:
            UsageError: No start, both kinds of start or end, or an end before the start.
            TableError: The run is outside the log, the change data feed
                (`delta.enableChangeDataFeed`) was off in a part of it (kind
                `DELTA_MISSING_CHANGE_DATA`), or a file is gone.
            SchemaError: Columns were dropped, renamed or given other types in the run.
        """
        bounds = ChangeBounds(
            starting_version,
            ending_version,
            _epoch_ms(starting_timestamp),
            _epoch_ms(ending_timestamp),
        )
        return change_rows(self, change_feed(self, bounds), predicate, columns)

    def count(self, predicate: str | Predicate | None = None) -> int:
        """How many rows of the newest version match; reads only files of which the log can't tell.

        Without a predicate, and with one on partition columns, that is none where every file has
        statistics. Deleted rows are not counted.

        Raises:
            UsageError, ProtocolError: As `to_arrow`.
        """
        access = self.store.data_access(self.table_path)
        return count_rows(self.update(), predicate, access=access)

    def history(self, limit: int | None = None) -> list[CommitRecord]:
        """The commits, newest first; reads no more of them than asked for."""
        latest = self.update().version
        return commit_history(self.store, self.log_path, limit=limit, latest_version=latest)

    def detail(self) -> TableDetail:
        """What there is to know of the newest version beside its rows: size, properties, ..."""
        return table_detail(self.update())

    def files(self, predicate: str | Predicate | None = None) -> pa.Table:
        """The live files of the newest version, one row each, columns as in `Snapshot.files`.

        Args:
            predicate: Only files that may hold rows for which it is true.

        Raises:
            UsageError: The predicate does not parse or names an unknown column.
        """
        return self.update().scan(predicate).files

    @property
    def metadata(self) -> Metadata:
        """Schema, partitioning and properties of the newest version; looks for one each time."""
        return self.update().metadata

    @property
    def protocol(self) -> Protocol:
        """The protocol of the newest version; looks for one each time."""
        return self.update().protocol

    def checkpoint(self, progress: Progress | None = None) -> LastCheckpoint:
        """Write a checkpoint of the newest version: opening the table then reads fewer commits.

        Args:
            progress: Called after each batch of files with how far it has got.

        Returns:
            What `_last_checkpoint` says now: version, number of actions, size.

        Raises:
            TableNotFoundError: There is no table at the path.
            TableError: The table does not agree with its checksum; nothing was published.
            StorageError: The store failed; the table is as it was.
        """
        return write_checkpoint(
            self.store, self.update(), options=self.options, clock=self.clock, progress=progress
        )

    def wait_for_background_work(self, timeout_s: float | None = None) -> bool:
        """Wait for the checksums, checkpoints and cleanups that commits here have left behind.

        Only with the option `postCommit.background`; the interpreter waits for them, too, when it
        ends. How they went is in the log and in each commit's result (`wait_for_hooks`).

        Returns:
            False if they are not done after so many seconds.
        """
        return self._background.wait(timeout_s)

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

    @property
    def background_work(self) -> BackgroundWork | None:
        """Where hooks go that may run later; None where the options want them run at once."""
        return self._background if self.options.post_commit_background else None

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
        self._last_status = segment.last_commit
        return Snapshot.load(
            self.store, self.table_path, segment, options=self.options, clock=self.clock
        )

    def _load_version(self, version: int, latest_version: int | None = None) -> Snapshot:
        try:
            segment = list_segment(self.store, self.log_path, version=version)
        except TableError:
            if latest_version is not None:
                # What is missing may just be out of reach: say what is not.
                ensure_version_exists(
                    self.store, self.log_path, version, latest_version=latest_version
                )
            raise
        if segment is None:
            raise self._not_found()
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


@overload
def _epoch_ms(timestamp: str | int) -> int: ...
@overload
def _epoch_ms(timestamp: None) -> None: ...
def _epoch_ms(timestamp: str | int | None) -> int | None:
    return parse_timestamp(timestamp) if isinstance(timestamp, str) else timestamp
