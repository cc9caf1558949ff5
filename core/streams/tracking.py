"""`SchemaTracking`: the way of a stream from schema to schema, one log entry at a time.

At each change of the table's metadata or protocol that lies between two files to read,

1. a batch ends before the files of the change's version, at the index `CHANGE`;
2. once that batch is recorded for good, the log gets an entry for the change, and the stream stops
   with an error that says so;
3. the next run reads by that entry, from the change on (spec 11.5).

A crash between two of these steps is harmless. Before the entry, the next run comes to the change
again. After it, the checkpoint shows that the batch has ended there.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace

from optimist.core.changes.commits import read_commits
from optimist.core.changes.schemas import reading_problem
from optimist.core.data.table_ref import TableRef
from optimist.core.errors import LogFileNotFoundError, SchemaError, TableError, UsageError
from optimist.core.errors.foreign_text import quoted
from optimist.core.log.names import commit_path
from optimist.core.protocol.actions import (
    AddCDCFile,
    AddFile,
    Metadata,
    Protocol,
    RemoveFile,
    actions_from_bytes,
)
from optimist.core.protocol.table_metadata import TableMetadata
from optimist.core.snapshot import Snapshot
from optimist.core.streams.same_table import load_same
from optimist.core.streams.schema_log import SchemaLog, TrackedMetadata
from optimist.core.streams.schema_rules import StreamSchema
from optimist.core.streams.unblocked import Allowed, ensure_unblocked

__all__ = ["SchemaTracking", "evolved", "only_changes"]

_LOG = logging.getLogger(__name__)
_FILES = (AddFile, RemoveFile, AddCDCFile)


@dataclass(slots=True)
class SchemaTracking:
    """A stream's log of schemas, as this run has found and continued it.

    Attributes:
        log: The log.
        number: The number of its last entry; -1 if there is none.
        entry: The last entry; None if there is none.
        is_ahead: Whether that entry is not written yet.
        source_path: The path of the query's source in its checkpoint, known once the query starts.
    """

    log: SchemaLog
    number: int = -1
    entry: TrackedMetadata | None = None
    is_ahead: bool = False
    source_path: str = ""

    @classmethod
    def of(cls, log: SchemaLog, table: TableRef, latest: Snapshot) -> SchemaTracking:
        """Read the log of a stream, without writing.

        Raises:
            TableError: The log is damaged, or belongs to another table.
        """
        newest = log.newest()
        if newest is None:
            return cls(log)
        number, entry = newest
        if entry.table_id != latest.metadata.id:
            raise TableError(
                f"The log of schemas in {log.path} is that of the table with the id "
                f"{entry.table_id}, and the stream's has the id {latest.metadata.id}. Nothing was "
                "read. Start the query with a new checkpoint.",
                kind="DELTA_STREAMING_SCHEMA_LOG_INCOMPATIBLE_DELTA_TABLE_ID",
                persistedId=entry.table_id,
                tableId=latest.metadata.id,
            )
        found = cls(log, number, entry)
        if table.options.streaming_merge_schema_changes:
            found.entry = found._merge_following(table, latest)
            found.is_ahead = found.entry is not entry
        return found

    def begin(self, source_path: str, allowed: Allowed, *, checks_path: bool) -> None:
        """Start a query that reads by the last entry.

        Args:
            source_path: The path of its source in its checkpoint.
            allowed: The changes after which the stream may continue.
            checks_path: Whether the log must belong to the same source.

        Raises:
            UsageError: It belongs to another source (kind `OPTIMIST_SCHEMA_LOG_OF_ANOTHER_STREAM`).
            SchemaError: Columns were renamed, dropped or made wider; see `ensure_unblocked`.
        """
        self.claim(source_path, checks_path=checks_path)
        self.ensure_allowed(allowed)

    def claim(self, source_path: str, *, checks_path: bool) -> None:
        """Check that the log belongs to a source, or is new (see `begin`)."""
        self.source_path = source_path
        if self.entry is None:
            return
        if checks_path and self.entry.source_path != source_path:
            raise UsageError(
                f"The log of schemas in {self.log.path} is that of the source "
                f"{quoted(self.entry.source_path)}, and this one is {quoted(source_path)}. "
                "Nothing was read. Give each stream its own schemaTrackingLocation below its own "
                "checkpoint; to sources of one query that read the same table, give a "
                "streamingSourceTrackingId as well.",
                kind="OPTIMIST_SCHEMA_LOG_OF_ANOTHER_STREAM",
                expected=self.entry.source_path,
                found=source_path,
            )

    @property
    def stream(self) -> str:
        """A text that distinguishes the stream from others."""
        return "" if self.entry is None else self.entry.source_path

    def ensure_allowed(self, allowed: Allowed) -> None:
        """Check that rows may be read by the last entry, and write it (see `begin`)."""
        if self.entry is None:
            return
        if self.is_ahead:
            self._add_entry(self.entry)
        before = self._entry_before()
        if before is not None:
            ensure_unblocked(before, self.entry, allowed, self.stream)

    def schema_over(self, latest: Snapshot) -> StreamSchema:
        """Return the schema that the stream reads by."""
        if self.entry is None:
            return StreamSchema(latest.metadata, latest.version, latest.protocol, is_tracked=True)
        return self.entry.over(latest.metadata, latest.protocol)

    def first_schema(self, table: TableRef, latest: Snapshot, versions: range) -> StreamSchema:
        """Write the first entry.

        Args:
            table: The table.
            latest: Its newest version.
            versions: The versions that the next batch reads, as far as known; at least its first
                one.

        Raises:
            TableError, ProtocolError: The table can't be read at that version.
            SchemaError: No schema fits all rows of the batch (kind
                `DELTA_STREAMING_SCHEMA_LOG_INIT_FAILED_INCOMPATIBLE_METADATA`).
        """
        first, last = versions[0], versions[-1]
        base = load_same(table, first, latest)
        found = StreamSchema(base.metadata, last, base.protocol, is_tracked=True)
        if last > first:
            for commit in read_commits(table.store, table.log_path, first + 1, last):
                for action in commit.actions:
                    found = _extend_schema(found, action, first)
        self._add_entry(TrackedMetadata.of(found, self.source_path))
        return found

    def record(self, changed: StreamSchema, *, is_first: bool = False) -> SchemaError:
        """Write the entry for a change, up to which the stream has read everything.

        Args:
            changed: The schema that the stream will read by.
            is_first: Whether nothing was read by the last entry, so that it does not count.

        Returns:
            The error with which the stream must stop.
        """
        entry = TrackedMetadata.of(changed, self.source_path)
        if is_first:
            entry = replace(entry, previous=self._previous_number())
        self._add_entry(entry)
        return evolved(changed)

    def _add_entry(self, entry: TrackedMetadata) -> None:
        self.log.add(self.number + 1, entry)
        self.number, self.entry, self.is_ahead = self.number + 1, entry, False
        _LOG.info(
            "The stream's log of schemas in %s has the entry %s for version %s.",
            self.log.path,
            self.number,
            entry.version,
        )

    def _previous_number(self) -> int:
        """Return the number of the entry before the last one."""
        known = None if self.entry is None else self.entry.previous
        return self.number - 1 if known is None else known

    def _entry_before(self) -> TrackedMetadata | None:
        number = self._previous_number()
        return None if number < 0 else self.log.entry(number)

    def _merge_following(self, table: TableRef, latest: Snapshot) -> TrackedMetadata | None:
        """Return the last entry, or one for the last of several following changes without rows.

        The first entry stays as it is, since its stream may still have rows to read by it.
        """
        entry = self.entry
        if entry is None or self._previous_number() < 0:
            return entry
        found = entry.over(latest.metadata, latest.protocol)
        for version in range(entry.version, latest.version + 1):
            changes = only_changes(table, version)
            if not changes:
                break
            for action in changes:
                found = _with_action(found, action)
            found = replace(found, version=version)
        if found.version == entry.version:
            return entry
        merged = TrackedMetadata.of(found, entry.source_path)
        return replace(merged, previous=self._previous_number())


def evolved(changed: StreamSchema) -> SchemaError:
    """Return the error that stops a stream at a change, so that the next run reads by it."""
    columns = TableMetadata.of(changed.metadata).schema
    return SchemaError(
        "The schema, table configuration or protocol of the stream's table has changed in version "
        f"{changed.version}. All rows from before were given, and the stream's log of schemas has "
        f"the new one: {columns}. Start the query again, from a new DataFrame.",
        kind="DELTA_STREAMING_METADATA_EVOLUTION",
        version=changed.version,
        retryable=True,
    )


def only_changes(table: TableRef, version: int) -> list[Metadata | Protocol]:
    """Return a commit's metadata and protocol, if it has no files.

    A commit that is gone has none.
    """
    path = commit_path(table.log_path, version)
    try:
        actions = actions_from_bytes(table.store.read_bytes(path), path)
    except LogFileNotFoundError:
        return []
    if any(isinstance(action, _FILES) for action in actions):
        return []
    return [action for action in actions if isinstance(action, Metadata | Protocol)]


def _with_action(schema: StreamSchema, action: Metadata | Protocol) -> StreamSchema:
    if isinstance(action, Metadata):
        return replace(schema, metadata=action)
    return replace(schema, protocol=action)


def _extend_schema(schema: StreamSchema, action: object, first: int) -> StreamSchema:
    """Return the schema after an action inside a batch, which one schema must fit."""
    if not isinstance(action, Metadata | Protocol):
        return schema
    if isinstance(action, Metadata):
        is_fitting = reading_problem(schema.metadata, action) is None
    else:
        is_fitting = set(schema.protocol.reader_features or ()) <= set(action.reader_features or ())
    if not is_fitting:
        raise SchemaError(
            "The stream's log of schemas can't be begun: the schema or protocol changed within the "
            f"batch that is to be read, from version {first} to {schema.version}, so that no one "
            "schema fits all its rows. Nothing was read. Start the query with a new checkpoint.",
            kind="DELTA_STREAMING_SCHEMA_LOG_INIT_FAILED_INCOMPATIBLE_METADATA",
            start=first,
            end=schema.version,
        )
    return _with_action(schema, action)
