"""Whether a stream may read on past a change of the table's metadata (spec 11.3)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from optimist.core.changes.schemas import reading_problem
from optimist.core.errors import SchemaError, TableError
from optimist.core.protocol.actions import Metadata, Protocol
from optimist.core.protocol.table_metadata import TableMetadata
from optimist.core.schema.generated_columns import GENERATION_EXPRESSION
from optimist.core.schema.identity_columns import IDENTITY_PREFIX

__all__ = ["StreamSchema", "other_table"]

_DELTA_PREFIX = "delta."


@dataclass(frozen=True, slots=True)
class StreamSchema:
    """The metadata that a stream reads all rows by, from its start on.

    Attributes:
        metadata: The table's metadata when the stream was started, or those of the last entry in
            its log of schemas.
        version: The version that they are from.
        protocol: The table's protocol there.
        is_tracked: Whether the stream has a log of schemas, and stops at each change.
    """

    metadata: Metadata
    version: int
    protocol: Protocol
    is_tracked: bool = False

    def after(
        self, version: int, metadata: Metadata | None, protocol: Protocol | None
    ) -> StreamSchema | None:
        """What a stream with a log of schemas reads by from a version on, if that is another.

        What came up to its own version is in it already, be it that nothing was read between two
        changes.

        Args:
            version: The version.
            metadata: The metadata that it brings; None if it brings none.
            protocol: The protocol that it brings; None if it brings none.

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
        """Whether rows are read by both alike; writers' own notes on columns don't count.

        A table with identity columns has other metadata after each write.
        """
        return _compared(self) == _compared(other)

    def ensure_reads(self, changed: Metadata, version: int) -> None:
        """Make sure that rows written under other metadata of the table can be read.

        A change that comes after the stream's own version, and under which all earlier rows can be
        read, is taken up by a restart. Others are not, because a restart reads by the newest
        metadata, too.

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
        problem = reading_problem(changed, self.metadata)
        if problem is None:
            return
        is_new = version > self.version
        retryable = is_new and reading_problem(self.metadata, changed) is None
        remedy = (
            "Start the query again: it goes on with the new schema."
            if retryable
            else "Restarts do not help, since rows from before the change don't mean the same "
            "after it. Give it a schemaTrackingLocation, in a classic session of Spark or in "
            "follow; or start it with a new checkpoint, from the version after the change "
            "(startingVersion), or from the whole table."
        )
        column, what = problem
        raise SchemaError(
            f"Detected schema change in version {version}: read with the schema that the stream "
            f"has, from version {self.version}, {what} in comparison. Nothing of this batch was "
            f"read. {remedy}",
            kind="DELTA_SCHEMA_CHANGED_WITH_VERSION",
            version=version,
            column=column,
            retryable=retryable,
        )


def _compared(schema: StreamSchema) -> tuple[object, ...]:
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
    """The error for a table that is not the one that the stream began with."""
    return TableError(
        f"The streaming query was reading from the Delta table with the id {expected}, but the "
        f"table that is there now has the id {found}: it was replaced, or dropped and made anew, "
        "or the checkpoint is another table's. Nothing was read. Start the query with a new "
        "checkpoint.",
        kind="DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE",
        oldTableId=expected,
        newTableId=found,
    )
