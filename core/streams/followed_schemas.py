"""`FollowedSchemas`: a follower's log of schemas, whose caller keeps the position (spec 11.5).

A follower does not know when its caller has stored a position. So an entry never says how far the
caller is. It says what the table was like at a version, which stays true, and the position decides
by which entry rows are read. A query of Spark Connect knows only its offsets, and works the same
way.

1. All commits before a change are given.
2. When the caller has processed these and asks for more, the log gets an entry for the change, and
   the follower stops with an error that says so.
3. `follow` with the position of the last item reads by that entry, from the change on.

A crash between two of these steps is harmless. Before the entry, the next run comes to the change
again. After it, the position shows whether the change is still ahead. If it is, rows are read by
the entry before, the follower stops at the change again, and finds the entry.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from optimist.core.data.table_ref import TableRef
from optimist.core.errors import SchemaError, TableError
from optimist.core.protocol.table_metadata import TableMetadata
from optimist.core.snapshot import Snapshot
from optimist.core.streams.same_table import load_same
from optimist.core.streams.schema_log import TrackedMetadata
from optimist.core.streams.schema_rules import OTHER_TABLE, StreamSchema
from optimist.core.streams.tracking import SchemaTracking, evolved, only_changes
from optimist.core.streams.unblocked import Allowed

__all__ = ["FollowedSchemas", "PlacedSchemas"]

_SOURCE = "optimist/follow"
"""The source path in entries of followers, which have no source in a checkpoint."""


@dataclass(slots=True)
class FollowedSchemas(SchemaTracking):
    """One follower's log of schemas.

    Attributes:
        chosen: The number of the entry that rows are read by.
        table: The table; None until the follower begins.
    """

    chosen: int = -1
    table: TableRef | None = None

    def begin_anew(self, table: TableRef, latest: Snapshot, version: int) -> StreamSchema:
        """Begin a follower that has read nothing by this log.

        Args:
            table: The table.
            latest: Its newest version.
            version: The version whose schema the first rows are read by.

        Raises:
            UsageError: The log belongs to a stream (kind `OPTIMIST_SCHEMA_LOG_OF_ANOTHER_STREAM`).
            TableError, ProtocolError: The table can't be read at that version.
        """
        self._claim_table(table)
        base = load_same(table, version, latest)
        found = StreamSchema(base.metadata, version, base.protocol, is_tracked=True)
        if not self._has_begun_with(found, latest):
            entry = TrackedMetadata.of(found, _SOURCE)
            # Nothing was read by the entries before it, so none of them needs to be continued.
            self._add_entry(entry if self.number < 0 else replace(entry, previous=-1))
        self.chosen = self.number
        return found

    def go_on(
        self, table: TableRef, latest: Snapshot, position: tuple[int, int], allowed: Allowed
    ) -> StreamSchema:
        """Continue a follower from a position.

        Args:
            table: The table.
            latest: Its newest version.
            position: The version of the position, and the last version whose rows were read.
            allowed: The changes after which the follower may continue.

        Raises:
            UsageError: The log belongs to a stream (kind `OPTIMIST_SCHEMA_LOG_OF_ANOTHER_STREAM`).
            SchemaError: Columns were renamed, dropped or made wider; see `ensure_unblocked`. Or the
                table has changed since the entry, and the log has no entry for it (kind
                `DELTA_STREAMING_METADATA_EVOLUTION`).
            TableError, ProtocolError: The table can't be read at that version.
        """
        self._claim_table(table)
        version, reached = position
        found = self._entry_for(table, version)
        if found is None:
            return self.begin_anew(table, latest, reached)
        self.chosen, entry = found
        is_last = self.chosen == self.number
        used = self if is_last else replace(self, number=self.chosen, entry=entry, is_ahead=False)
        schema = used.schema_over(latest)
        if schema.version < reached:
            self._ensure_unchanged(table, latest, schema, reached)
        used.ensure_allowed(allowed)
        if is_last:
            self.chosen = self.number  # it may have written one for several changes
        return schema

    @property
    def stream(self) -> str:
        """The path of its log, since all followers have the same source path."""
        return self.log.path

    def record(self, changed: StreamSchema, *, is_first: bool = False) -> SchemaError:  # noqa: ARG002 - a stream's argument
        """Write the entry for a change, if needed, and return the error to raise."""
        found = None if self.table is None else self._entry_for(self.table, changed.version)
        is_known = (
            found is not None
            and found[0] != self.chosen
            and found[1].over(changed.metadata, changed.protocol).reads_like(changed)
        )
        if not is_known:
            self._add_entry(TrackedMetadata.of(changed, _SOURCE))
        return self._evolution_error(changed)

    def _evolution_error(self, changed: StreamSchema) -> SchemaError:
        """Return the error to raise."""
        columns = TableMetadata.of(changed.metadata).schema
        return SchemaError(
            "The schema, table configuration or protocol of the table has changed, as of version "
            f"{changed.version}. All rows from before were given, and the log of schemas has the "
            f"new one: {columns}. Call follow again with the position of the last item that was "
            "processed.",
            kind="DELTA_STREAMING_METADATA_EVOLUTION",
            version=changed.version,
            retryable=True,
        )

    def _claim_table(self, table: TableRef) -> None:
        self.table = table
        self.claim(_SOURCE, checks_path=table.options.streaming_schema_path_check)

    def _has_begun_with(self, found: StreamSchema, latest: Snapshot) -> bool:
        """Tell whether the last entry is the initial one that a new follower would write."""
        if self.entry is None or self._previous_number() >= 0:
            return False
        begun = self.schema_over(latest)
        return begun.version <= found.version and begun.reads_like(found)

    def _entry_for(self, table: TableRef, version: int) -> tuple[int, TrackedMetadata] | None:
        """Return the number and the last entry that applies to rows from a version on."""
        number = self.number
        while number >= 0 and (entry := self.log.entry(number)) is not None:
            if entry.version <= version or self._stands_for(table, number, entry, version):
                return number, entry
            before = number - 1
            number = before if entry.previous is None else min(entry.previous, before)
        return None

    def _stands_for(
        self, table: TableRef, number: int, entry: TrackedMetadata, version: int
    ) -> bool:
        """Tell whether an entry covers several changes without rows, and one is at a version.

        Such an entry names the entry before the first of them.
        """
        first = entry
        while first.previous is not None and 0 <= first.previous < number - 1:
            number -= 1
            found = self.log.entry(number)
            if found is None:
                return False
            first = found
        versions = range(version, entry.version + 1)
        return first.version <= version and all(only_changes(table, each) for each in versions)

    def _ensure_unchanged(
        self, table: TableRef, latest: Snapshot, schema: StreamSchema, reached: int
    ) -> None:
        """Refuse a change between an entry and a position.

        There is one if the caller's position does not come from reading by this log.
        """
        try:
            base = load_same(table, reached, latest)
        except TableError as error:
            if error.kind == OTHER_TABLE:
                raise
            return  # cleaned up: the following commits are read by the log's entry
        found = StreamSchema(base.metadata, reached, base.protocol, is_tracked=True)
        if not found.reads_like(schema):
            raise self.record(found)


@dataclass(slots=True)
class PlacedSchemas(FollowedSchemas):
    """The log of a query that knows its offsets from Spark, and nothing else of its checkpoint."""

    def _evolution_error(self, changed: StreamSchema) -> SchemaError:
        return evolved(changed)
