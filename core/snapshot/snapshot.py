"""`Snapshot`: one version of a table, immutable (spec 1.1, 5.6)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.errors import TableError
from optimist.core.forking import ForkSafeLock
from optimist.core.log.checked_files import CheckedFiles
from optimist.core.log.checkpoint_kinds import Checkpoint
from optimist.core.log.checksum import VersionChecksum, checksum_of_files, derive_checksum
from optimist.core.log.commits import read_commit_info
from optimist.core.log.file_sums import FileChanges, only_adds_new_files
from optimist.core.log.file_table import file_actions_batch
from optimist.core.log.known_log import KnownLog
from optimist.core.log.limits import LogLimits
from optimist.core.log.many_files import ManyFiles
from optimist.core.log.names import commit_path, log_path_of
from optimist.core.log.replay import LogState, on_checkpoint, replay, with_commits, with_files
from optimist.core.log.segment import LogSegment, is_listed
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

__all__ = ["KnownCommit", "Snapshot"]


@dataclass(frozen=True, slots=True)
class KnownCommit:
    """A commit whose actions need not be read from the log.

    Attributes:
        version: Its version.
        actions: All of its actions.
        status: Its file.
        files: Its files where these are columns, and not among the actions.
    """

    version: int
    actions: tuple[Action, ...]
    status: FileStatus
    files: ManyFiles | None = None


class Snapshot(FilesView):
    """One version of a table: its files, and all else that its log says of it.

    The small parts are there from the start; the files are read when they are first asked for. Get
    one from `DeltaLog`, or from `load`, `absent`, `with_commits` and `updated_to`.

    Attributes:
        log_path: The table's `_delta_log`.
        segment: The files of the log that the version is made of; None where there is no table.
        known_log: The log; snapshots that share it are versions of one table.
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
            read_files=checked.table,
            store=context.store,
            options=context.options,
        )
        if segment is not None and segment.last_seen is not None:
            self.log_identity = segment.last_seen.identity
        self.log_path = log_path_of(table_path)
        self.segment = segment
        self.known_log = context.known_log
        self._context = context
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
        """Read the version that the segment describes; its files only when they are asked for.

        Raises:
            TableError: A file of the log is damaged, or the state lacks protocol or metadata (kind
                `DELTA_STATE_RECOVER_ERROR`).
            ProtocolError: The table demands what this engine can't read, or uses features that its
                protocol does not list.
        """
        state = replay(
            store,
            segment,
            max_retries=options.snapshot_loading_max_retries,
            use_compacted=options.use_compacted_for_reads,
            limits=LogLimits.of(options),
        )
        context = _Context(store, options, clock)
        return cls._gated(table_path, segment, state, context)

    @classmethod
    def absent(
        cls,
        table_path: str,
        *,
        options: EngineOptions | None = None,
        clock: Clock | None = None,
    ) -> Snapshot:
        """A stand-in for a table that does not exist: version -1, no files, an empty schema."""
        context = _Context(None, options or EngineOptions(), clock or SystemClock())
        return cls(table_path, None, state=LogState.empty(), context=context)

    def with_commits(self, commits: Sequence[KnownCommit]) -> Snapshot:
        """The version after commits whose actions are known: nothing is read (spec 1.15).

        They are in the table already, so no gate is asked whether this engine can read them. The
        cost does not depend on the number of files.

        Args:
            commits: At least one; the first follows this version, each other the one before it.
        """
        table = self._state.table
        for version, commit in enumerate(commits, self.version + 1):
            if commit.version != version:  # the state would be that of no version
                raise ValueError(f"{commit.version} does not follow {version - 1}")
            table = table.after(commit.actions)
        state = replace(self._state, table=table)
        batches = list(_file_actions(commits))
        for batch in batches:
            state = with_files(state, batch)
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
        if options.write_checksum_enabled and any(commit.files for commit in commits):
            return checksum_of_files(state.files.table(), state=state.table, options=options)
        previous = self.checksum if options.write_checksum_enabled else None
        if not options.write_checksum_enabled or (previous is None and self.version >= 0):
            return None
        only_new = all(only_adds_new_files(commit.actions) for commit in commits)
        actions = batches[0] if batches else file_actions_batch(())
        changes = FileChanges.of(actions, self._state.files, only_new=only_new)
        return derive_checksum(previous, changes, state=state.table, options=options)

    def is_same_version(self, other: Snapshot) -> bool:
        """Whether both are one version of one log, and not of two that were at one path."""
        return (self.known_log, self.version) == (other.known_log, other.version)

    def confirmed(self, commits: Sequence[FileStatus]) -> Snapshot:
        """The same version once a listing has shown the commits of our own that it is made of.

        Args:
            commits: The statuses of the last commits up to this version, and with them their times.
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
        """The same version, made from a checkpoint that is newer than its own.

        Nothing older than the checkpoint is held on to, so that a handle that lives long needs the
        same memory after any number of commits, and no file that cleanup has removed. Reads the
        commits after the checkpoint; itself where the checkpoint is no newer, or above it.
        """
        mine = self.segment
        if mine is None or not mine.checkpoint_version < checkpoint.version <= self.version:
            return self
        segment, options = mine.from_checkpoint(checkpoint), self._context.options
        live = dict(self.set_transactions)  # as the checkpoint has them
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
        """The table as it would be after actions that no log has yet.

        It can be read like a version, but is none: it is of a log of its own, so that nothing that
        is remembered of a version is taken for it, or of it for a version.

        Args:
            version: The version that it goes by.
            actions: What changes.
        """
        # In-commit timestamps need one; nobody has committed this yet, so time has not gone on.
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
        """The version that a newer segment describes; reads only the commits since this one.

        Where the segment does not continue this snapshot (the table was made anew, or its
        checkpoint is newer than this version), everything is read as by `load`.

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
        # Where this version has a checksum, the newer one likely has one, too.
        had_checksum = self.checksum is not None
        return Snapshot._gated(
            self.table_path,
            segment,
            state,
            context,
            expects_checksum=had_checksum,
        )

    def with_other_files(self, metadata: Metadata, files: pa.Table) -> FilesView:
        """A view of files that are not this version's, under metadata that describes their rows.

        The view can be scanned like a table version, but is not one: nothing may be committed on
        it. A change feed is read through two of these.

        Args:
            metadata: Schema and partitioning of the files; its id must differ from the table's,
                since scans of equal id and version count as equal.
            files: Columns of `FILES_SCHEMA`; a path may occur more than once.
        """
        table = replace(self._state.table, metadata=metadata)
        view = FilesView(
            self.table_path,
            self.version,
            table=table,
            read_files=lambda: files,
            store=self._context.store,
            options=self._context.options,
        )
        view.log_identity = self.log_identity
        return view

    @property
    def files(self) -> pa.Table:
        """The live files, one row each, columns of `FILES_SCHEMA` (path as it stands in the log).

        If the files disagree with the version checksum beside the commit, that is logged as a
        warning, once. A caller that builds a write on them calls `ensure_intact`.

        Raises:
            TableError: The checkpoint is damaged and no older one serves; or the files do not agree
                with the checksum (kind `DELTA_TXN_LOG_FAILED_INTEGRITY`) and
                `checksum.mismatchFatalForReads` is set.
        """
        return self._checked.table()

    def ensure_intact(self) -> None:
        """Refuse to build on files that were found to disagree with the version checksum.

        Raises:
            TableError: They do not (kind `DELTA_TXN_LOG_FAILED_INTEGRITY`), and
                `checksum.mismatch.fatal` is not switched off.
        """
        self._checked.ensure_intact()

    def ensure_agrees(self, *, num_files: int, size_bytes: int) -> None:
        """Compare the checksum, if any, with what a caller counted while streaming the files.

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
        """The checksum of exactly this version, where it is known without looking at all files."""
        return self._checked.checksum

    @property
    def tombstones(self) -> pa.Table:
        """The removed files that are still kept (spec 5.6), columns of `TOMBSTONES_SCHEMA`.

        Which of them have expired is decided by the clock, when they are first asked for.
        """
        with self._lock:
            if self._tombstones is None:
                found = self._checked.read(lambda state: state.tombstones.table())
                self._tombstones = found.filter(self._is_unexpired())
            return self._tombstones

    def iter_files(self, max_rows: int) -> Iterator[pa.RecordBatch]:
        """The live files in batches of at most `max_rows`, for a caller that needs each only once.

        What is not in memory is read batch by batch and not kept, however large the table is.

        Raises:
            TableError, LogFileNotFoundError: The checkpoint is damaged; `files` may find a
                replacement.
        """
        return _in_slices(self._checked.batches(), max_rows)

    def iter_tombstones(self, max_rows: int) -> Iterator[pa.RecordBatch]:
        """The removed files that are still kept, as `iter_files`."""
        with self._lock:
            known = self._tombstones
        if known is not None:
            return _in_slices(known.to_batches(), max_rows)
        is_unexpired = self._is_unexpired()
        batches = (batch.filter(is_unexpired) for batch in self._state.tombstones.stream())
        return _in_slices(batches, max_rows)

    def _is_unexpired(self) -> pc.Expression:
        oldest_ms = self._context.clock.now_ms() - self.properties.deleted_file_retention_ms
        return pc.greater(pc.coalesce(pc.field("deletionTimestamp"), pc.scalar(0)), oldest_ms)

    @property
    def domain_metadata(self) -> Mapping[str, DomainMetadata]:
        """The live metadata domains that count, by name."""
        return MappingProxyType(domains_that_count(self.stored_domains, self.protocol))

    @property
    def stored_domains(self) -> Mapping[str, DomainMetadata]:
        """The live metadata domains as the log has them, those without their feature too."""
        return MappingProxyType(dict(self._state.table.domain_metadata))

    @property
    def txn_id(self) -> str | None:
        """The id of the transaction that made the version, where its commit was read or is ours."""
        info = self._state.table.commit_info
        return info.txn_id if info else None

    @property
    def timestamp_ms(self) -> int:
        """When the version was made: its in-commit timestamp, else its file's modification time.

        0 where there is no table. Reads the commit at most once.

        Raises:
            TableError: In-commit timestamps are on, but the commit has none (kind
                `DELTA_MISSING_COMMIT_INFO` or `DELTA_MISSING_COMMIT_TIMESTAMP`).
        """
        if self.segment is None:
            return 0
        if not self.has_active("inCommitTimestamp"):
            return self.segment.last_commit_timestamp_ms
        with self._lock:
            if self._timestamp_ms is None:
                self._timestamp_ms = self._in_commit_timestamp()
            return self._timestamp_ms

    @classmethod
    def _gated(
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
        """Whether the segment is of the same table and needs nothing older than this version."""
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
    """What a snapshot needs besides its state; the store is None if no table was ever read."""

    store: LogStore | None
    options: EngineOptions
    clock: Clock
    known_log: KnownLog = field(default_factory=KnownLog)


def _file_actions(commits: Sequence[KnownCommit]) -> Iterator[pa.RecordBatch]:
    """The adds and removes of commits in order, as batches of `ACTIONS_SCHEMA`.

    Those of commits without files as columns are one batch.
    """
    waiting: list[AddFile | RemoveFile] = []
    for commit in commits:
        waiting += [each for each in commit.actions if isinstance(each, AddFile | RemoveFile)]
        if commit.files:
            if waiting:
                yield file_actions_batch(waiting)
            waiting = []
            yield from commit.files.batches()
    if waiting:
        yield file_actions_batch(waiting)


def _in_slices(batches: Iterable[pa.RecordBatch], max_rows: int) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for start in range(0, batch.num_rows, max_rows):
            yield batch.slice(start, max_rows)


def _is_same_file(one: FileStatus, other: FileStatus) -> bool:
    if is_listed(one) and is_listed(other):
        return one.is_same_file(other)
    return one.name == other.name
