"""`change_feed`: the changes of a range of versions, as files to read (spec 10.11)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import pyarrow as pa

from optimist.core.changes.bounds import ChangeBounds
from optimist.core.changes.commits import ReadCommit, commit_time_ms, read_commits
from optimist.core.changes.files import FEED_COLUMNS, FileCollector
from optimist.core.changes.schemas import ensure_reads_as
from optimist.core.changes.vectors import row_differences
from optimist.core.data.change_files import CHANGE_TYPE
from optimist.core.data.parquet.row_counts import rows_by_footer
from optimist.core.data.storage.unreadable_files import UNREADABLE
from optimist.core.data.table_ref import TableRef
from optimist.core.errors import SchemaError, TableError
from optimist.core.errors.foreign_text import listed, shown
from optimist.core.log.file_table import add_files
from optimist.core.protocol.actions import AddFile, Metadata, Protocol, RemoveFile
from optimist.core.protocol.gates import ensure_readable
from optimist.core.protocol.table_metadata import TableMetadata
from optimist.core.schema.generated_columns import without_expressions
from optimist.core.schema.types import StructType, schema_to_json
from optimist.core.snapshot import Snapshot
from optimist.core.snapshot.files_view import FilesView
from optimist.core.snapshot.one_version import NOT_RECREATABLE, load_version
from optimist.core.snapshot.time_travel import list_commit_files

__all__ = [
    "ChangeFeed",
    "DescribedVersion",
    "change_feed",
    "changes_of",
    "ensure_recorded",
    "feed_schema",
]


@dataclass(frozen=True, slots=True)
class DescribedVersion:
    """The table's metadata and protocol at a version.

    Attributes:
        version: The version.
        metadata: The table's metadata at the version.
        protocol: The table's protocol at the version.
    """

    version: int
    metadata: Metadata
    protocol: Protocol


@dataclass(frozen=True, slots=True)
class ChangeFeed:
    """The changes of a range of versions, as two sets of files that are read like table versions.

    Both have the table's columns at the last version, all nullable, and then `_change_type`,
    `_commit_version` and `_commit_timestamp`.

    Attributes:
        versions: The versions; empty if no version lies between the bounds.
        derived: Files of the table whose rows were inserted or deleted. All three columns of the
            feed are partition columns.
        recorded: The files in which a writer recorded changes. These hold `_change_type` as a
            column.
        end: The table at the last version; None if the range is empty.
    """

    versions: range
    derived: FilesView
    recorded: FilesView
    end: DescribedVersion | None = None

    @property
    def schema(self) -> StructType:
        """The columns of the rows."""
        return self.derived.schema

    @property
    def views(self) -> tuple[FilesView, ...]:
        """The views that have files, or the derived one if neither has any."""
        filled = tuple(
            make_view for make_view in (self.derived, self.recorded) if make_view.num_files
        )
        return filled or (self.derived,)

    @property
    def files(self) -> pa.Table:
        """All files, one row per file and kind of change, with the columns of `Snapshot.files`.

        Version, time and kind are in `partitionValues`; recorded files have no kind there. A file
        is listed more than once if several versions changed rows of it.
        """
        return pa.concat_tables([self.derived.files, self.recorded.files])


def change_feed(table: TableRef, latest: Snapshot, bounds: ChangeBounds) -> ChangeFeed:
    """Return the files that hold the changes of a range.

    No rows of data files are read.

    It reads the range's commits, the table's state at the first version, and the deletion vectors
    that were replaced.

    Args:
        table: The table.
        latest: Its newest version.
        bounds: The range to read.

    Raises:
        UsageError: The end is before the start; see `ChangeBounds.resolve`.
        TableError: The bounds lie outside the log, or the feed was off for a part of the range
            (kind `DELTA_MISSING_CHANGE_DATA`, field `version`).
        SchemaError: The rows of a version can't be read with the schema of the last version (kind
            `DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_SCHEMA_CHANGE`).
        ProtocolError: A version in the range needs features that this engine can't read.
    """
    span = bounds.resolve(table, latest)
    versions = range(0) if span is None else range(span[0], span[1] + 1)
    return changes_of(table, latest, versions)


def changes_of(
    table: TableRef,
    latest: Snapshot,
    versions: range,
    read_as: Metadata | None = None,
    *,
    before: DescribedVersion | None = None,
) -> ChangeFeed:
    """Return the files that hold the changes of existing versions.

    Args:
        table: The table.
        latest: Its newest version.
        versions: The versions; may be empty.
        read_as: The metadata that describe the rows; None for those of the last version.
        before: The table just before the first version, so that it is not loaded; None to load it.

    Raises:
        TableError, SchemaError, ProtocolError: See `change_feed`.
    """
    collector = FileCollector(
        partial(_count_rows, table), partial(_complete_removes, table, latest)
    )
    if not versions:
        return _build_feed(table, latest, read_as or latest.metadata, collector, versions)
    first, last = versions[0], versions[-1]
    base = latest
    if before is None:
        base = _first_state(table, latest, versions)
        before = DescribedVersion(first, base.metadata, base.protocol)
    run = _Run(table.table_path, before.metadata, before.protocol, before.version)
    written = _WrittenBy()
    for commit in read_commits(table.store, table.log_path, first, last):
        earlier, run = run, run.after(commit)
        if commit.takes_rows and commit.changes_metadata and commit.version == before.version > 0:
            earlier = replace(run, metadata=_metadata_before(table, latest, versions))
        written.note(commit, earlier.metadata, run.metadata)
        ensure_recorded(run.metadata, table.table_path, commit.version, versions)
        time_ms = commit_time_ms(commit, run.metadata, run.protocol)
        is_partitioned = bool(run.metadata.partition_columns)
        collector.collect(commit, time_ms, is_partitioned=is_partitioned)
    reading = read_as or run.metadata
    written.ensure_read_as(reading, last)
    feed = _build_feed(table, base, reading, collector, versions)
    return replace(feed, end=DescribedVersion(last, run.metadata, run.protocol))


def ensure_recorded(metadata: Metadata, table_path: str, version: int, versions: range) -> None:
    """Refuse a version at which the change data feed was off.

    Args:
        metadata: The table's metadata at a version.
        table_path: The path of the table.
        version: The version of the metadata.
        versions: The versions whose changes are read, for the error.

    Raises:
        TableError: It was off (kind `DELTA_MISSING_CHANGE_DATA`).
    """
    if TableMetadata.of(metadata).properties.enable_change_data_feed:
        return
    first, last = versions[0], versions[-1]
    raise TableError(
        f"The changes of the versions {first} to {last} are not recorded: the change "
        f"data feed of {table_path} was off at version {version}. Nothing was read. The "
        "history shows when delta.enableChangeDataFeed was set; start there or later, and end "
        "before it was unset.",
        kind="DELTA_MISSING_CHANGE_DATA",
        version=version,
        start=first,
        end=last,
    )


@dataclass(frozen=True, slots=True)
class _WrittenBy:
    """The metadata that rows of a range were written by, without commits that have no rows.

    Attributes:
        found: Each metadata with its version, by its identity and a flag. The flag is set for rows
            that a commit with other metadata removed; these are read without the columns that it
            dropped.
    """

    found: dict[tuple[int, bool], tuple[int, Metadata]] = field(default_factory=dict)

    def note(self, commit: ReadCommit, earlier: Metadata, metadata: Metadata) -> None:
        """Record one commit, with the metadata before and after it."""
        if commit.takes_rows:
            key = id(earlier), commit.changes_metadata
            self.found.setdefault(key, (commit.version - 1, earlier))
        if commit.gives_rows:
            self.found.setdefault((id(metadata), False), (commit.version, metadata))

    def ensure_read_as(self, reading: Metadata, last: int) -> None:
        """Check that all rows can be read (see `ensure_reads_as`)."""
        for (_, may_lack), (version, metadata) in self.found.items():
            ensure_reads_as(
                metadata, reading, version=version, final_version=last, may_lack=may_lack
            )


def _first_state(table: TableRef, latest: Snapshot, versions: range) -> Snapshot:
    """Load the table at the first version, or explain that the log has only its commit."""
    first, last = versions[0], versions[-1]
    try:
        return load_version(table, first, latest=latest)
    except TableError as error:
        earliest = error.fields.get("earliest")
        is_held = bool(list_commit_files(table.store, table.log_path, first, first))
        if error.kind not in NOT_RECREATABLE or earliest is None or not is_held:
            raise
        raise TableError(
            f"The changes of the versions {first} to {last} can't be read: the log of "
            f"{table.table_path} is truncated. It still has the commit of version {first}, but not "
            f"the table's state then, which it has from version {earliest} on. Nothing was read. "
            "Start there or later.",
            kind="DELTA_TRUNCATED_TRANSACTION_LOG",
            version=first,
            earliest=earliest,
            latest=latest.version,
        ) from None


def _metadata_before(table: TableRef, latest: Snapshot, versions: range) -> Metadata:
    """Load the metadata of files that the first commit removed, since it has other metadata."""
    first, last = versions[0], versions[-1]
    try:
        return load_version(table, first - 1, latest=latest).metadata
    except TableError as error:
        if error.kind not in NOT_RECREATABLE:
            raise
        raise SchemaError(
            f"The changes of the versions {first} to {last} can't be read: version {first} changed "
            "the table's metadata and removed rows, and the log no longer tells by which columns "
            f"these were written. Nothing was read. Start at version {first + 1} or later.",
            kind="DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_SCHEMA_CHANGE",
            version=first - 1,
            final_version=last,
            column="",
        ) from None


@dataclass(frozen=True, slots=True)
class _Run:
    """The table's metadata and protocol at the version that the reading has reached."""

    table_path: str
    metadata: Metadata
    protocol: Protocol
    first: int

    def after(self, commit: ReadCommit) -> _Run:
        """Return the state after a commit.

        The snapshot's state already includes the first one.
        """
        if commit.version == self.first:
            return self
        metadata, protocol = self.metadata, self.protocol
        for action in commit.actions:
            if isinstance(action, Metadata):
                metadata = action
            elif isinstance(action, Protocol):
                protocol = action
        if metadata is self.metadata and protocol is self.protocol:
            return self
        ensure_readable(protocol, metadata, table_path=self.table_path, version=commit.version)
        return replace(self, metadata=metadata, protocol=protocol)


