"""The loading of one version of the table that a stream reads, and of no other table."""

from __future__ import annotations

from optimist.core.data.table_ref import TableRef
from optimist.core.snapshot import Snapshot
from optimist.core.snapshot.one_version import load_version
from optimist.core.streams.schema_rules import other_table

__all__ = ["load_same"]


def load_same(table: TableRef, version: int, latest: Snapshot) -> Snapshot:
    """Return the table at a version (see `load_version`).

    The race that this guards against: the newest version is listed -> the table is dropped and made
    anew -> an older version is loaded, of another table.

    Args:
        table: The table.
        version: The version.
        latest: The newest version, as it was listed before.

    Raises:
        TableError: The table was made anew since (kind
            `DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE`), or the version can't be loaded.
        ProtocolError: The version demands a feature that this engine can't read.
    """
    found = load_version(table, version, latest=latest)
    if found.metadata.id != latest.metadata.id:
        raise other_table(latest.metadata.id, found.metadata.id)
    return found
