"""`DeltaLog`, the handle of one table: its newest snapshot, its transactions (spec 1.1)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Iterator, Mapping, MutableMapping, Sequence
from typing import TYPE_CHECKING

from optimist.core.data.table_ref import TableRef
from optimist.core.errors import (
    ArgumentTypeError,
    TableError,
    TableNotFoundError,
    UsageError,
)
from optimist.core.errors.argument_types import (
    ensure_kind,
    ensure_optional_function,
    ensure_optional_text,
    ensure_text,
    flag,
    optional_whole,
)
from optimist.core.errors.html_repr import or_no_html
from optimist.core.forking import ForkSafeLock
from optimist.core.imports import load_arrow
from optimist.core.log.checkpoint_kinds import written_checkpoint
from optimist.core.log.last_checkpoint import LastCheckpoint
from optimist.core.log.timestamps import Timestamp, optional_epoch_ms
from optimist.core.options.engine import EngineOptions
from optimist.core.options.handles import LAST_COMMIT_VERSION, ensure_for_handle, options_given
from optimist.core.paths import scheme_of
from optimist.core.plugins.lease import Lease
from optimist.core.plugins.lock_registry import find_lease
from optimist.core.plugins.logstore import LogStore
from optimist.core.plugins.logstore_registry import find_store
from optimist.core.plugins.table_path import TablePath, path_text, resolve_table_path
from optimist.core.plugins.table_place import place_of
from optimist.core.runtime.budget import one_operation, short_errors
from optimist.core.runtime.clock import Clock, SystemClock
from optimist.core.runtime.observers import observed
from optimist.core.secrets import Options
from optimist.core.snapshot import Snapshot
from optimist.core.snapshot.one_version import load_version, table_not_found
from optimist.core.snapshot.table_detail import TableDetail, table_detail
from optimist.core.snapshot.time_travel import (
    CommitRecord,
    commit_history,
    ensure_files_kept,
    version_at_timestamp,
)
from optimist.core.table import by_need
from optimist.core.table.change_reads import ChangeReads
from optimist.core.table.commit_resolution import CommitResolution, resolve_commit
from optimist.core.table.compaction_turn import CompactsOne, compacts_by_itself
from optimist.core.table.handle_cache import HandleCache
from optimist.core.table.maintenance_commands import MaintenanceCommands
from optimist.core.table.newest_snapshot import NewestSnapshot
from optimist.core.table.partition_paths import partition_paths, within_table
from optimist.core.table.row_commands import RowCommands
from optimist.core.table.row_reads import RowReads
from optimist.core.table.table_commands import TableCommands

if TYPE_CHECKING:
    from optimist.core.log_upkeep.checkpoint import Progress
    from optimist.core.requests.arguments import Rows
    from optimist.core.statements.run import StatementResult
    from optimist.core.streams.follow import FollowedCommit
    from optimist.core.table.own_commits import OwnCommits
    from optimist.core.table.sql_statements import StatementArguments
    from optimist.core.table.table_transaction import TableTransaction
    from optimist.core.transaction.hooks.hooks import PostCommitHook
    from optimist.core.transaction.optimistic import OptimisticTransaction
    from optimist.core.transaction.several import SeveralSteps

__all__ = ["DeltaLog"]

_LOG = logging.getLogger(__name__)


class DeltaLog(RowCommands, RowReads, ChangeReads, TableCommands, MaintenanceCommands):
    """One Delta table, by its path. Threads may share it.

    Attributes:
        table: Where the table is, what serves it, and by which options; see `TableRef`. Its
            attributes `table_path`, `log_path`, `store`, `options`, `clock` and `lease` are also
            the handle's own.
        commit_queue: Where appends wait to be committed together; None unless the options ask for
            that (`commit.group.enabled`).
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
        load_arrow()
        self.table = TableRef.of(
            table_path, store, options or EngineOptions(), clock or SystemClock(), lease=lease
        )
        self._given: Mapping[str, str] | None = None
        self._newest = NewestSnapshot(self.table)
        self._session = session
        self._own_commits: OwnCommits | None = None
        self._lock = ForkSafeLock()
        self._compacts = CompactsOne()
        # One per handle: threads that share it have the same options and the same credentials.
        grouped = self.table.options.group_commit_enabled
        self.commit_queue = by_need.CommitQueue(self.table, self._commits) if grouped else None

    @classmethod
    def for_path(
        cls,
        path: TablePath,
        options: Mapping[str, str] | None = None,
        *,
        session: MutableMapping[str, str] | None = None,
    ) -> DeltaLog:
        """Return the handle of the table at a path, where no table need exist yet.

        Handles are cached per path and options, so that asking twice costs nothing. They can be
        pickled, as the path and the options.

        Args:
            path: A local path or a URL; the scheme decides the store.
            options: A plain mapping, for example the entries of a Spark conf. Options of one read,
                such as `versionAsOf`, are refused: `snapshot` and `changes` have arguments instead.
            session: Receives `lastCommitVersionInSession` after each commit.

        Raises:
            ConfigError: An option, or the choice of the store or of the lease, is wrong.
            UsageError: The path is empty.
            ArgumentTypeError: The path is neither text nor a path object; it is a `TypeError`, too.
        """
        path = path_text(path)
        options = options_given(options)  # masks its values, so that no crash report shows a secret
        ensure_for_handle(options)
        given = Options({k: v for k, v in options.items() if k != LAST_COMMIT_VERSION})
        store = find_store(path, given)

        def key(table_path: str) -> Hashable:
            # The scheme is part of it: URLs that are one place to the store may differ for Spark.
            place = (scheme_of(table_path), place_of(table_path, store))
            return place, id(session), given

        known = _CACHE.get(key(resolve_table_path(path, store)))
        if known is not None:
            return known
        engine_options = EngineOptions.from_options(given)
        fresh = cls(path, store, engine_options, lease=find_lease(given), session=session)
        fresh._given = given  # a store keeps only what concerns it
        return _CACHE.get_or_put(key(fresh.table_path), fresh)

    def __reduce__(self) -> tuple[Callable[..., DeltaLog], tuple[str, dict[str, str]]]:
        """Pickle the handle as its path and its options, passwords included.

        The other process finds its own store, and its own session.
        """
        if self._given is None:
            raise ArgumentTypeError(
                f"The handle of {self.table_path} was made with a store, and can't be pickled. "
                "Nothing was done. Make it by DeltaLog.for_path, which is pickled as the path and "
                "the options.",
                kind="OPTIMIST_INVALID_ARGUMENT_TYPE",
                argument="store",
            )
        return DeltaLog.for_path, (self.table_path, dict(self._given))

    @or_no_html
    def _repr_html_(self) -> str | None:
        """Return the newest version that the handle knows, for notebooks."""
        known = self._newest.known
        return None if known is None else known._repr_html_()

    @property
    def table_path(self) -> str:
        """The table's directory."""
        return self.table.table_path

    @property
    def log_path(self) -> str:
        """The path of the table's `_delta_log`."""
        return self.table.log_path

    @property
    def store(self) -> LogStore:
        """The LogStore that serves the path."""
        return self.table.store

    @property
    def options(self) -> EngineOptions:
        """The engine's options."""
        return self.table.options

    @property
    def clock(self) -> Clock:
        """The clock that this handle and its transactions go by."""
        return self.table.clock

    @property
    def lease(self) -> Lease | None:
        """The lease by which commit loops of several processes take turns, or None.

        See `commit_lock`.
        """
        return self.table.lease

    # Versions

    @one_operation
    def table_exists(self) -> bool:
        """Return whether there is a table at the path now."""
        return self._newest.refresh() is not None

    @one_operation
    def snapshot(
        self,
        version: int | None = None,
        timestamp: Timestamp | None = None,
        *,
        to_read: bool = False,
    ) -> Snapshot:
        """Return the newest version of the table, or the table at a version or a time.

        The newest version costs one listing from the known version on, and the reading of the
        commits since.

        Args:
            version: A version number.
            timestamp: Text such as `2026-11-20 10:00:00`, a `datetime`, or epoch milliseconds (in
                UTC unless it says otherwise). It means the newest version committed at that time
                or before.
            to_read: Whether the rows will be read. Then a version is refused whose files VACUUM may
                have removed (option `vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration`).

        Raises:
            TableNotFoundError: There is no table at the path.
            UsageError: Both are given, or the text is not a timestamp.
            TableError: The version or time is outside what the log still holds, or its files may be
                gone; or the log is damaged.
            ProtocolError: The table needs a feature that this engine can't read.
        """
        if version is not None and timestamp is not None:
            raise UsageError(
                "The arguments version and timestamp are both given. Give only one of them.",
                kind="DELTA_ONEOF_IN_TIMETRAVEL",
            )
        version = optional_whole(version, "version")
        wanted_ms = optional_epoch_ms(timestamp, "timestamp")
        with observed("open", self.table_path) as facts:
            found = self._find(version, wanted_ms, to_read=to_read)
            facts["version"] = found.version
        return found

    def _find(self, version: int | None, wanted_ms: int | None, *, to_read: bool) -> Snapshot:
        try:
            latest = self._newest_version()
        except TableNotFoundError:
            raise
        except TableError:
            if version is None:
                raise
            return load_version(self.table, version)  # the newest is damaged; this one may be whole
        if wanted_ms is not None:
            version = version_at_timestamp(self.store, self.log_path, wanted_ms, latest=latest)
        if version is None or version == latest.version:
            return latest
        found = load_version(self.table, version, latest=latest)
        if to_read and self.options.enforce_time_travel_within_retention:
            ensure_files_kept(found, latest=latest, now_ms=self.clock.now_ms())
        return found

    def _newest_version(self) -> Snapshot:
        snapshot = self._newest.refresh()
        if snapshot is None:
            raise table_not_found(self.table)
        return snapshot

    @one_operation
    def start_transaction(self, snapshot: Snapshot | None = None) -> OptimisticTransaction:
        """Start a transaction on a version, by default the newest. The table need not exist.

        Raises:
            UsageError: There is no table, and the path is that of a partition of another (kind
                `OPTIMIST_PATH_OF_A_PARTITION`).
        """
        if snapshot is None:
            snapshot = self._newest.refresh() or self._absent_table()
        ensure_kind(snapshot, "snapshot", Snapshot, "a Snapshot")
        committer = by_need.LogCommitter(self.table, snapshot, self._commits, self.commit_queue)
        txn = by_need.OptimisticTransaction(self.table, snapshot, committer)
        for hook in self._hooks_on(snapshot):
            txn.register_post_commit_hook(hook)
        return txn

    def transaction(self, *, user_metadata: str | None = None) -> TableTransaction:
        """Begin several operations in one commit, each of which sees those before it.

        Use it as in `with log.transaction() as txn:`. The operations are methods of `txn`. They are
        committed at the end of the block, all or none.

        Args:
            user_metadata: Text for the history.
        """
        ensure_optional_text(user_metadata, "user_metadata")
        return by_need.TableTransaction(self, self._begin_several, user_metadata)

    def _begin_several(self) -> SeveralSteps:
        snapshot = self._newest.refresh() or self._absent_table()
        committer = by_need.LogCommitter(self.table, snapshot, self._commits)
        return by_need.SeveralSteps(self.table, snapshot, committer, self._hooks_on(snapshot))

    @property
    def _commits(self) -> OwnCommits:
        """What the handle's own transactions have committed, for a handle that only looks: none."""
        with self._lock:
            if self._own_commits is None:
                self._own_commits = by_need.OwnCommits(self.table, self._newest, self._session)
            return self._own_commits

    def _hooks_on(self, snapshot: Snapshot) -> Sequence[PostCommitHook]:
        if not compacts_by_itself(self.options, snapshot):
            return ()
        return (by_need.AutoCompaction(self.start_transaction, self._compacts),)

    def _absent_table(self) -> Snapshot:
        """Return the snapshot of a table that does not exist, outside any other table's files."""
        for place in partition_paths(self.table_path):
            if self._at_path(place.table_path).table_exists():
                raise within_table(self.table_path, place.table_path)
        return Snapshot.absent(
            self.table_path, options=self.options, clock=self.clock, data_store=self.store
        )

    def _at_path(self, path: TablePath) -> DeltaLog:
        """Return the handle of the table at another path, with the same options."""
        return DeltaLog.for_path(path, self._options_given)

    @property
    def _options_given(self) -> Mapping[str, str]:
        return self.store.options if self._given is None else self._given

    def follow(
        self,
        position: str | None = None,
        *,
        wait_s: float | None = None,
        starting_version: int | str | None = None,
        starting_timestamp: Timestamp | None = None,
        changes: bool = False,
        **options: object,
    ) -> Iterator[FollowedCommit]:
        """Yield the rows that come into the table, commit by commit, with positions to resume from.

        The first item is the whole table, unless a start is given. Each further item is a commit.
        Commits that only rearrange rows bring no rows. Where the start is `latest` or a time, the
        first item has no rows, only the position of that start.

        Args:
            position: The `position` of the last item that was dealt with, perhaps by an earlier
                process; a start is then ignored.
            wait_s: Look again after so many seconds where there is nothing new, for ever; each look
                costs one listing. It must be above 0. None ends there.
            starting_version: The first commit, or `latest` for those to come.
            starting_timestamp: Instead of it: a time, as for `snapshot`. It means the first commit
                made at that time or later.
            changes: Give what each commit inserted, updated and deleted, with the three columns of
                `changes`; the whole table comes as inserts.
            options: `ignoreDeletes`, `ignoreChanges`, `skipChangeCommits`, `excludeRegex`,
                `failOnDataLoss`, `schemaTrackingLocation` and those that go with it, as a stream of
                Spark takes them (docs/streams.md).

        Raises:
            TableError: A commit removed rows, or is no longer in the log; or the position is
                another table's. With `changes`, the change data feed was off (kind
                `DELTA_MISSING_CHANGE_DATA`) instead of the first.
            SchemaError: The table's schema has changed; with `schemaTrackingLocation` the same
                position goes on (kind `DELTA_STREAMING_METADATA_EVOLUTION`), or goes on with an
                option more, which the error names.
            UsageError: An option is wrong, or both starts are given.
        """
        ensure_optional_text(position, "position")
        if wait_s is not None:
            ensure_kind(wait_s, "wait_s", (int, float), "a number of seconds")
        given = {name: str(value) for name, value in options.items() if value is not None}
        given |= by_need.start_options(
            starting_version, optional_epoch_ms(starting_timestamp, "starting_timestamp")
        )
        by_need.ensure_stream_options(given)
        if flag(changes, "changes"):
            given["readChangeFeed"] = "true"
        parsed = by_need.StreamOptions.parse(given, int)
        log_of = None
        if parsed.schema_location is not None:
            place = self._at_path(parsed.schema_location).table
            log_of = by_need.logs_at(place, parsed.tracking_id)
        planner = by_need.StreamPlanner.of(
            self.table, parsed, self.snapshot, log_of, tracked_by=by_need.FollowedSchemas
        )
        allowed = by_need.Allowed(parsed, self._options_given)
        return short_errors(by_need.follow(planner, position, wait_s, allowed), "follow")

    @one_operation
    def sql(
        self,
        text: str,
        *,
        args: StatementArguments | None = None,
        sources: Mapping[str, Rows] | None = None,
    ) -> StatementResult:
        """Run a statement of SQL, which calls this table `this` (docs/sql.md).

        Args:
            text: The statement, such as `OPTIMIZE this`. It may also name tables by their paths,
                which have the same options.
            args: The values of parameters: a mapping for `:name`, a list for `?`.
            sources: Rows by names, for `MERGE INTO this USING name` and `USING INVENTORY name`.

        Returns:
            The rows, as Arrow, with the columns that Delta has.

        Raises:
            TableNotFoundError: There is no table at the path.
            UsageError: The text is no such statement (kind `OPTIMIST_UNSUPPORTED_STATEMENT`) or a
                wrong one (`PARSE_SYNTAX_ERROR`); it names a table of a catalog
                (`OPTIMIST_CATALOG_NAMES_UNSUPPORTED`); or only Spark can run it
                (`OPTIMIST_NEEDS_SPARK`).
            OptimistError: See the method for the same command.
        """
        return by_need.run_over(by_need.parse_with(text, args), self._at_path, sources, self)

    @one_operation
    def history(self, limit: int | None = None) -> list[CommitRecord]:
        """Return the commits, newest first. No more of them are read than asked for."""
        limit = optional_whole(limit, "limit", least=0)
        latest = self.snapshot().version
        return commit_history(self.store, self.log_path, limit=limit, latest_version=latest)

    @one_operation
    def detail(self) -> TableDetail:
        """Return facts about the newest version: size, properties, protocol and so on.

        See `TableDetail`.
        """
        return table_detail(self.snapshot())

    @one_operation
    def generate(self, mode: str = "symlink_format_manifest") -> None:
        """Write lists of the newest version's files, as `generate_manifests` does."""
        by_need.generate_manifests(self.table, self.snapshot(), mode)

    @one_operation
    def checkpoint(self, progress: Progress | None = None) -> LastCheckpoint:
        """Write a checkpoint of the newest version, so that opening the table reads fewer commits.

        Args:
            progress: Called after each batch of files with how far it has got.

        Returns:
            The content of `_last_checkpoint` from now on: version, number of actions, size.

        Raises:
            TableNotFoundError: There is no table at the path.
            ProtocolError: The table needs a writer feature that this engine does not have.
            TableError: The table does not agree with its checksum; nothing was published.
            StorageError: The store failed, or the table was dropped or made anew meanwhile (kind
                `OPTIMIST_PREDECESSOR_MISSING`); the table is as it was.
        """
        ensure_optional_function(progress, "progress")
        snapshot, clock = self.snapshot(), self.clock
        last = by_need.write_checkpoint(
            self.store,
            snapshot,
            options=self.options,
            clock=clock,
            progress=progress,
        )
        written = written_checkpoint(self.log_path, last, clock.now_ms())
        self._newest.take_up(snapshot.known_log, written)
        return last

    def wait_for_background_work(self, timeout_s: float | None = None) -> bool:
        """Wait for the checksums, checkpoints and cleanups that commits left to the background.

        There is none with the option `postCommit.background=false`. The interpreter also waits for
        it when it ends. The log and `CommitResult.wait_for_hooks` tell how each piece ended.

        Returns:
            False if they are not done after `timeout_s` seconds.
        """
        if timeout_s is not None:
            ensure_kind(timeout_s, "timeout_s", (int, float), "a number of seconds")
        return self._commits.background.wait(timeout_s)

    @one_operation
    def resolve_commit(self, txn_id: str, version: int | None = None) -> CommitResolution:
        """Find out whether a transaction landed that raised `CommitOutcomeUnknownError`.

        With the version this reads one file. Without it, on another handle than the one that made
        the attempt, it reads commits from the newest backwards until it finds the transaction; a
        transaction that it does not find stays `PENDING`.

        Args:
            txn_id: The error's `txn_id`.
            version: The error's `version`. A handle remembers those of its own attempts.

        Raises:
            CommitOutcomeUnknownError: The version is taken, and nothing tells by which transaction:
                its file was cleaned up, or commits carry no commitInfo (option
                `commitInfo.enabled`).
        """
        ensure_text(txn_id, "txn_id")
        version = optional_whole(version, "version", least=0)
        snapshot = self._newest.refresh()
        return resolve_commit(
            self.store,
            self.log_path,
            txn_id,
            attempted=self._commits.attempted_version(txn_id) if version is None else version,
            latest=snapshot.version if snapshot else -1,
            has_commit_info=self.options.commit_info_enabled,
        )


_CACHE: HandleCache[DeltaLog] = HandleCache()