def _build_feed(
    table: TableRef,
    base: Snapshot,
    metadata: Metadata,
    collector: FileCollector,
    versions: range,
) -> ChangeFeed:
    access = table.data_access()
    replaced = [vectors for vectors, _ in collector.replaced]
    collector.add_differences(row_differences(replaced, base.data_paths, access))
    derived, recorded = collector.tables()
    names = tuple(item.name for item in FEED_COLUMNS)
    stored = tuple(name for name in names if name != CHANGE_TYPE)
    schema = feed_schema(metadata)

    def make_view(kind: str, files: pa.Table, partitions: tuple[str, ...]) -> FilesView:
        described = replace(
            metadata,
            id=f"{metadata.id}/{kind}/{versions.start}-{versions.stop}",
            schema_string=schema_to_json(schema),
            partition_columns=(*metadata.partition_columns, *partitions),
        )
        return base.with_other_files(described, files)

    return ChangeFeed(
        versions, make_view("derived", derived, names), make_view("recorded", recorded, stored)
    )


def feed_schema(metadata: Metadata) -> StructType:
    """Return the columns of a feed: the table's, all nullable, and those of the change.

    Raises:
        SchemaError: The table itself has such columns (kind
            `DELTA_TABLE_ALREADY_CONTAINS_CDC_COLUMNS`).
    """
    table = TableMetadata.of(metadata).schema
    taken = [item.name for item in FEED_COLUMNS if table.find(item.name) is not None]
    if taken:
        raise SchemaError(
            "The table has columns with names that the change data feed reserves: "
            f"{listed(taken)}. Nothing was read. Rename them.",
            kind="DELTA_TABLE_ALREADY_CONTAINS_CDC_COLUMNS",
            columns=tuple(taken),
        )
    # The feed's files may be older than the expressions of the last version.
    return StructType((*without_expressions(table.as_nullable()), *FEED_COLUMNS))


def _count_rows(table: TableRef, file: AddFile) -> int:
    full_path = table.data_paths.full_path(file.path)
    try:
        return rows_by_footer(full_path, table.data_access())
    except UNREADABLE:
        raise TableError(
            f"The data file {shown(full_path)} is missing or can't be read, and the log does not "
            "say how many rows it has: vacuum removed it, or it was damaged. "
            "Start after the version that replaced its deletion vector.",
            kind="OPTIMIST_UNREADABLE_DATA_FILE",
            path=full_path,
        ) from None


def _complete_removes(
    table: TableRef, latest: Snapshot, removes: Sequence[RemoveFile], version: int
) -> Sequence[AddFile]:
    """Return the removed files as the version before had them.

    Files that it lacks are skipped.
    """
    before = load_version(table, version - 1, latest=latest)
    return add_files(before.files_at(pa.array([item.path for item in removes], pa.string())))
