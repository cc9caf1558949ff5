"""`DeltaLog.detail`: the facts of a table apart from its rows, as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from optimist.core.errors.html_repr import field_html
from optimist.core.errors.short_repr import short_repr
from optimist.core.protocol.clustering import clustering_columns
from optimist.core.protocol.gates import implied_features
from optimist.core.snapshot import Snapshot

__all__ = ["TableDetail", "table_detail"]


@dataclass(frozen=True, slots=True)
class TableDetail:
    """One table at one version. The fields are the columns of Delta's DESCRIBE DETAIL.

    Attributes:
        format: Always `delta`.
        id: The table's id.
        name: Its name, or None.
        description: Its description, or None.
        location: Its directory, as the handle's caller gave it.
        created_at_ms: When it was created, in epoch milliseconds. None if its metadata does not
            say.
        last_modified_ms: When the version was made, in epoch milliseconds.
        partition_columns: The partition columns, by logical name, in order.
        clustering_columns: The clustering columns, nested ones joined by dots.
        num_files: The number of live files.
        size_in_bytes: The sum of their sizes.
        properties: The table properties as in the log.
        min_reader_version: The reader version of the protocol.
        min_writer_version: The writer version of the protocol.
        table_features: The features that the protocol lists or implies, sorted.
    """

    format: str
    id: str
    name: str | None
    description: str | None
    location: str
    created_at_ms: int | None
    last_modified_ms: int
    partition_columns: tuple[str, ...]
    clustering_columns: tuple[str, ...]
    num_files: int
    size_in_bytes: int
    properties: Mapping[str, str]
    min_reader_version: int
    min_writer_version: int
    table_features: tuple[str, ...]

    __repr__ = short_repr
    _repr_html_ = field_html


def table_detail(snapshot: Snapshot) -> TableDetail:
    """Return the details of a version. Counting its files reads the checkpoint."""
    metadata, protocol = snapshot.metadata, snapshot.protocol
    return TableDetail(
        format="delta",
        id=metadata.id,
        name=metadata.name,
        description=metadata.description,
        location=snapshot.table_path,
        created_at_ms=metadata.created_time,
        last_modified_ms=snapshot.timestamp_ms,
        partition_columns=metadata.partition_columns,
        clustering_columns=tuple(
            ".".join(path) for path in clustering_columns(snapshot.domain_metadata, snapshot.schema)
        ),
        num_files=snapshot.num_files,
        size_in_bytes=snapshot.size_in_bytes,
        properties=dict(metadata.configuration),
        min_reader_version=protocol.min_reader_version,
        min_writer_version=protocol.min_writer_version,
        table_features=tuple(sorted(implied_features(protocol))),
    )
