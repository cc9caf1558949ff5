"""The rules by which a stream may read past a change of the table's metadata (spec 11.3)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from optimist.core.changes.schemas import reading_problem
from optimist.core.errors import SchemaError, TableError
from optimist.core.errors.kinds import VERSION_NOT_FOUND
from optimist.core.protocol.actions import Metadata, Protocol
from optimist.core.protocol.table_metadata import TableMetadata
from optimist.core.schema.identity_columns import IDENTITY_PREFIX
from optimist.core.schema.types import GENERATION_EXPRESSION
from optimist.core.snapshot import Snapshot
from optimist.core.streams.offset import BASE_INDEX, StreamOffset

__all__ = [
    "OTHER_TABLE",
    "StreamSchema",
    "ensure_reached",
    "other_table",
    "set_back",
    "unknown_columns",
]

OTHER_TABLE = "DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE"

_DELTA_PREFIX = "delta."


@dataclass(frozen=True, slots=True)
class StreamSchema:
    """The metadata that a stream reads all rows by, from its start on.

    Attributes:
        metadata: The table's metadata when the stream was started, or those of the last entry in
            its log of schemas.
        version: The version of the metadata.
        protocol: The table's protocol at that version.
        is_tracked: Whether the stream has a log of schemas, and stops at each change.
    """

    metadata: Metadata
    version: int
    protocol: Protocol
    is_tracked: bool = False

    def after(
        self, version: int, metadata: Metadata | None, protocol: Protocol | None
    ) -> StreamSchema | None:
        """Return the new schema from a version on, for a stream with a log of schemas.

        It is None if the schema stays. A change up to the stream's own version is already included,
        even if nothing was read between two changes.

        Args:
            version: The version.
            metadata: The commit's metadata; None if it has none.
            protocol: The commit's protocol; None if it has none.

        Raises:
            TableError: The table was replaced.
        """
        if metadata is not None and metadata.id != self.metadata.id:
            raise other_table(self.metadata.id, metadata.id)
        if not self.is_tracked or version <= self.version or not (metadata or protocol):
            return None
        changed = replace(
            self,
            metadata=metadata or self.metadata,
            protocol=protocol or self.protocol,
            version=version,
        )
        return None if changed.reads_like(self) else changed

    def reads_like(self, other: StreamSchema) -> bool:
        """Tell whether both read rows alike, ignoring writers' notes on columns.

        A table with identity columns has other metadata after each write.
        """
        return _comparable_parts(self) == _comparable_parts(other)

    def ensure_reads(self, changed: Metadata, version: int) -> None:
        """Check that rows written under other metadata of the table can be read.

        A restart reads by the newest metadata. It continues from a change after the stream's own
        version, once all rows before it are returned. It also reads those rows if the change only
        adds columns or makes types wider. If columns are mapped and one was dropped, a stream does
        not continue without a restart, as in delta-spark.

        Args:
            changed: The metadata of a commit.
            version: The version of the commit.

        Raises:
            TableError: The table was replaced (kind
                `DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE`).
            SchemaError: The rows can't be read (kind `DELTA_SCHEMA_CHANGED_WITH_VERSION`, field
                `retryable`).
        """
        if changed.id != self.metadata.id:
            raise other_table(self.metadata.id, changed.id)
        problem, is_new = reading_problem(changed, self.metadata), version > self.version
        backwards = reading_problem(self.metadata, changed) if is_new else None
        if problem is None and _is_mapped(self.metadata) and _is_mapped(changed):
            problem = backwards
        if problem is None:
            return
        retryable = is_new and backwards is None
        column, what = problem
        raise SchemaError(
            f"Detected schema change in version {version}: {what}, by comparison with the schema "
            f"that the stream reads by, from version {self.version}. Nothing of this batch was "
            f"read. {_remedy_for(is_new=is_new, retryable=retryable)}",
            kind="DELTA_SCHEMA_CHANGED_WITH_VERSION",
            version=version,
            column=column,
            retryable=retryable,
        )


def _is_mapped(metadata: Metadata) -> bool:
    return TableMetadata.of(metadata).is_mapped


def _remedy_for(*, is_new: bool, retryable: bool) -> str:
    if retryable:
        return "Start the query again: it continues with the new schema."
    if is_new:
        return (
            "If the stream's target can take the new columns, start the query again from a new "
            "DataFrame: it continues from this change if all earlier rows were given. With a "
            "schemaTrackingLocation it can read these as well."
        )
    return (
        "Restarts do not help, since rows from before the newest schema don't mean the same in it. "
        "Start it with a new checkpoint, from the version after the last change or from the whole "
        "table; a schemaTrackingLocation lets it go past such changes."
    )


def unknown_columns(table_path: str, version: int) -> SchemaError:
    """Return the error for a stream whose first rows may have other names in their files."""
    return SchemaError(
        f"The log of {table_path} no longer tells the columns of version {version}, at which the "
        "stream starts or continues, and columns are mapped: its rows could come as nulls. Nothing "
        "was read. Start the stream with a new checkpoint, from a later version that can still be "
        "loaded or from the whole table.",
        kind="DELTA_STREAMING_CHECK_COLUMN_MAPPING_NO_SNAPSHOT",
        version=version,
    )


def _comparable_parts(schema: StreamSchema) -> tuple[object, ...]:
    table, protocol = TableMetadata.of(schema.metadata), schema.protocol
    configuration = schema.metadata.configuration.items()
    return (
        table.declared_schema.without_field_keys(_is_note),
        table.partition_columns,
        {key: text for key, text in configuration if key.startswith(_DELTA_PREFIX)},
        (protocol.min_reader_version, protocol.min_writer_version),
        frozenset(protocol.reader_features or ()),
        frozenset(protocol.writer_features or ()),
    )


def _is_note(key: str) -> bool:
    return key == GENERATION_EXPRESSION or key.startswith(IDENTITY_PREFIX)


def other_table(expected: str, found: str) -> TableError:
    """Return the error for a table other than the one that the stream began with."""
    return TableError(
        f"The streaming query was reading from the Delta table with the id {expected}, but the "
        f"table that is there now has the id {found}: it was replaced, or dropped and created "
        "again, or the checkpoint is another table's. Nothing was read. Start the query with a new "
        "checkpoint.",
        kind=OTHER_TABLE,
        oldTableId=expected,
        newTableId=found,
    )


def ensure_reached(offset: StreamOffset, latest: Snapshot) -> None:
    """Check that a table has what a stream has read of it.

    Raises:
        TableError: The offset is of another table (kind
            `DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE`), or after the newest version (kind
            `DELTA_VERSION_NOT_FOUND`).
    """
    if offset.table_id != latest.metadata.id:
        raise other_table(offset.table_id, latest.metadata.id)
    last = latest.version + (1 if offset.index == BASE_INDEX and not offset.is_initial else 0)
    if offset.version > last:
        raise set_back(offset.to_json(), latest.table_path, offset.version)


def set_back(position: str, table_path: str, version: int) -> TableError:
    """Return the error for a log that lacks commits that a stream has read."""
    return TableError(
        f"The stream has read up to {position}, which the log of {table_path} does not have any "
        "more: it was set back to an older state, or the checkpoint is that of a copy. Nothing was "
        "read. Start the stream with a new checkpoint.",
        kind=VERSION_NOT_FOUND,
        version=version,
    )
