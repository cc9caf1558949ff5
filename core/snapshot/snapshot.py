"""`Snapshot`: one version of a table, immutable (spec 1.1, 5.6)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.errors import TableError
from optimist.core.errors.argument_types import whole_number
from optimist.core.errors.html_repr import or_no_html
from optimist.core.forking import ForkSafeLock
from optimist.core.log.checked_files import CheckedFiles
from optimist.core.log.checkpoint_kinds import Checkpoint
from optimist.core.log.checksum import VersionChecksum, checksum_of_files, derive_checksum
from optimist.core.log.commits import read_commit_info
from optimist.core.log.file_source import KnownFiles
from optimist.core.log.file_table import file_actions_batch
from optimist.core.log.known_log import KnownLog
from optimist.core.log.limits import LogLimits
from optimist.core.log.names import commit_path, log_path_of
from optimist.core.log.replay import LogState, on_checkpoint, replay, with_commits, with_files
from optimist.core.log.segment import LogSegment, commit_version, is_listed
from optimist.core.options.engine import EngineOptions
from optimist.core.plugins.logstore import FileStatus, LogStore
from optimist.core.protocol.actions import (
    Action,
    AddFile,
    CommitInfo,
    DomainMetadata,
    Metadata,
    RemoveFile,
    SetTransaction,
)
from optimist.core.protocol.domains import domains_that_count
from optimist.core.protocol.gates import ensure_features_listed, ensure_readable
from optimist.core.runtime.clock import Clock, SystemClock
from optimist.core.snapshot.files_view import FilesView
from optimist.core.snapshot.known_commits import KnownCommit, file_actions, file_changes
from optimist.core.snapshot.version_html import version_html
from optimist.core.snapshot.version_rows import VersionRows

__all__ = ["Snapshot"]

_MOST_ROWS = 2**31
"""More rows than a batch has."""


class Snapshot(VersionRows):
    """One version of a table: its files, and all else in its log.

    The small parts are loaded at once. The files are read on first use. Get a snapshot from
    `DeltaLog`, or from `load`, `absent`, `with_commits` and `updated_to`.

    Attributes:
        log_path: The table's `_delta_log`.
        segment: The files of the log that make up the version, or None without a table.
        known_log: The log. Snapshots that share it are versions of one table.
        set_transactions: The last unexpired transaction of each application id.
    """

    def __init__(
        self,
        table_path: str,
        segment: LogSegment | None,
        *,
        state: LogState,
        context: _Context,
        checksum: VersionChecksum | None = None,
        expects_checksum: bool = False,
    ) -> None:
        checked = CheckedFiles(
            state,
            segment,
            store=context.store,
            options=context.options,
            checksum=checksum,
            expects_checksum=expects_checksum,
        )
        super().__init__(
            table_path,
            segment.version if segment else -1,
            table=state.table,
            source=checked,
            store=context.store or context.data_store,
            options=context.options,
        )
        if segment is not None and segment.last_seen is not None:
            self.log_identity = _identity_of_log(segment.last_seen)
        self.log_path = log_path_of(table_path)
        self.segment = segment
        self.known_log = context.known_log
        self._context = context
        self._clock = context.clock
        self._checked = checked
        self._timestamp_ms: int | None = None
        self._tombstones: pa.Table | None = None
        self._lock = ForkSafeLock()
        self.set_transactions: Mapping[str, SetTransaction] = self._unexpired_transactions()

    @classmethod
    def load(
        cls,
        store: LogStore,
        table_path: str,
        segment: LogSegment,
        *,
        options: EngineOptions,
        clock: Clock,
    ) -> Snapshot:
        """Read the version that the segment describes. Its files are read on first use.

        Raises:
            TableError: A file of the log is damaged, or the state lacks protocol or metadata (kind
                `DELTA_STATE_RECOVER_ERROR`).
            ProtocolError: The table demands features that this engine lacks, or uses features that
                its protocol does not list.
        """
        state = replay(
            store,
            segment,
            max_retries=options.snapshot_loading_max_retries,
            use_compacted=options.use_compacted_for_reads,
            limits=LogLimits.of(options),
        )
        context = _Context(store, options, clock)
        return cls._checked_by_gates(table_path, segment, state, context)

    @classmethod
    def absent(
        cls,
        table_path: str,
        *,
        options: EngineOptions | None = None,
        clock: Clock | None = None,
        data_store: LogStore | None = None,
    ) -> Snapshot:
        """Return a stand-in for a missing table: version -1, no files, an empty schema.

        The versions that this process adds are known without reading a log. Their rows are read
        from `data_store`.
        """
        context = _Context(
            None, options or EngineOptions(), clock or SystemClock(), data_store=data_store
        )
        return cls(table_path, None, state=LogState.empty(), context=context)

    @or_no_html
    def _repr_html_(self) -> str:
        """Return what is known of the version without a read, for notebooks."""
        segment, checked = self.segment, self._checked
        needs_commit = self.has_active("inCommitTimestamp") and self._timestamp_ms is None
        time_ms = None if segment is None or needs_commit else self.timestamp_ms
        info = self._state.table.commit_info
        return version_html(self, time_ms, checked.known_table, checked.kept_checksum, info)

    def with_commits(self, commits: Sequence[KnownCommit]) -> Snapshot:
        """Return the version after commits with known actions, without reading (spec 1.15).

        They are in the table already, so no gate checks whether this engine can read them. The cost
        does not depend on the number of files.

        Args:
            commits: At least one. The first follows this version, and each other follows the one
                before it.
        """
        table = self._state.table
        for version, commit in enumerate(commits, self.version + 1):
            if commit.version != version:  # the state would belong to no version
                raise ValueError(f"{commit.version} does not follow {version - 1}")
            table = table.after(commit.actions)
        state = replace(self._state, table=table)
        batches = list(file_actions(commits))
        are_distinct = all(commit.has_distinct_files for commit in commits)
        for batch in batches:
            state = with_files(state, batch, are_distinct=are_distinct)
        base = self.segment or LogSegment(self.log_path, -1, None, (), None)
        return Snapshot(
            self.table_path,
            base.extended([commit.status for commit in commits]),
            state=state,
            context=self._context,
            checksum=self._checksum_after(commits, batches, state),
        )

    def _checksum_after(
        self, commits: Sequence[KnownCommit], batches: Sequence[pa.RecordBatch], state: LogState
    ) -> VersionChecksum | None:
        options = self._context.options
        is_anew = any(commit.files and commit.files.are_all for commit in commits)
        if options.write_checksum_enabled and is_anew:
            return checksum_of_files(state.files.table(), state=state.table, options=options)
        previous = self.checksum if options.write_checksum_enabled else None
        if not options.write_checksum_enabled or (previous is None and self.version >= 0):
            return None
        changes = file_changes(commits, batches, self._state.files)
        return derive_checksum(previous, changes, state=state.table, options=options)

    def is_same_version(self, other: Snapshot) -> bool:
        """Return whether both are the same version of the same log, not of two logs at one path."""
        return (self.known_log, self.version) == (other.known_log, other.version)

    def confirmed(self, commits: Sequence[FileStatus]) -> Snapshot:
        """Return the same version after a listing has shown our own commits in it.

        Args:
            commits: The statuses of the last commits up to this version, which give their times.
        """
        segment = self.segment
        if segment is None or segment.last_commit is None or is_listed(segment.last_commit):
            return self
        older = segment.commits[: -len(commits)]
        listed = commits[-len(segment.commits) :]
        return Snapshot(
            self.table_path,
            replace(
                segment, commits=(*older, *listed), last_commit=listed[-1], last_seen=listed[-1]
            ),
            state=self._state,
            context=self._context,
            checksum=self._checked.kept_checksum,
        )

    def made_from(self, store: LogStore, checkpoint: Checkpoint) -> Snapshot:
        """Return the same version, made from a checkpoint that is newer than its own.

        The result holds nothing older than the checkpoint. So a long-lived handle needs the same
        memory after any number of commits, and no file that cleanup has removed. Reads the commits
        after the checkpoint. Returns the snapshot itself if the checkpoint is not newer, or is
        above the version.
        """
        mine = self.segment
        if mine is None or not mine.checkpoint_version < checkpoint.version <= self.version:
            return self
        segment, options = mine.from_checkpoint(checkpoint), self._context.options
        live = dict(self.set_transactions)  # the checkpoint has only these
        state = on_checkpoint(
            replace(self._state, table=replace(self._state.table, set_transactions=live)),
            store,
            segment,
            max_retries=options.snapshot_loading_max_retries,
            limits=LogLimits.of(options),
        )
        return Snapshot(
            self.table_path,
            segment,
            state=state,
            context=replace(self._context, store=store),
            checksum=self._checked.kept_checksum,
            expects_checksum=self._checked.expects_checksum,
        )

    def provisional(self, version: int, actions: Sequence[Action]) -> Snapshot:
        """Return the table after actions that no log has yet.

        It can be read like a version, but belongs to a log of its own. So caches never confuse it
        with a version of the table.

        Args:
            version: Its version number.
            actions: The actions to apply.
        """
        # In-commit timestamps need one. Nobody has committed this yet, so the last time counts.
        info = CommitInfo(in_commit_timestamp=self.timestamp_ms)
        files = [each for each in actions if isinstance(each, AddFile | RemoveFile)]
        state = replace(self._state, table=self._state.table.after((*actions, info)))
        base = self.segment or LogSegment(self.log_path, version, None, (), None)
        found = Snapshot(
            self.table_path,
            replace(base, version=version, checksum_file=None),
            state=with_files(state, file_actions_batch(files)) if files else state,
            context=replace(self._context, known_log=KnownLog()),
        )
        found.log_identity = f"provisional-{self._context.clock.new_uuid()}"
        return found

    def updated_to(self, store: LogStore, segment: LogSegment) -> Snapshot:
        """Return the version of a newer segment, and read only the commits since this one.

        If the segment does not continue this snapshot (the table was made anew, or its checkpoint
        is newer than this version), everything is read as by `load`.

        Raises:
            TableError, ProtocolError: As `load`.
        """
        context = replace(self._context, store=store)
        if not self._is_continued_by(segment):
            return Snapshot.load(
                store, self.table_path, segment, options=context.options, clock=context.clock
            )
        if segment.version == self.version:
            return self
        state = with_commits(
            self._state,
            store,
            segment.commits_after(self.version),
            LogLimits.of(self._context.options),
        )
        # If this version has a checksum, the newer one likely has one, too.
        had_checksum = self.checksum is not None
        return Snapshot._checked_by_gates(
            self.table_path,
            segment,
            state,
            context,
            expects_checksum=had_checksum,
        )

    def may_be_of_log(self, log_identity: str) -> bool:
        """Return whether this version may be of the log that another process knows by an identity.

        It is not if the log has another commit in place of the one by which that process knows it.
        That commit may have been cleaned up; then nothing tells the logs apart.
        """
        number, _, _ = log_identity.partition("-")
        store = self._store
        if log_identity == self.log_identity or store is None or not number.isdecimal():
            return True
        path = commit_path(self.log_path, int(number))
        found = store.find(path) if store.finds_cheaply else next(store.list_from(path), None)
        if found is None or found.path != path:
            return True
        return _identity_of_log(found) == log_identity

    def with_other_files(self, metadata: Metadata, files: pa.Table) -> FilesView:
        """Return a view of files outside this version, under metadata that describes their rows.

        The view can be scanned like a table version, but nothing may be committed on it. A change
        feed is read through two of these.

        Args:
            metadata: Schema and partitioning of the files. Its id must differ from the table's,
                since scans of equal id and version count as equal.
            files: Columns of `FILES_SCHEMA`. A path may occur more than once.
        """
        table = replace(self._state.table, metadata=metadata)
        view = FilesView(
            self.table_path,
            self.version,
            table=table,
            source=KnownFiles(files),
            store=self._store,
            options=self._context.options,
        )
        view.log_identity = self.log_identity
        return view

    @property
    def files(self) -> pa.Table:
        """The live files, one row each, columns of `FILES_SCHEMA` (path as in the log).

        If the files disagree with the version checksum beside the commit, a warning is logged once.
        A caller that bases a write on them calls `ensure_intact`.

        Raises:
            TableError: The checkpoint is damaged and no older one helps. Or the files disagree with
                the checksum (kind `DELTA_TXN_LOG_FAILED_INTEGRITY`) and
                `checksum.mismatchFatalForReads` is set.
        """
        return self._checked.table()

    def ensure_intact(self) -> None:
        """Refuse to write on top of files that disagree with the version checksum.

        Raises:
            TableError: They disagree (kind `DELTA_TXN_LOG_FAILED_INTEGRITY`), and
                `checksum.mismatch.fatal` is not switched off.
        """
        self._checked.ensure_intact()

    def ensure_agrees(self, *, num_files: int, size_bytes: int) -> None:
        """Compare the checksum, if any, with the counts of a caller that streamed the files.

        Raises:
            TableError: They differ (kind `DELTA_TXN_LOG_FAILED_INTEGRITY`), and
                `checksum.mismatch.fatal` is not switched off.
        """
        self._checked.ensure_agrees(num_files=num_files, size_bytes=size_bytes)

    @property
    def _state(self) -> LogState:
        return self._checked.state

    @property
    def checksum(self) -> VersionChecksum | None:
        """The checksum of exactly this version, if it is known without reading all files."""
        return self._checked.checksum

    @property
    def tombstones(self) -> pa.Table:
        """The removed files that are still kept (spec 5.6), columns of `TOMBSTONES_SCHEMA`.

        The clock decides at the first use which of them have expired.
        """
        with self._lock:
            if self._tombstones is None:
                found = self._checked.read(lambda state: state.tombstones.table())
                self._tombstones = found.filter(self._is_unexpired())
            return self._tombstones

    def iter_files(self, max_rows: int) -> Iterator[pa.RecordBatch]:
        """Yield the live files in batches of at most `max_rows`, for a caller that needs each once.

        Files outside memory are read batch by batch and not kept, however large the table is.

        Raises:
            TableError, LogFileNotFoundError: The checkpoint is damaged. `files` may find a
                replacement.
        """
        return _slice_batches(self._checked.batches(), max_rows)

    def iter_tombstones(
        self, max_rows: int, *, since_ms: int | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Yield the removed files that are still kept, in batches like `iter_files`.

        Args:
            max_rows: The largest number of rows of a batch.
            since_ms: Also yield the files that were removed at this time or later, as far as the
                log still has them: a new checkpoint leaves expired ones out.
        """
        with self._lock:
            known = self._tombstones
        if known is not None and since_ms is None:
            return _slice_batches(known.to_batches(), max_rows)
        is_wanted = self._is_unexpired()
        if since_ms is not None:
            removed_ms = pc.coalesce(pc.field("deletionTimestamp"), pc.scalar(0))
            is_wanted = is_wanted | pc.greater_equal(removed_ms, since_ms)
        batches = (batch.filter(is_wanted) for batch in self._checked.tombstone_batches())
        return _slice_batches(batches, max_rows)

    def _is_unexpired(self) -> pc.Expression:
        oldest_ms = self._context.clock.now_ms() - self.properties.deleted_file_retention_ms
        return pc.greater(pc.coalesce(pc.field("deletionTimestamp"), pc.scalar(0)), oldest_ms)

    @property
    def domain_metadata(self) -> Mapping[str, DomainMetadata]:
        """The live metadata domains that count, by name."""
        return MappingProxyType(domains_that_count(self.stored_domains, self.protocol))

    @property
    def stored_domains(self) -> Mapping[str, DomainMetadata]:
        """All live metadata domains in the log, also those without their feature."""
        return MappingProxyType(dict(self._state.table.domain_metadata))

    @property
    def txn_id(self) -> str | None:
        """The id of the transaction that made the version, if its commit was read or is ours."""
        info = self._state.table.commit_info
        return info.txn_id if info else None

    @property
    def timestamp_ms(self) -> int:
        """The time of the version: its in-commit timestamp, else its file's modification time.

        0 without a table. If only a checkpoint is left of the version, the next commit's time
        counts. Reads the commit at most once.

        Raises:
            TableError: In-commit timestamps are on, but the commit has none (kind
                `DELTA_MISSING_COMMIT_INFO` or `DELTA_MISSING_COMMIT_TIMESTAMP`).
        """
        if self.segment is None:
            return 0
        is_commit_gone = self.segment.newest_commit > self.version
        if is_commit_gone or not self.has_active("inCommitTimestamp"):
            return self.segment.last_commit_timestamp_ms
        with self._lock:
            if self._timestamp_ms is None:
                self._timestamp_ms = self._in_commit_timestamp()
            return self._timestamp_ms

    @classmethod
    def _checked_by_gates(
        cls,
        table_path: str,
        segment: LogSegment,
        state: LogState,
        context: _Context,
        *,
        expects_checksum: bool = False,
    ) -> Snapshot:
        protocol, metadata = state.table.protocol, state.table.metadata
        if protocol is None or metadata is None:
            missing = "protocol" if protocol is None else "metadata"
            raise TableError(
                f"Version {segment.version} of {table_path} has no {missing}: the log is damaged. "
                "Restore its files from a backup, or read an older version.",
                kind="DELTA_STATE_RECOVER_ERROR",
                missing=missing,
                version=segment.version,
                path=table_path,
            )
        ensure_readable(protocol, metadata, table_path=table_path, version=segment.version)
        ensure_features_listed(protocol, metadata, table_path=table_path, version=segment.version)
        return cls(
            table_path,
            segment,
            state=state,
            context=context,
            expects_checksum=expects_checksum,
        )

    def _is_continued_by(self, segment: LogSegment) -> bool:
        """Return whether the segment has the same table and needs nothing older than this."""
        mine = self.segment
        if mine is None or segment.log_path != self.log_path:
            return False
        if not segment.checkpoint_version <= self.version <= segment.version:
            return False
        first = max(mine.checkpoint_version, segment.checkpoint_version)
        theirs = segment.commits_after(first)
        return all(
            _is_same_file(one, other)
            for one, other in zip(mine.commits_after(first), theirs, strict=False)
        )

    def _unexpired_transactions(self) -> Mapping[str, SetTransaction]:
        known = self._state.table.set_transactions
        retention_ms = self.properties.set_transaction_retention_ms
        if retention_ms is None:
            return MappingProxyType(dict(known))
        oldest_ms = self._context.clock.now_ms() - retention_ms
        return MappingProxyType(
            {
                app_id: txn
                for app_id, txn in known.items()
                if txn.last_updated is not None and txn.last_updated > oldest_ms
            }
        )

    def _in_commit_timestamp(self) -> int:
        info: CommitInfo | None = self._state.table.commit_info
        if info is None and self._context.store is not None:
            path = commit_path(self.log_path, self.version)
            info = read_commit_info(self._context.store, path)
        if info is None or info.in_commit_timestamp is None:
            part = "commitInfo" if info is None else "inCommitTimestamp"
            raise TableError(
                f"Version {self.version} of {self.table_path} has no {part}, although the table "
                "has in-commit timestamps enabled. A writer that does not know the feature wrote "
                "it. Stop that writer, and name a version instead of a time.",
                kind="DELTA_MISSING_COMMIT_INFO"
                if info is None
                else "DELTA_MISSING_COMMIT_TIMESTAMP",
                version=self.version,
            )
        return info.in_commit_timestamp


@dataclass(frozen=True, slots=True)
class _Context:
    """The other inputs of a snapshot.

    Attributes:
        store: The store of the log, or None if no log was ever read.
        options: The options.
        clock: The clock.
        known_log: The known part of the log.
        data_store: The store of the data files, if `store` is None and rows may be read.
    """

    store: LogStore | None
    options: EngineOptions
    clock: Clock
    known_log: KnownLog = field(default_factory=KnownLog)
    data_store: LogStore | None = None


def _slice_batches(batches: Iterable[pa.RecordBatch], max_rows: int) -> Iterator[pa.RecordBatch]:
    max_rows = min(whole_number(max_rows, "max_rows", least=1), _MOST_ROWS)
    for batch in batches:
        for start in range(0, batch.num_rows, max_rows):
            yield batch.slice(start, max_rows)


def _is_same_file(one: FileStatus, other: FileStatus) -> bool:
    if is_listed(one) and is_listed(other):
        return one.is_same_file(other)
    return one.name == other.name


def _identity_of_log(last_seen: FileStatus) -> str:
    return f"{commit_version(last_seen)}-{last_seen.identity}"
