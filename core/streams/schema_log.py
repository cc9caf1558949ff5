"""`SchemaLog`: the metadata that a stream has read a table by, one file each (spec 11.5).

It lies beside the stream's checkpoint and is read by other engines, so the names of its files,
their keys, the order of the keys and the spacing are Delta's.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

from optimist.core.data.table_ref import TableRef
from optimist.core.errors import LogFileNotFoundError, OptimistError, StorageError, TableError
from optimist.core.errors.foreign_text import quoted, shown
from optimist.core.paths import join
from optimist.core.plugins.logstore import LogStore, PutOutcome
from optimist.core.protocol.actions import (
    Metadata,
    Protocol,
    action_from_json,
    action_to_json,
)
from optimist.core.protocol.table_metadata import TableMetadata
from optimist.core.schema.types import StructType, schema_from_json, schema_to_json
from optimist.core.streams.schema_rules import StreamSchema

__all__ = ["SchemaLog", "TrackedMetadata", "logs_at"]

_HEADER = "v1"
_KEYS = {
    "table_id": "tableId",
    "version": "deltaCommitVersion",
    "data_schema": "dataSchemaJson",
    "partition_schema": "partitionSchemaJson",
    "source_path": "sourceMetadataPath",
    "configuration": "tableConfigurations",
    "protocol": "protocolJson",
    "previous": "previousMetadataSeqNum",
}
"""The fields of an entry and their keys, in the order of the file; None values are left out."""


@dataclass(frozen=True, slots=True)
class TrackedMetadata:
    """One entry: the metadata that a stream reads a table by, from a version on.

    Attributes:
        table_id: The table's id.
        version: The version of the table.
        data_schema: Its schema, as JSON.
        partition_schema: Its partition columns, as the JSON of a schema.
        source_path: The path of the query's source in its checkpoint.
        configuration: The table's properties; None in entries of old writers.
        protocol: Its protocol, as a line of a commit; None in entries of old writers.
        previous: The number of the entry before, if it is not this number minus one.
    """

    table_id: str
    version: int
    data_schema: str
    partition_schema: str
    source_path: str
    configuration: Mapping[str, str] | None = None
    protocol: str | None = None
    previous: int | None = None

    @classmethod
    def of(cls, schema: StreamSchema, source_path: str) -> TrackedMetadata:
        """Make the entry for a stream's schema."""
        table = TableMetadata.of(schema.metadata)
        columns = table.declared_schema
        partitions = [columns.find(name) for name in table.partition_columns]
        partition_schema = StructType(tuple(item for item in partitions if item is not None))
        return cls(
            schema.metadata.id,
            schema.version,
            schema_to_json(columns),
            schema_to_json(partition_schema),
            source_path,
            dict(schema.metadata.configuration),
            action_to_json(schema.protocol),
        )

    @property
    def schema(self) -> StructType:
        """The columns."""
        return schema_from_json(self.data_schema)

    def over(self, metadata: Metadata, protocol: Protocol) -> StreamSchema:
        """Return the stream's schema, given the table's current metadata and protocol."""
        partitions = schema_from_json(self.partition_schema)
        if self.protocol is not None:
            found = action_from_json(self.protocol)
            protocol = found if isinstance(found, Protocol) else protocol
        configuration = self.configuration
        tracked = replace(
            metadata,
            id=self.table_id,
            schema_string=self.data_schema,
            partition_columns=partitions.names,
            configuration=metadata.configuration if configuration is None else configuration,
        )
        return StreamSchema(tracked, self.version, protocol, is_tracked=True)

    def to_text(self) -> str:
        """Return the content of the entry's file."""
        values = {key: getattr(self, name) for name, key in _KEYS.items()}
        fields = {key: value for key, value in values.items() if value is not None}
        return f"{_HEADER}\n{json.dumps(fields, separators=(',', ':'), ensure_ascii=False)}"

    @classmethod
    def from_text(cls, text: str, path: str) -> TrackedMetadata:
        """Read the entry in a file of any engine.

        Raises:
            TableError: The file is damaged, or in a later format (kind
                `DELTA_STREAMING_SCHEMA_LOG_DESERIALIZE_FAILED`), or its schema is not valid (kind
                `DELTA_STREAMING_SCHEMA_LOG_PARSE_SCHEMA_FAILED`).
        """
        header, _, body = text.partition("\n")
        try:
            found = json.loads(body) if header == _HEADER else None
        except ValueError:
            found = None
        if not isinstance(found, dict) or not _is_entry(found):
            raise _invalid_entry(path, text)
        entry = cls(**{name: found[key] for name, key in _KEYS.items() if key in found})
        try:
            schema_from_json(entry.data_schema)
            entry.over(Metadata(entry.table_id, entry.data_schema), Protocol(1, 2))
        except OptimistError as error:
            raise TableError(
                f"Failed to parse the schema in the log of schemas, file {path}: {error} Nothing "
                "was read. Restore the file from a copy, or start with a new checkpoint.",
                kind="DELTA_STREAMING_SCHEMA_LOG_PARSE_SCHEMA_FAILED",
                path=path,
            ) from None
        return entry


