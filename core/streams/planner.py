"""`StreamPlanner`: the offsets of a stream over a table, and the files between two offsets.

A stream without a start first reads the current table, its files ordered by (modification time,
path), and then each later commit. A batch never contains both. So a batch that is run again has the
same files, even if only its end was recorded.

A start that depends on the current time, `latest` or a time, is returned as the first offset. A
batch without rows then records it in the checkpoint. In memory alone it would be lost at the first
crash, and rows with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from optimist.core.changes.feed import ensure_recorded, feed_schema
from optimist.core.changes.files import as_inserted
from optimist.core.data.table_ref import TableRef
from optimist.core.errors import OptimistError, TableError, UsageError
from optimist.core.log.segment import newer_commits
from optimist.core.protocol.table_metadata import TableMetadata
from optimist.core.schema.generated_columns import without_expressions
from optimist.core.schema.types import StructType, schema_to_json
from optimist.core.snapshot import Snapshot
from optimist.core.snapshot.files_view import FilesView
from optimist.core.snapshot.one_version import NOT_RECREATABLE
from optimist.core.streams.changed_rows import ChangedRun, ChangeReader
from optimist.core.streams.commit_files import CommitReader
from optimist.core.streams.first_files import FirstFiles
from optimist.core.streams.followed_schemas import FollowedSchemas
from optimist.core.streams.indexed_files import Capacity, IndexedFiles
from optimist.core.streams.offset import AFTER_CHANGE, BASE_INDEX, CHANGE, StreamOffset
from optimist.core.streams.options import LATEST, StreamOptions
from optimist.core.streams.same_table import load_same
from optimist.core.streams.schema_log import SchemaLog
from optimist.core.streams.schema_rules import (
    StreamSchema,
    ensure_reached,
    other_table,
    set_back,
    unknown_columns,
)
from optimist.core.streams.starts import first_commit
from optimist.core.streams.tracking import SchemaTracking, evolved
from optimist.core.streams.unblocked import Allowed

__all__ = ["Backlog", "StreamPlanner"]

_MOST_COUNTED = 1000
"""The number of versions ahead whose files are counted for the progress of a query."""


@dataclass(frozen=True, slots=True)
class Backlog:
    """The amount that a stream has yet to read, as far as it is known."""

    files: int
    size_bytes: int
    versions: int


@dataclass(slots=True)
class StreamPlanner:
    """One stream over a table, for one thread at a time.

    Attributes:
        table: The table.
        options: The stream's options.
        newest: Returns the newest version of the table.
        schema: The schema that rows are read by: that of the newest version at the stream's start,
            or that of its log of schemas.
        tracking: The log of schemas; None if the stream has none.
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
    _initial: tuple[int, FirstFiles] | None = field(default=None, init=False)
    _initial_ms: int = field(default=0, init=False)
    _first: StreamOffset | None = field(default=None, init=False)
    _latest: Snapshot | None = field(default=None, init=False)
    _begins_readable: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self._use_schema(self.schema)

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
        """Make a stream that starts now, or continues from a checkpoint.

        Args:
            table: The table.
            options: The stream's options.
            newest: Returns the newest version of the table.
            log_of: Returns the log of schemas for a table's id; None for a stream without one.
            tracked_by: The class that keeps that log.

        Raises:
            UsageError: The conf forbids logs of schemas (kind `DELTA_ILLEGAL_OPTION`).
            TableError: The log of schemas is damaged, or belongs to another table.
        """
        snapshot = newest()
        if log_of is None:
            schema = StreamSchema(snapshot.metadata, snapshot.version, snapshot.protocol)
            return cls(table, options, newest, schema)
        if not table.options.streaming_schema_tracking:
            raise _tracking_disabled()
        tracking = tracked_by.of(log_of(snapshot.metadata.id), table, snapshot)
        return cls(table, options, newest, tracking.schema_over(snapshot), tracking)

    @property
    def is_placed_by_position(self) -> bool:
        """Whether only a position decides by which schema rows are read (see `begin_following`)."""
        return isinstance(self.tracking, FollowedSchemas)

    @property
    def table_id(self) -> str:
        """The table's id, which all offsets have."""
        return self.schema.metadata.id

    def capacity(self) -> Capacity:
        """Return the room that the options give a batch."""
        return Capacity(self.options.max_files, self.options.max_bytes)

    def latest_version(self) -> int:
        """Return the newest version, for one listing."""
        return self._load_newest().version

    def begin_following(
        self, position: StreamOffset | None, allowed: Allowed, *, end: StreamOffset | None = None
    ) -> None:
        """Choose the schema that a follower reads by, if it has a log of schemas.

        Args:
            position: The follower's position; None before it has read anything.
            allowed: The changes after which it may continue.
            end: The end of its first batch, if an earlier run has planned it.

        Raises:
            UsageError, TableError, SchemaError, ProtocolError: See `FollowedSchemas`.
        """
        if not isinstance(self.tracking, FollowedSchemas):
            return
        latest = self._load_newest()
        if position is None:
            begin = self._find_begin(latest) if end is None else self._begin_of_first(end, latest)
            version = min(begin.version, latest.version)
            self._use_schema(self.tracking.begin_anew(self.table, latest, version))
            return
        at = self._check_offset(position, latest)
        reached = at.version, _last_described_version(at)
        self._use_schema(self.tracking.go_on(self.table, latest, reached, allowed))

    def commits_after(
        self, position: StreamOffset | None
    ) -> Iterator[tuple[StreamOffset, tuple[FilesView, ...]]]:
        """Yield the rows after a position, version by version, with the end of each version.

        If the start depends on the current time, it comes first, without rows. It costs one
        listing, and one more for each commit unless the log was listed just before.

        Args:
            position: The reader's position; None before it has read anything.

        Raises:
            TableError, SchemaError, ProtocolError: See `latest_offset`. At a change, all rows
                before it were returned, and a caller that asks for more has processed them.
        """
        latest = self._load_newest()
        at = self._find_begin(latest) if position is None else self._check_offset(position, latest)
        if position is None and self.options.starts_at_a_moment:
            yield at, self._views_of(at, at)
        if at.is_initial:
            begin, at = at, at.at(at.version + 1)
            yield at, self._views_of(begin, at)
        else:
            self._ensure_begins_readable(at)
        for _, after, files in self._commits_in(at.version, latest.version):
            begin, at = at, at.at(after)
            changed = None if self.tracking is None else files.change
            views = self._views_of(begin, at) if changed is None else ()
            self._look_again()
            if self.tracking is not None and changed is not None:
                raise self.tracking.record(changed)
            yield at, views
            self._forget_before(at)

    def latest_offset(
        self, start: StreamOffset | None, capacity: Capacity, *, last_version: int | None = None
    ) -> StreamOffset | None:
        """Return the end of the next batch, or `start` itself if there is nothing new.

        If the start is a time, the first batch has no rows, unless it is the only batch.

        Args:
            start: The end of the last batch; None before the first.
            capacity: The room of the batch.
            last_version: The last version to read; None for no bound.

        Raises:
            TableError, SchemaError, ProtocolError: A commit can't be read; see `CommitReader`. Or
                the start is not an offset of this table.
            SchemaError: The stream has come to a change, which is now in its log of schemas (kind
                `DELTA_STREAMING_METADATA_EVOLUTION`).
        """
        latest = self._load_newest()
        begin = self._find_begin(latest) if start is None else self._check_offset(start, latest)
        is_moment = start is None and self.options.starts_at_a_moment
        if start is None and begin.version > latest.version and not is_moment:
            return None
        if self.tracking is not None:
            self._begin_tracking(latest, begin, begin, is_fresh=start is None)
            if start is None:
                self._ensure_begun(latest, begin)
            if begin.index == CHANGE:
                return begin.at(begin.version, AFTER_CHANGE)
            self.done_with(begin)  # acknowledge now what a crashed driver did not
        # A time before the newest commit always stands for the same commit.
        is_sure = self.options.starting_ms is not None and begin.version <= latest.version
        if is_moment and not (is_sure and capacity.is_all):
            return begin
        self._ensure_begins_readable(begin)
        self._forget_before(begin)
        bound = latest.version if last_version is None else min(latest.version, last_version)
        if begin.is_initial:
            files = self._first_files(begin.version)
            last = None if self.options.snapshot_at_once else files.last_in(capacity, begin.index)
            return begin.at(begin.version + 1) if last is None else begin.at(begin.version, last)
        return self._latest_commit(begin, bound, capacity)

    def done_with(self, end: StreamOffset) -> None:
        """Acknowledge a batch that is recorded for good, and log a change at its end.

        Args:
            end: The end of the batch.

        Raises:
            SchemaError: It ended at a change (kind `DELTA_STREAMING_METADATA_EVOLUTION`).
        """
        if self.tracking is None or end.index not in (CHANGE, AFTER_CHANGE):
            return
        change = self._commit_files(end.version).change
        if change is not None:
            raise self.tracking.record(change)

    def whole_offset(self) -> StreamOffset:
        """Return the offset after everything, for a caller that lost the end of its last batch."""
        return StreamOffset.before(self.table_id, self._load_newest().version + 1)

    def views_between(self, start: StreamOffset | None, end: StreamOffset) -> tuple[FilesView, ...]:
        """Return the rows of a batch, as views with the columns of `stream_schema`.

        They are the same each time that a batch is run. They have the number and the shapes of
        `empty_views`.

        Args:
            start: The end of the batch before; None for the first batch.
            end: The end of the batch.

        Raises:
            TableError, SchemaError, ProtocolError: See `latest_offset`.
        """
        latest = self._load_newest()
        self._check_offset(end, latest)
        if start is None:
            begin = self._begin_of_first(end, latest)
        else:
            begin = self._check_offset(start, latest)
        end.ensure_not_before(begin)
        self._begin_tracking(latest, begin, end, is_fresh=start is None)
        self._ensure_begins_readable(begin)
        return self._views_of(begin, end)

    def empty_views(self) -> tuple[FilesView, ...]:
        """Return the views of a batch without rows (see `views_between`)."""
        none = IndexedFiles.none()
        if not self.options.read_changes:
            return (self._view_of(none),)
        return self._changes.views(self._last_seen(), [], none.files)

    @property
    def stream_schema(self) -> StructType:
        """The columns of the stream's rows: the table's, and those of a change feed."""
        if self.options.read_changes:
            return feed_schema(self.schema.metadata)
        schema = TableMetadata.of(self.schema.metadata).schema
        return without_expressions(schema.as_nullable())

    def backlog(self, position: StreamOffset) -> Backlog:
        """Count what comes after a position, without a look for newer versions.

        Of commits that the stream can't read, or that are far ahead, only the versions are counted.
        """
        if self._latest is None:
            return Backlog(0, 0, 0)
        files = size_bytes = 0
        first, after = position.version, position.index
        if position.is_initial:
            files, size_bytes = self._first_files(position.version).sums_after(position.index)
            first, after = position.version + 1, BASE_INDEX
        last, version = self._latest.version, first
        while version <= min(last, first + _MOST_COUNTED):
            try:
                found = self._count_files(version, after if version == first else BASE_INDEX)
            except OptimistError:
                break
            files, size_bytes = files + found.files, size_bytes + found.size_bytes
            version += found.versions
        return Backlog(files, size_bytes, max(0, last + 1 - position.version))

    # Where a stream begins

    def _find_begin(self, latest: Snapshot) -> StreamOffset:
        """Return the offset before the first batch, which stays the same for the stream."""
        if self._first is None:
            self._first = self._resolve_begin(latest)
        return self._first

    def _resolve_begin(self, latest: Snapshot) -> StreamOffset:
        version = first_commit(self.table, self.options, latest, self._reader)
        if version is None:
            return StreamOffset.before(self.table_id, latest.version, is_initial=True)
        return StreamOffset.before(self.table_id, version)

    def _begin_of_first(self, end: StreamOffset, latest: Snapshot) -> StreamOffset:
        """Return the offset before a first batch, which an earlier run may have planned."""
        if self.options.starting_version == LATEST:
            # Only the batch that records the start has no start, so its end is the start.
            return end
        if self.options.starts_at_a_moment:
            found = self._find_begin(latest)
            return found if found.sort_key <= end.sort_key else end
        if self.options.starting_version is not None:
            return self._find_begin(latest)
        version = end.version if end.is_initial else max(0, end.version - 1)
        return StreamOffset.before(self.table_id, version, is_initial=True)

    # The schema that rows were written by

    def _ensure_begins_readable(self, begin: StreamOffset) -> None:
        """Check once that rows at the stream's start can be read."""
        if self._begins_readable or begin.is_initial:  # a first snapshot is checked when it is read
            return
        self._ensure_readable_from(begin.version)
        self._begins_readable = True

    def _ensure_readable_from(self, version: int) -> None:
        """Check that a version was written with columns that the stream can read.

        Commits show changes when they are read. Commits before the first one, or lost from the log,
        do not, so the table is loaded at that version. If that is no longer possible, a stream
        continues as in delta-spark, unless columns are mapped.
        """
        latest = self._last_seen()
        if self.tracking is not None:
            return
        try:
            found = load_same(self.table, min(version, latest.version), latest)
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
        """Write the log's first entry, which must fit all rows between two offsets."""
        if self.tracking is None or self.tracking.entry is not None:
            return
        first = min(begin.version, latest.version) if is_fresh else _last_described_version(begin)
        versions = range(first, max(first, _last_described_version(end)) + 1)
        found = self.tracking.first_schema(self.table, latest, versions)
        if not found.reads_like(self.schema):
            raise evolved(found)
        self._use_schema(found)

    def _ensure_begun(self, latest: Snapshot, begin: StreamOffset) -> None:
        """Check that the log's entry is for the stream's start.

        A run that died before it planned its first batch has left an entry for its own start.
        """
        version = min(begin.version, latest.version)
        if self.tracking is None or version == self.schema.version:
            return
        base = load_same(self.table, version, latest)
        found = StreamSchema(base.metadata, version, base.protocol, is_tracked=True)
        if version < self.schema.version or not found.reads_like(self.schema):
            raise self.tracking.record(found, is_first=True)

    def _use_schema(self, schema: StreamSchema) -> None:
        """Read by a schema from now on."""
        self.schema = schema
        self._reader = CommitReader(self.table, schema, self.options)
        self._changes = ChangeReader(self.table, schema, self.options)
        self._commits.clear()
        self._begins_readable = False

    # The content of the table

    def _last_seen(self) -> Snapshot:
        return self._load_newest() if self._latest is None else self._latest

    def _load_newest(self) -> Snapshot:
        latest = self.newest()
        if latest.metadata.id != self.table_id:
            raise other_table(self.table_id, latest.metadata.id)
        if self._latest is not None and self._latest.known_log is not latest.known_log:
            self._ensure_same_log(self._latest)
        self._latest = latest
        return latest

    def _look_again(self) -> None:
        """Refuse what was read if the table was made anew since it was listed.

        A caller may take long over each commit, and the new table has commits of the same names.
        """
        seen = self._last_seen()
        if not seen.known_log.was_just_seen(self.table.clock.monotonic_s(), seen.version):
            self._load_newest()

    def _ensure_same_log(self, before: Snapshot) -> None:
        """Refuse a log that has other commits under the versions that were read.

        It may be the same log, read again. In any case nothing that was cached of it is kept.
        """
        last_seen = before.segment.last_seen if before.segment else None
        if newer_commits(self.table.store, before.log_path, last_seen, before.version) is None:
            raise set_back(f"version {before.version}", before.table_path, before.version)
        self._commits.clear()
        self._counts.clear()
        self._changes.forget()
        self._initial = None

    def _check_offset(self, offset: StreamOffset, latest: Snapshot) -> StreamOffset:
        ensure_reached(offset, latest)
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
                    return begin.at(version, rest.indexes[taken - 1].as_py()) if taken else position
                position = begin.at(following)
        except OptimistError:
            if position == begin:
                raise
        return position  # the rows before are given first; the next call raises

    def _views_of(self, begin: StreamOffset, end: StreamOffset) -> tuple[FilesView, ...]:
        if not self.options.read_changes:
            return (self._view_of(IndexedFiles.joined(list(self._files_between(begin, end)))),)
        inserted = IndexedFiles.none().files
        if begin.is_initial:
            upto = end.index if end.is_initial else None
            part = self._first_files(begin.version).between(begin.index, upto)
            inserted = as_inserted(part.files, begin.version, self._initial_ms)
            begin = begin.at(begin.version + 1)
        runs = [] if end.is_initial else list(self._changed_runs(begin, end))
        return self._changes.views(self._last_seen(), runs, inserted)

    def _view_of(self, files: IndexedFiles) -> FilesView:
        """Return the view of files of a stream of rows, with the schema that it began with.

        All columns may hold nulls, since the files may be older than a NOT NULL.
        """
        read = replace(self.schema.metadata, schema_string=schema_to_json(self.stream_schema))
        return self._last_seen().with_other_files(read, files.files)

    def _changed_runs(self, begin: StreamOffset, end: StreamOffset) -> Iterator[ChangedRun]:
        """Yield the commits between two offsets.

        A commit that an offset splits comes alone.
        """
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

    def _files_between(self, begin: StreamOffset, end: StreamOffset) -> Iterator[IndexedFiles]:
        first, after = begin.version, begin.index
        if begin.is_initial:
            upto = end.index if end.is_initial else None
            yield self._first_files(begin.version).between(begin.index, upto)
            first, after = begin.version + 1, BASE_INDEX
        if end.is_initial:
            return
        last = end.version if end.index >= 0 else end.version - 1
        for version, _, files in self._commits_in(first, last):
            upto = end.index if version == end.version else None
            yield files.between(after if version == first else BASE_INDEX, upto)

    def _commits_in(self, first: int, last: int) -> Iterator[tuple[int, int, IndexedFiles]]:
        """Yield each commit of some versions, with the next version.

        Lost commits are one step.
        """
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

    def _first_files(self, version: int) -> FirstFiles:
        if self._initial is None or self._initial[0] != version:
            snapshot = load_same(self.table, version, self._last_seen())
            if self.tracking is None:
                self.schema.ensure_reads(snapshot.metadata, version)
            if self.options.read_changes:
                path = self.table.table_path
                ensure_recorded(snapshot.metadata, path, version, range(version, version + 1))
                self._initial_ms = snapshot.timestamp_ms
            self._initial = version, FirstFiles.of(snapshot, self.options.exclude_regex)
        return self._initial[1]

    def _count_files(self, version: int, after: int) -> Backlog:
        """Count the files of a commit, or of a run of lost ones."""
        if after == BASE_INDEX and version in self._counts:
            return self._counts[version]
        kept = self._commits.get(version)
        found = self._reader.files(version, self._last_seen().version) if kept is None else kept
        rest = found.between(after)
        counted = Backlog(len(rest), rest.size_bytes, found.next_version(version) - version)
        if after == BASE_INDEX:
            self._counts[version] = counted
        return counted

    def _forget_before(self, position: StreamOffset) -> None:
        """Drop cached commits before a position.

        A batch may be planned once more after its end.
        """
        for kept in (self._commits, self._counts):
            for version in [number for number in kept if number < position.version]:
                del kept[version]
        if not position.is_initial:
            self._initial = None


def _last_described_version(position: StreamOffset) -> int:
    """Return the last version whose metadata apply to rows up to a position."""
    is_before = position.index in (BASE_INDEX, CHANGE) and not position.is_initial
    return max(0, position.version - 1) if is_before else position.version


def _tracking_disabled() -> UsageError:
    return UsageError(
        "Schema tracking location is not supported for Delta streaming source: the key "
        "spark.databricks.delta.streaming.schemaTracking.enabled is false. Nothing was read. Set "
        "it to true, or leave the option schemaTrackingLocation out.",
        kind="DELTA_ILLEGAL_OPTION",
        key="schemaTrackingLocation",
    )
