"""`Snapshot`: one version of a table, immutable (spec 1.1, 5.6)."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.clock import Clock, SystemClock
from optimist.core.errors import SchemaError, TableError
from optimist.core.log.checksum import (
    VersionChecksum,
    checksum_of_files,
    derive_checksum,
    read_checksum,
)
from optimist.core.log.commits import read_commit_info
from optimist.core.log.integrity import disagreement
from optimist.core.log.names import commit_path, log_path_of
from optimist.core.log.replay import LogState, replay, with_actions, with_commits
from optimist.core.log.segment import LogSegment
from optimist.core.logstore import FileStatus, LogStore
from optimist.core.options import EngineOptions
from optimist.core.predicates import (
    FilePruner,
    Predicate,
    RowCount,
    SplitPredicate,
    ensure_columns,
    split_conjuncts,
)
from optimist.core.protocol.actions import (
    Action,
    CommitInfo,
    DomainMetadata,
    Metadata,
    Protocol,
    SetTransaction,
)
from optimist.core.protocol.gates import DEFAULT_PROTOCOL, ensure_features_listed, ensure_readable
from optimist.core.protocol.properties import TableProperties
from optimist.core.schema.types import StructField, StructType
from optimist.core.table_schema import table_schema

__all__ = ["Scan", "Snapshot"]

_LOG = logging.getLogger(__name__)
_NO_METADATA = Metadata(id="", schema_string='{"type":"struct","fields":[]}')


@dataclass(frozen=True, slots=True)
class Scan:
    """The files of a snapshot that may hold rows matching a predicate.

    Attributes:
        files: One row per file, columns as in `Snapshot.files`.
        predicate: The predicate with its columns in the schema's spelling; `Predicate.TRUE` for all
            rows.
        split: Its conjuncts, cut in those on partition columns, which decide exactly, and the
            others.
    """

    files: pa.Table
    predicate: Predicate
    split: SplitPredicate


class Snapshot:
    """One version of a table. Threads may share it; nothing in it ever changes.

    The small parts are there from the start; the files are read when they are first asked for. Get
    one from `DeltaLog`, or from `load`, `absent`, `with_commit` and `updated_to`.

    Attributes:
        table_path: The table's directory.
        log_path: Its `_delta_log`.
        version: The version, -1 where there is no table.
        segment: The files of the log that the version is made of; None where there is no table.
        protocol: The table's protocol.
        metadata: The table's metadata.
        schema: The columns, partition columns included.
        partition_columns: The logical names of the partition columns, in order.
        properties: The table properties, parsed.
    """

    def __init__(
        self,
        table_path: str,
        version: int,
        segment: LogSegment | None,
        *,
        state: LogState,
        context: _Context,
        checksum: VersionChecksum | None = None,
    ) -> None:
        self.table_path = table_path
        self.log_path = log_path_of(table_path)
        self.version = version
        self.segment = segment
        self._state = state
        self._context = context
        self._checksum = checksum
        self._has_checksum_file = False
        self._timestamp_ms: int | None = None
        self._tombstones: pa.Table | None = None
        self._files: pa.Table | None = None
        self._mutex = threading.RLock()
        # The pruner keeps what it has parsed for the next scan; apart, so that scans hold up nobody
        # else.
        self._pruner: FilePruner | None = None
        self._pruner_mutex = threading.Lock()
        self.protocol: Protocol = state.table.protocol or DEFAULT_PROTOCOL
        self.metadata: Metadata = state.table.metadata or _NO_METADATA
        self.schema: StructType = table_schema(self.metadata)
        self.partition_columns: tuple[str, ...] = self.metadata.partition_columns
        self.properties = TableProperties.from_configuration(self.metadata.configuration)
        self.set_transactions: Mapping[str, SetTransaction] = self._unexpired_transactions()

    def __repr__(self) -> str:
        return f"Snapshot(table_path={self.table_path!r}, version={self.version})"

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
        """What stands for a table that does not exist: version -1, no files, an empty schema."""
        context = _Context(None, options or EngineOptions(), clock or SystemClock())
        return cls(table_path, -1, None, state=LogState.empty(), context=context)

    def with_commit(self, version: int, actions: Iterable[Action], status: FileStatus) -> Snapshot:
        """The next version, after a commit whose actions are known: nothing is read (spec 1.15).

        The commit is in the table, so no gate is asked. The cost does not depend on the number of
        files.
        """
        assert version == self.version + 1, f"{version} does not follow {self.version}"
        actions = tuple(actions)
        state = with_actions(self._state, actions)
        checksum = None
        if self._context.options.write_checksum_enabled:
            previous = self.checksum
            if previous is not None or version == 0:
                checksum = derive_checksum(
                    previous, actions, state=state.table, options=self._context.options
                )
        base = self.segment or LogSegment(self.log_path, -1, None, (), None)
        segment = base.with_commit(version, status)
        return Snapshot(
            self.table_path,
            version,
            segment,
            state=state,
            context=self._context,
            checksum=checksum,
        )

    def confirmed(self, status: FileStatus) -> Snapshot:
        """The same version once a listing has shown its commit, and with it the file's own time."""
        assert self.segment is not None
        commits = (*self.segment.commits[:-1], status)
        segment = replace(self.segment, commits=commits, last_commit=status)
        return Snapshot(
            self.table_path,
            self.version,
            segment,
            state=self._state,
            context=self._context,
            checksum=self._checksum,
        )

    def updated_to(self, store: LogStore, segment: LogSegment) -> Snapshot:
        """The version that a newer segment describes; reads only the commits since this one.

        Where the segment does not continue this snapshot (the table was made anew, or its
        checkpoint is newer than this version), everything is read as by `load`.

        Raises:
            TableError, ProtocolError: As `load`.
        """
        context = _Context(store, self._context.options, self._context.clock)
        if not self._is_continued_by(segment):
            return Snapshot.load(
                store, self.table_path, segment, options=context.options, clock=context.clock
            )
        if segment.version == self.version:
            return self
        state = with_commits(self._state, store, segment.commits_after(self.version))
        newer = Snapshot._gated(self.table_path, segment, state, context)
        newer._has_checksum_file = self.checksum is not None
        return newer

    def with_other_files(self, metadata: Metadata, files: pa.Table) -> Snapshot:
        """Files that are not this version's, under metadata that describes their rows.

        It can be scanned like a table version, and is none: it has no log segment, and nothing may
        be committed on it. A change feed is read through two of these.

        Args:
            metadata: Schema and partitioning of the files; its id must be told apart from the
                table's, since scans of equal id and version count as equal.
            files: Columns of `FILES_SCHEMA`; a path may occur more than once.
        """
        table = replace(self._state.table, metadata=metadata)
        view = Snapshot(
            self.table_path,
            self.version,
            None,
            state=replace(LogState.empty(), table=table),
            context=self._context,
        )
        view._files = files
        return view

    @property
    def files(self) -> pa.Table:
        """The live files, one row each, columns of `FILES_SCHEMA` (path as it stands in the log).

        Raises:
            TableError: The checkpoint is damaged and no older one serves, or the files do not agree
                with the version checksum that stands beside the commit (kind
                `DELTA_TXN_LOG_FAILED_INTEGRITY`).
        """
        with self._mutex:
            if self._files is None:
                files = self._state.files.table()
                self._ensure_agrees(files)
                self._files = files
            return self._files

    def ensure_agrees(self, *, num_files: int, size_bytes: int) -> None:
        """Compare what somebody counted while streaming the files with the checksum, if any.

        Raises:
            TableError: They differ (kind `DELTA_TXN_LOG_FAILED_INTEGRITY`).
        """
        noted = self.checksum
        if noted is not None:
            self._agrees(noted, num_files=num_files, size_bytes=size_bytes)

    @property
    def tombstones(self) -> pa.Table:
        """The removed files that are still kept (spec 5.6), columns of `TOMBSTONES_SCHEMA`.

        Which are unexpired is decided by the clock at the first look.
        """
        with self._mutex:
            if self._tombstones is None:
                self._tombstones = self._state.tombstones.table().filter(self._is_unexpired())
            return self._tombstones

    def iter_files(self, max_rows: int) -> Iterator[pa.RecordBatch]:
        """The live files in batches of at most so many rows, for whoever looks at each once.

        What is not in memory is read batch by batch and not kept, however large the table is.

        Raises:
            TableError, LogFileNotFoundError: The checkpoint is damaged; `files` may find another.
        """
        with self._mutex:
            known = self._files
        batches = self._state.files.stream() if known is None else known.to_batches()
        return _in_slices(batches, max_rows)

    def iter_tombstones(self, max_rows: int) -> Iterator[pa.RecordBatch]:
        """The removed files that are still kept, as `iter_files`."""
        with self._mutex:
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
    def num_files(self) -> int:
        """How many live files there are."""
        return int(self.files.num_rows)

    @property
    def size_in_bytes(self) -> int:
        """The sizes of the live files, summed."""
        return int(pc.sum(self.files.column("size"), min_count=0).as_py())

    @property
    def domain_metadata(self) -> Mapping[str, DomainMetadata]:
        """The live metadata domains, by name."""
        return MappingProxyType(dict(self._state.table.domain_metadata))

    @property
    def partition_schema(self) -> StructType:
        """The partition columns as a schema.

        Raises:
            SchemaError: A partition column is not in the schema (kind
                `DELTA_PARTITION_COLUMN_NOT_FOUND`).
        """
        return StructType(tuple(self._field(name) for name in self.partition_columns))

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
        if not self.properties.enable_in_commit_timestamps:
            return self.segment.last_commit_timestamp_ms
        with self._mutex:
            if self._timestamp_ms is None:
                self._timestamp_ms = self._in_commit_timestamp()
            return self._timestamp_ms

    @property
    def checksum(self) -> VersionChecksum | None:
        """The checksum of exactly this version, where it is known without looking at all files."""
        with self._mutex:
            if self._checksum is None:
                self._checksum = self._known_checksum()
            return self._checksum

    def physical_name(self, column: str) -> str:
        """The name of a column in data files, statistics and partition values (spec 10.8).

        Raises:
            SchemaError: There is no such column (kind `DELTA_COLUMN_NOT_FOUND`).
        """
        return self._field(column).physical_name

    def scan(self, predicate: str | Predicate | None = None, *, limit: int | None = None) -> Scan:
        """The files that may hold matching rows; all of them without a predicate.

        Conjuncts on partition columns decide exactly; statistics only leave out files that can't
        match.

        Args:
            predicate: SQL text or a tree.
            limit: So many matching rows are enough: where statistics prove that some of the files
                hold them, only those.

        Raises:
            UsageError: The predicate does not parse or names an unknown column.
        """
        if predicate is None and limit is None:
            return Scan(self.files, Predicate.TRUE, SplitPredicate())
        resolved = self._resolved(predicate)
        split = split_conjuncts(resolved, self.partition_columns)
        use_statistics = self._context.options.stats_skipping
        with self._pruner_mutex:
            if limit is not None and use_statistics:
                files = self._shared_pruner().enough(resolved, limit)
            else:
                files = self._shared_pruner().prune(resolved, use_statistics=use_statistics)
        return Scan(files, resolved, split)

    def count(self, predicate: str | Predicate | None = None) -> RowCount:
        """How many rows match, as far as the log tells without a look at them (spec 9.5).

        Deleted rows are not counted. Files of which partition values and statistics do not prove
        that all of their rows match, or none, are left undecided.

        Raises:
            UsageError: As `scan`.
        """
        resolved = self._resolved(predicate)
        if not self._context.options.stats_skipping:
            return RowCount(0, self.scan(resolved).files)
        with self._pruner_mutex:
            return self._shared_pruner().count(resolved)

    def _resolved(self, predicate: str | Predicate | None) -> Predicate:
        if predicate is None:
            return Predicate.TRUE
        parsed = Predicate.parse(predicate) if isinstance(predicate, str) else predicate
        return ensure_columns(parsed, self.schema)

    def pruner(self, *, zone: str = "UTC") -> FilePruner:
        """A new pruner of all files, by the engine's options.

        Args:
            zone: The time zone of predicates that speak of days or of local times.
        """
        return FilePruner(
            self.files,
            self.schema,
            self.partition_columns,
            zone=zone,
            trust_float_maximum=self._context.options.stats_trust_float_maximum,
        )

    def _shared_pruner(self) -> FilePruner:
        if self._pruner is None:
            self._pruner = self.pruner()
        return self._pruner

    @classmethod
    def _gated(
        cls, table_path: str, segment: LogSegment, state: LogState, context: _Context
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
        return cls(table_path, segment.version, segment, state=state, context=context)

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

    def _field(self, name: str) -> StructField:
        field = self.schema.find(name)
        if field is None:
            raise SchemaError(
                f"{self.table_path} has no column {name!r}. Its columns are: "
                f"{', '.join(self.schema.names)}.",
                kind="DELTA_COLUMN_NOT_FOUND",
                column=name,
            )
        return field

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

    def _ensure_agrees(self, files: pa.Table) -> None:
        """Compare what was read with the version checksum, where the listing showed one."""
        if self.segment is None or self.segment.checksum_file is None or not self._context.store:
            return
        noted = self._checksum or self._read_checksum(self._context.store)
        if noted is not None:
            size_bytes = pc.sum(files.column("size"), min_count=0).as_py()
            if self._agrees(noted, num_files=files.num_rows, size_bytes=size_bytes):
                self._checksum = noted

    def _agrees(self, noted: VersionChecksum, *, num_files: int, size_bytes: int) -> bool:
        error = disagreement(
            noted,
            self._state.table,
            num_files=num_files,
            size_bytes=size_bytes,
            log_path=self.log_path,
            version=self.version,
        )
        if error is None:
            return True
        if self._context.options.checksum_mismatch_fatal:
            raise error
        _LOG.error("%s", error)
        return False

    def _known_checksum(self) -> VersionChecksum | None:
        store, options = self._context.store, self._context.options
        status = self.segment.checksum_file if self.segment else None
        found = None
        if store is not None and (status is not None or self._has_checksum_file):
            found = self._read_checksum(store)
        self._has_checksum_file = False
        if found is None and self.version >= 0 and self._state.files.is_resolved:
            found = checksum_of_files(self.files, state=self._state.table, options=options)
        return found

    def _read_checksum(self, store: LogStore) -> VersionChecksum | None:
        info = self._state.table.commit_info
        txn_id = info.txn_id if info else None
        return read_checksum(store, self.log_path, self.version, txn_id=txn_id)

    def _in_commit_timestamp(self) -> int:
        info: CommitInfo | None = self._state.table.commit_info
        if info is None and self._context.store is not None:
            path = commit_path(self.log_path, self.version)
            info = read_commit_info(self._context.store, path)
        if info is None or info.in_commit_timestamp is None:
            part = "commitInfo" if info is None else "inCommitTimestamp"
            raise TableError(
                f"Version {self.version} of {self.table_path} has no {part}, though the table has "
                "in-commit timestamps enabled: a writer that does not know the feature made it.",
                kind="DELTA_MISSING_COMMIT_INFO"
                if info is None
                else "DELTA_MISSING_COMMIT_TIMESTAMP",
                version=self.version,
            )
        return info.in_commit_timestamp


@dataclass(frozen=True, slots=True)
class _Context:
    """What a snapshot needs beside the log; no store where no table was ever read."""

    store: LogStore | None
    options: EngineOptions
    clock: Clock


def _in_slices(batches: Iterable[pa.RecordBatch], max_rows: int) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for start in range(0, batch.num_rows, max_rows):
            yield batch.slice(start, max_rows)


def _is_same_file(one: FileStatus, other: FileStatus) -> bool:
    # A commit of ours was never listed: its status has no size, and the clock's time.
    if one.size_bytes == 0 or other.size_bytes == 0:
        return one.name == other.name
    return one == other
