"""The metadata and the protocol of a version, as deltalake shows them."""

from __future__ import annotations

from typing import NamedTuple

from optimist.core import Snapshot

__all__ = ["Metadata", "ProtocolVersions"]


class ProtocolVersions(NamedTuple):
    """The protocol of a table."""

    min_reader_version: int
    min_writer_version: int
    writer_features: list[str] | None
    reader_features: list[str] | None


class Metadata:
    """The metadata of one version; get it by `DeltaTable.metadata`."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._metadata = snapshot.metadata

    @property
    def id(self) -> str:
        """The table's id."""
        return self._metadata.id

    @property
    def name(self) -> str | None:
        """The table's name."""
        return self._metadata.name

    @property
    def description(self) -> str | None:
        """What the table is, for people."""
        return self._metadata.description

    @property
    def partition_columns(self) -> list[str]:
        """The partition columns, in order."""
        return list(self._metadata.partition_columns)

    @property
    def created_time(self) -> int | None:
        """When the table was created, in epoch milliseconds."""
        return self._metadata.created_time

    @property
    def configuration(self) -> dict[str, str]:
        """The table properties."""
        return dict(self._metadata.configuration)

    def __repr__(self) -> str:
        return (
            f"Metadata(id: {self.id}, name: {self.name}, description: {self.description}, "
            f"partition_columns: {self.partition_columns}, created_time: {self.created_time}, "
            f"configuration: {self.configuration})"
        )