def logs_at(location: TableRef, tracking_id: str | None) -> Callable[[str], SchemaLog]:
    """Return a function from a table's id to its log of schemas, at the option's location.

    Args:
        location: The location, which is not a table but is accessed like one.
        tracking_id: See `SchemaLog.of`.
    """
    return partial(SchemaLog.of, location.store, location.table_path, tracking_id=tracking_id)


@dataclass(frozen=True, slots=True)
class SchemaLog:
    """The entries of one source of one query, numbered from 0.

    Attributes:
        store: The store of the directory.
        path: The path of the directory.
    """

    store: LogStore
    path: str

    @classmethod
    def of(
        cls, store: LogStore, location: str, table_id: str, tracking_id: str | None
    ) -> SchemaLog:
        """Return the log of a source, at the location that a stream's option gives.

        Args:
            store: The store of the location.
            location: The directory, below the query's checkpoint.
            table_id: The table's id.
            tracking_id: A text that distinguishes this source from others of the query; None if
                there is no need.

        Raises:
            TableError: The ids would lead out of the location (kind `OPTIMIST_MALFORMED_ACTION`).
        """
        suffix = "" if tracking_id is None else f"_{tracking_id}"
        name = f"_schema_log_{table_id}{suffix}"
        if "/" in name or "\\" in name:
            raise TableError(
                f"The stream's log of schemas can't have the name {shown(name)}, which is not a "
                "directory name. Nothing was read. A table's id is a UUID, and a "
                "streamingSourceTrackingId has no slashes.",
                kind="OPTIMIST_MALFORMED_ACTION",
                id=table_id,
            )
        return cls(store, join(location, name))

    def newest(self) -> tuple[int, TrackedMetadata] | None:
        """Return the last entry with its number, or None if there is none.

        Raises:
            TableError: See `TrackedMetadata.from_text`.
        """
        try:
            names = [status.name for status in self.store.list_from(join(self.path, "0"))]
        except LogFileNotFoundError:
            return None
        numbers = [int(name) for name in names if name.isascii() and name.isdigit()]
        if not numbers:
            return None
        entry = self.entry(max(numbers))
        return None if entry is None else (max(numbers), entry)

    def entry(self, number: int) -> TrackedMetadata | None:
        """Return one entry, or None if there is none of this number.

        Raises:
            TableError: See `TrackedMetadata.from_text`.
        """
        path = join(self.path, str(number))
        try:
            data = self.store.read_bytes(path)
        except LogFileNotFoundError:
            return None
        return TrackedMetadata.from_text(data.decode("utf-8", "replace"), path)

    def add(self, number: int, entry: TrackedMetadata) -> None:
        """Write an entry, unless one of this number exists.

        Raises:
            TableError: A different one exists (kind `DELTA_STREAMING_SCHEMA_LOCATION_CONFLICT`).
            StorageError: The store failed, or gave no answer twice (kind
                `OPTIMIST_WRITE_OUTCOME_UNKNOWN`).
        """
        self.store.ensure_directory(self.path)
        path, data = join(self.path, str(number)), entry.to_text().encode()
        outcome = self.store.put_if_absent(path, data)
        if outcome is PutOutcome.UNKNOWN:
            outcome = self.store.put_if_absent(path, data)
        if outcome is PutOutcome.UNKNOWN:
            raise _outcome_unknown(path)
        if outcome is PutOutcome.CREATED or self.entry(number) == entry:
            return  # the same entry may be from the lost request, or from a twin of this run
        raise TableError(
            f"Detected conflicting schema location {self.path}: another stream has written the "
            f"entry {number} meanwhile. No further rows were read. Give each stream its own "
            "schemaTrackingLocation below its own checkpoint; to sources of one query that read "
            "the same table, give a streamingSourceTrackingId as well.",
            kind="DELTA_STREAMING_SCHEMA_LOCATION_CONFLICT",
            location=self.path,
            number=number,
        )


def _is_entry(found: Mapping[str, object]) -> bool:
    """Tell whether the values have the types of the fields."""
    texts = ("tableId", "dataSchemaJson", "partitionSchemaJson", "sourceMetadataPath")
    version, previous = found.get("deltaCommitVersion"), found.get("previousMetadataSeqNum")
    configuration = found.get("tableConfigurations")
    return (
        all(isinstance(found.get(key), str) for key in texts)
        and type(version) is int
        and (previous is None or type(previous) is int)
        and isinstance(found.get("protocolJson"), str | None)
        and (
            configuration is None
            or (
                isinstance(configuration, dict)
                and all(isinstance(value, str) for value in configuration.values())
            )
        )
    )


def _outcome_unknown(path: str) -> StorageError:
    return StorageError(
        f"The entry {path} of the stream's log of schemas may or may not have been written: the "
        "store gave no answer. Start the query again, which finds out.",
        kind="OPTIMIST_WRITE_OUTCOME_UNKNOWN",
        path=path,
        retryable=True,
    )


def _invalid_entry(path: str, text: str) -> TableError:
    return TableError(
        f"The log of schemas has an invalid entry, or one of a later format, in {path}: "
        f"{quoted(shown(text))}. Nothing was read. Restore the file from a copy, or start with a "
        "new checkpoint.",
        kind="DELTA_STREAMING_SCHEMA_LOG_DESERIALIZE_FAILED",
        location=path,
    )
