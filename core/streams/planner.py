"""`StreamPlanner`: the offsets of a stream over a table, and the files between two of them.

A stream without a start reads the table as it is first, its files ordered by (modification time,
path), and then each commit since. A batch never goes on from that snapshot to the commits, so a
batch that is run again has the same files even if nothing but its end was written down.

A start that only the moment decides, `latest` or a time, is answered as the first offset: a batch
without rows then carries it into the checkpoint. Held in memory alone it would be lost with the
first crash, and rows with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from optimist.core.changes.feed import ensure_recorded, feed_schema
from optimist.core.changes.files import as_inserted
from optimist.core.data.table_ref import TableRef
from optimist.core.errors import OptimistError, TableError, UsageError
from optimist.core.log.file_table import FILES_SCHEMA
from optimist.core.log.segment import newer_commits
from optimist.core.protocol.table_metadata import TableMetadata
from optimist.core.schema.generated_columns import without_expressions
from optimist.core.schema.types import StructType, schema_to_json
from optimist.core.snapshot import Snapshot
from optimist.core.snapshot.files_view import FilesView
from optimist.core.snapshot.one_version import NOT_RECREATABLE, load_version
from optimist.core.streams.changed_rows import ChangedRun, ChangeReader
from optimist.core.streams.commit_files import CommitReader
from optimist.core.streams.followed_schemas import FollowedSchemas
from optimist.core.streams.indexed_files import Capacity, IndexedFiles
from optimist.core.streams.offset import AFTER_CHANGE, BASE_INDEX, CHANGE, StreamOffset
from optimist.core.streams.options import LATEST, StreamOptions
from optimist.core.streams.schema_log import SchemaLog
from optimist.core.streams.schema_rules import StreamSchema, other_table, unknown_columns
from optimist.core.streams.starts import first_commit
from optimist.core.streams.tracking import SchemaTracking, evolved
from optimist.core.streams.unblocked import Allowed

__all__ = ["Backlog", "StreamPlanner"]

_MOST_COUNTED = 1000
"""Of how many versions ahead the files are counted for the progress of a query."""


@dataclass(frozen=True, slots=True)
class Backlog:
    """What a stream has yet to read, as far as it is known."""

    files: int
    size_bytes: int
    versions: int


@dataclass(slots=True)
class StreamPlanner:
    """One stream over a table; one thread at a time asks it.

    Attributes:
        table: The table.
        options: The stream's options.
        newest: Gives the newest version of the table.
        schema: By which rows are read: that of the newest version when the stream was started, or
            that of its log of schemas.
        tracking: The log of schemas, if the stream has one.
    """

    table: TableRef
    options: StreamOptions
    newest: Callable[[], Snapshot]
    schema: StreamSchema
    tracking: SchemaTracking | None = None
    _reader: CommitReader = field(init=False)
    _changes: ChangeReader = field(init=False)
    _commits: dict[int, IndexedFiles] = field(default_factory=dict, init=False)
    _counts: dict[int, Backlog] = field(default_factory=dict, init=False)
    _initial: tuple[int, IndexedFiles] | None = field(default=None, init=False)
    _initial_ms: int = field(default=0, init=False)
    _first: StreamOffset | None = field(default=None, init=False)
    _latest: Snapshot | None = field(default=None, init=False)
    _begins_readable: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self._use(self.schema)

    @classmethod
    def of(
        cls,
        table: TableRef,
        options: StreamOptions,
        newest: Callable[[], Snapshot],
        log_of: Callable[[str], SchemaLog] | None = None,
        *,
        tracked_by: type[SchemaTracking] = SchemaTracking,
    ) -> StreamPlanner:
        """A stream that starts now, or goes on from a checkpoint.

        Args:
            table: The table.
            options: The stream's options.
            newest: Gives the newest version of the table.
            log_of: Gives the log of schemas for the table's id, if the stream has one.
            tracked_by: Who keeps that log.

        Raises:
            UsageError: The conf lets no stream have one (kind `DELTA_ILLEGAL_OPTION`).
            TableError: The log of schemas is damaged, or that of another table.
        """
        snapshot = newest()
        if log_of is None:
            schema = StreamSchema(snapshot.metadata, snapshot.version, snapshot.protocol)
            return cls(table, options, newest, schema)
        if not table.options.streaming_schema_tracking:
            raise _not_tracked()
        tracking = tracked_by.of(log_of(snapshot.metadata.id), table, snapshot)
        return cls(table, options, newest, tracking.schema_over(snapshot), tracking)

    @property
    def is_placed_by_position(self) -> bool:
        """Whether only a position tells by what its rows are read; see `begin_following`."""
        return isinstance(self.tracking, FollowedSchemas)

    @property
    def table_id(self) -> str:
        """The table's id, which all offsets have."""
        return self.schema.metadata.id

    def capacity(self) -> Capacity:
        """What the options let a batch take."""
        return Capacity(self.options.max_files, self.options.max_bytes)

    def latest_version(self) -> int:
        """The newest version; costs one listing."""
        return self._look().version

    def begin_following(
        self, position: StreamOffset | None, allowed: Allowed, *, end: StreamOffset | None = None
    ) -> None:
        """Choose by which entry of its log of schemas a follower reads; it may have none.

        Args:
            position: Where the follower is; None before it has read anything.
            allowed: What it was told.
            end: Where its first batch ends, if an earlier run has planned that.

        Raises:
            UsageError, TableError, SchemaError, ProtocolError: As `FollowedSchemas`.
        """
        if not isinstance(self.tracking, FollowedSchemas):
            return
        latest = self._look()
        if position is None:
            begin = self._begin(latest) if end is None else self._begin_of_first(end, latest)
            version = min(begin.version, latest.version)
            self._use(self.tracking.begin_anew(self.table, latest, version))
            return
        at = self._checked(position, latest)
        reached = at.version, _reached(at)
        self._use(self.tracking.go_on(self.table, latest, reached, allowed))

    def commits_after(
        self, position: StreamOffset | None
    ) -> Iterator[tuple[StreamOffset, tuple[FilesView, ...]]]:
        """What there is after a position, version by version: where each ends, and its rows.

        The start comes first, without rows, if only the moment tells it. Costs one listing.

        Args:
            position: Where the reader is; None before it has read anything.

        Raises:
            TableError, SchemaError, ProtocolError: As `latest_offset`. At a change, what is before
                it has been given, and whoever asks for more has dealt with that.
        """
        latest = self._look()
        at = self._begin(latest) if position is None else self._checked(position, latest)
        if position is None and self.options.starts_at_a_moment:
            yield at, self._views(at, at)
        if at.is_initial:
            begin, at = at, at.at(at.version + 1)
            yield at, self._views(begin, at)
        else:
            self._ensure_begins_readable(at)
        for _, after, files in self._commits_in(at.version, latest.version):
            begin, at = at, at.at(after)
            if self.tracking is not None and files.change is not None:
                raise self.tracking.record(files.change)
            yield at, self._views(begin, at)
            self._forget_before(at)

    def latest_offset(
        self, start: StreamOffset | None, capacity: Capacity, *, last_version: int | None = None
    ) -> StreamOffset | None:
        """Where the next batch ends; `start` itself if there is nothing new.

        Where the start is a time, the first batch has no rows, unless there will be no other.

        Args:
            start: Where the last batch ended; None before the first.
            capacity: What the batch may take.
            last_version: Nothing after this version is read; None for no bound.

        Raises:
            TableError, SchemaError, ProtocolError: A commit can't be read on; see `CommitReader`.
                Or the start is none of this table's offsets.
            SchemaError: The stream has come to a change, which its log of schemas has now (kind
                `DELTA_STREAMING_METADATA_EVOLUTION`).
        """
        latest = self._look()
        begin = self._begin(latest) if start is None else self._checked(start, latest)
        is_moment = start is None and self.options.starts_at_a_moment
        if start is None and begin.version > latest.version and not is_moment:
            return None
        if self.tracking is not None:
            self._begin_tracking(latest, begin, begin, is_fresh=start is None)
            if start is None:
                self._ensure_begun(latest, begin)
            if begin.index == CHANGE:
                return begin.at(begin.version, AFTER_CHANGE)
            self.done_with(begin)  # what did not come to be told, since the driver crashed
        # A time before the newest commit means the same commit whenever it is asked for.
        is_sure = self.options.starting_ms is not None and begin.version <= latest.version
        if is_moment and not (is_sure and capacity.is_all):
            return begin
        self._ensure_begins_readable(begin)
        self._forget_before(begin)
        bound = latest.version if last_version is None else min(latest.version, last_version)
        if begin.is_initial:
            rest = self._snapshot_files(begin.version).between(begin.index)
            taken = len(rest) if self.options.snapshot_at_once else capacity.take(rest)
            if taken == len(rest):
                return begin.at(begin.version + 1)
            return begin.at(begin.version, rest.places[taken - 1].as_py()) if taken else begin
        return self._latest_commit(begin, bound, capacity)

    def done_with(self, end: StreamOffset) -> None:
        """Hear that a batch is recorded for good: after a change its log of schemas goes on.

        Args:
            end: Where the batch ended.

        Raises:
            SchemaError: It ended at a change (kind `DELTA_STREAMING_METADATA_EVOLUTION`).
        """
        if self.tracking is None or end.index not in (CHANGE, AFTER_CHANGE):
            return
        change = self._commit_files(end.version).change
        if change is not None:
            raise self.tracking.record(change)

    def whole_offset(self) -> StreamOffset:
        """After everything that there is, for who does not know where the last batch ended."""
        return StreamOffset.before(self.table_id, self._look().version + 1)

    def views_between(self, start: StreamOffset | None, end: StreamOffset) -> tuple[FilesView, ...]:
        """The rows of a batch, as views whose columns are those of `stream_schema`.

        They are the same each time that a batch is run. There are always as many as `empty_views`
        has, each shaped as the one there.

        Args:
            start: Where the batch before ended; None for the first batch.
            end: Where the batch ends.

        Raises:
            TableError, SchemaError, ProtocolError: As `latest_offset`.
        """
        latest = self._look()
        self._checked(end, latest)
        begin = self._begin_of_first(end, latest) if start is None else self._checked(start, latest)
        end.ensure_not_before(begin)
        self._begin_tracking(latest, begin, end, is_fresh=start is None)
        self._ensure_begins_readable(begin)
        return self._views(begin, end)

    def empty_views(self) -> tuple[FilesView, ...]:
        """What `views_between` gives where there are no rows."""
        none = IndexedFiles.none()
        if not self.options.read_changes:
            return (self._view(none),)
        return self._changes.views(self._seen(), [], none.files)

    @property
    def stream_schema(self) -> StructType:
        """The columns of the stream's rows: the table's, and those of a change feed."""
        if self.options.read_changes:
            return feed_schema(self.schema.metadata)
        schema = TableMetadata.of(self.schema.metadata).schema
        return without_expressions(schema.as_nullable())

    def backlog(self, position: StreamOffset) -> Backlog:
        """What comes after a position, without a look for newer versions.

        Of commits that the stream can't read on, and of those far ahead, only the versions count.
        """
        if self._latest is None:
            return Backlog(0, 0, 0)
        files = size_bytes = 0
        first, after = position.version, position.index
        if position.is_initial:
            rest = self._snapshot_files(position.version).between(position.index)
            files, size_bytes = len(rest), rest.size_bytes
            first, after = position.version + 1, BASE_INDEX
        last, version = self._latest.version, first
        while version <= min(last, first + _MOST_COUNTED):
            try:
                found = self._count(version, after if version == first else BASE_INDEX)
            except OptimistError:
                break
            files, size_bytes = files + found.files, size_bytes + found.size_bytes
            version += found.versions
        return Backlog(files, size_bytes, max(0, last + 1 - position.version))

    # Where a stream begins

    def _begin(self, latest: Snapshot) -> StreamOffset:
        """Before the first batch; the same for the life of the stream."""
        if self._first is None:
            self._first = self._resolved(latest)
        return self._first

    def _resolved(self, latest: Snapshot) -> StreamOffset:
        version = first_commit(self.table, self.options, latest, self._reader)
        if version is None:
            return StreamOffset.before(self.table_id, latest.version, is_initial=True)
        return StreamOffset.before(self.table_id, version)

    def _begin_of_first(self, end: StreamOffset, latest: Snapshot) -> StreamOffset:
        """Before a first batch that ends here, perhaps one that an earlier run has planned."""
        if self.options.starting_version == LATEST:
            # Only the batch that carries the start is without one, so it is the start.
            return end
        if self.options.starts_at_a_moment:
            found = self._begin(latest)
            return found if found.place <= end.place else end
        if self.options.starting_version is not None:
            return self._begin(latest)
        version = end.version if end.is_initial else max(0, end.version - 1)
        return StreamOffset.before(self.table_id, version, is_initial=True)

    # What rows were written under

    def _ensure_begins_readable(self, begin: StreamOffset) -> None:
        """Make sure, once, that rows from where the stream starts or goes on can be read."""
        if self._begins_readable or begin.is_initial:  # a first snapshot is looked at when read
            return
        self._ensure_readable_from(begin.version)
        self._begins_readable = True

    def _ensure_readable_from(self, version: int) -> None:
        """Make sure that a version was written by columns that the stream can read.

        Commits tell of changes as they are read. What came before the first one that is read, or
        was lost from the log, tells nothing, so the table is loaded as it was then. Where that is
        no longer possible a stream goes on as in delta-spark, unless columns are mapped.
        """
        latest = self._seen()
        if self.tracking is not None:
            return
        try:
            found = load_version(self.table, min(version, latest.version), latest=latest)
        except TableError as error:
            if error.kind not in NOT_RECREATABLE:
                raise
            lost = self._commit_files(version).lost_until
            if lost is not None:
                self._ensure_readable_from(lost)
            elif TableMetadata.of(self.schema.metadata).is_mapped:
                raise unknown_columns(self.table.table_path, version) from None
            return
        self.schema.ensure_reads(found.metadata, found.version)

    # The log of schemas

    def _begin_tracking(
        self, latest: Snapshot, begin: StreamOffset, end: StreamOffset, *, is_fresh: bool
    ) -> None:
        """Write the log's first entry, which has to fit all rows between two offsets."""
        if self.tracking is None or self.tracking.entry is not None:
            return
        first = min(begin.version, latest.version) if is_fresh else _reached(begin)
        versions = range(first, max(first, _reached(end)) + 1)
        found = self.tracking.first_schema(self.table, latest, versions)
        if not found.reads_like(self.schema):
            raise evolved(found)
        self._use(found)

    def _ensure_begun(self, latest: Snapshot, begin: StreamOffset) -> None:
        """Make sure that the log's entry is for where the stream begins.

        A run that died before its first batch was planned has left one for where it had begun.
        """
        version = min(begin.version, latest.version)
        if self.tracking is None or version == self.schema.version:
            return
        base = load_version(self.table, version, latest=latest)
        found = StreamSchema(base.metadata, version, base.protocol, is_tracked=True)
        if version < self.schema.version or not found.reads_like(self.schema):
            raise self.tracking.record(found, is_first=True)

    def _use(self, schema: StreamSchema) -> None:
        """Read by a schema from now on."""
        self.schema = schema
        self._reader = CommitReader(self.table, schema, self.options)
        self._changes = ChangeReader(self.table, schema, self.options)
        self._commits.clear()
        self._begins_readable = False

    # What is in the table

    def _seen(self) -> Snapshot:
        return self._look() if self._latest is None else self._latest

    def _look(self) -> Snapshot:
        latest = self.newest()
        if latest.metadata.id != self.table_id:
            raise other_table(self.table_id, latest.metadata.id)
        if self._latest is not None and self._latest.known_log is not latest.known_log:
            self._ensure_same_log(self._latest)
        self._latest = latest
        return latest

    def _ensure_same_log(self, before: Snapshot) -> None:
        """Refuse a log that has other commits than those that were read, with the same numbers.

        It may be the same one, read anew. Nothing that was remembered of it is kept, in any case.
        """
        last_seen = before.segment.last_seen if before.segment else None
        if newer_commits(self.table.store, before.log_path, last_seen, before.version) is None:
            raise _set_back(f"version {before.version}", before.table_path, before.version)
        self._commits.clear()
        self._counts.clear()
        self._changes.forget()
        self._initial = None

    def _checked(self, offset: StreamOffset, latest: Snapshot) -> StreamOffset:
        if offset.table_id != self.table_id:
            raise other_table(offset.table_id, self.table_id)
        last = latest.version + (1 if offset.index == BASE_INDEX and not offset.is_initial else 0)
        if offset.version > last:
            raise _set_back(offset.to_json(), latest.table_path, offset.version)
        return offset

    def _latest_commit(self, begin: StreamOffset, last: int, capacity: Capacity) -> StreamOffset:
        position = begin
        try:
            for version, following, files in self._commits_in(begin.version, last):
                after = begin.index if version == begin.version else BASE_INDEX
                if files.change is not None and after == BASE_INDEX:
                    return begin.at(version, CHANGE)
                rest = files.between(after)
                taken = capacity.take(rest)
                if taken < len(rest):
                    return begin.at(version, rest.places[taken - 1].as_py()) if taken else position
                position = begin.at(following)
        except OptimistError:
            if position == begin:
                raise
        return position  # what came before is given first; then the next look raises

    def _views(self, begin: StreamOffset, end: StreamOffset) -> tuple[FilesView, ...]:
        if not self.options.read_changes:
            return (self._view(IndexedFiles.joined(list(self._parts(begin, end)))),)
        inserted = IndexedFiles.none().files
        if begin.is_initial:
            upto = end.index if end.is_initial else None
            part = self._snapshot_files(begin.version).between(begin.index, upto)
            inserted = as_inserted(part.files, begin.version, self._initial_ms)
            begin = begin.at(begin.version + 1)
        runs = [] if end.is_initial else list(self._runs(begin, end))
        return self._changes.views(self._seen(), runs, inserted)

    def _view(self, files: IndexedFiles) -> FilesView:
        """Files of a stream of rows as they are read: by the schema that it began with.

        All columns may hold nulls, since the files may be older than a NOT NULL.
        """
        read = replace(self.schema.metadata, schema_string=schema_to_json(self.stream_schema))
        return self._seen().with_other_files(read, files.files)

    def _runs(self, begin: StreamOffset, end: StreamOffset) -> Iterator[ChangedRun]:
        """The commits between two offsets; those that an offset parts, each on its own."""
        first = begin.version
        if begin.index != BASE_INDEX:
            upto = end.index if end.version == first else None
            yield ChangedRun.part(first, self._commit_files(first).between(begin.index, upto))
            first += 1
        if first < end.version:
            yield ChangedRun(range(first, end.version))
        if end.index != BASE_INDEX and first <= end.version:
            part = self._commit_files(end.version).between(BASE_INDEX, end.index)
            yield ChangedRun.part(end.version, part)

    def _parts(self, begin: StreamOffset, end: StreamOffset) -> Iterator[IndexedFiles]:
        first, after = begin.version, begin.index
        if begin.is_initial:
            upto = end.index if end.is_initial else None
            yield self._snapshot_files(begin.version).between(begin.index, upto)
            first, after = begin.version + 1, BASE_INDEX
        if end.is_initial:
            return
        last = end.version if end.index >= 0 else end.version - 1
        for version, _, files in self._commits_in(first, last):
            upto = end.index if version == end.version else None
            yield files.between(after if version == first else BASE_INDEX, upto)

    def _commits_in(self, first: int, last: int) -> Iterator[tuple[int, int, IndexedFiles]]:
        """Each commit of some versions, with the one to go on with; lost ones are one step."""
        version = first
        while version <= last:
            files = self._commit_files(version)
            following = files.next_version(version)
            if files.lost_until is not None:
                self._ensure_readable_from(following)
            yield version, following, files
            version = following

    def _commit_files(self, version: int) -> IndexedFiles:
        found = self._commits.get(version)
        if found is None:
            latest = version if self._latest is None else self._latest.version
            found = self._commits[version] = self._reader.files(version, latest)
        return found

    def _snapshot_files(self, version: int) -> IndexedFiles:
        if self._initial is None or self._initial[0] != version:
            snapshot = load_version(self.table, version, latest=self._latest)
            if self.tracking is None:
                self.schema.ensure_reads(snapshot.metadata, version)
            if self.options.read_changes:
                path = self.table.table_path
                ensure_recorded(snapshot.metadata, path, version, range(version, version + 1))
                self._initial_ms = snapshot.timestamp_ms
            order = [("modificationTime", "ascending"), ("path", "ascending")]
            files = snapshot.files.sort_by(order).select(FILES_SCHEMA.names)
            self._initial = version, IndexedFiles.of(files, self.options.exclude_regex)
        return self._initial[1]

    def _count(self, version: int, after: int) -> Backlog:
        """What a commit has, or a run of lost ones."""
        if after == BASE_INDEX and version in self._counts:
            return self._counts[version]
        kept = self._commits.get(version)
        found = self._reader.files(version, self._seen().version) if kept is None else kept
        rest = found.between(after)
        counted = Backlog(len(rest), rest.size_bytes, found.next_version(version) - version)
        if after == BASE_INDEX:
            self._counts[version] = counted
        return counted

    def _forget_before(self, position: StreamOffset) -> None:
        """What no later batch asks for; a batch is asked for once more after its end is known."""
        for kept in (self._commits, self._counts):
            for version in [number for number in kept if number < position.version]:
                del kept[version]
        if not position.is_initial:
            self._initial = None


def _reached(position: StreamOffset) -> int:
    """The last version whose metadata hold for what was read up to a position."""
    is_before = position.index in (BASE_INDEX, CHANGE) and not position.is_initial
    return max(0, position.version - 1) if is_before else position.version


def _not_tracked() -> UsageError:
    return UsageError(
        "Schema tracking location is not supported for Delta streaming source: the key "
        "spark.databricks.delta.streaming.schemaTracking.enabled is false. Nothing was read. Set "
        "it to true, or leave the option schemaTrackingLocation out.",
        kind="DELTA_ILLEGAL_OPTION",
        key="schemaTrackingLocation",
    )


def _set_back(position: str, table_path: str, version: int) -> TableError:
    """The error for a log that does not have what a stream has read of it."""
    return TableError(
        f"The stream has read up to {position}, which the log of {table_path} does not have any "
        "more: it was set back to an older state, or the checkpoint is that of a copy. Nothing was "
        "read. Start the stream with a new checkpoint.",
        kind="DELTA_VERSION_NOT_FOUND",
        version=version,
    )
