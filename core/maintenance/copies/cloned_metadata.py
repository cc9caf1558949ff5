"""The metadata and domains that CLONE takes from its source (spec 10.13).

Schema, partitioning and properties are the source's. A clone does not take what belongs to one
table only: its id, name and description, the ids of its rows, and the start of its in-commit
timestamps.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from optimist.core.commands.clones import CLONE_PROPERTIES
from optimist.core.errors import SchemaError
from optimist.core.errors.foreign_text import shown
from optimist.core.maintenance.copies.restored_metadata import restored_domains, restored_metadata
from optimist.core.options.engine import EngineOptions
from optimist.core.protocol.actions import DomainMetadata, Metadata
from optimist.core.protocol.properties import (
    IN_COMMIT_TIMESTAMP_ENABLEMENT,
    MATERIALIZED_ROW_COMMIT_VERSION,
    MATERIALIZED_ROW_ID,
    normalize_configuration,
)
from optimist.core.protocol.table_metadata import TableMetadata
from optimist.core.schema.types import COLUMN_MAPPING_PREFIX
from optimist.core.transaction.optimistic import OptimisticTransaction

__all__ = ["cloned_domains", "cloned_metadata", "ensure_possible", "shared_metadata"]

_ROW_TRACKING_COLUMNS = (MATERIALIZED_ROW_ID, MATERIALIZED_ROW_COMMIT_VERSION)
_MODE = COLUMN_MAPPING_PREFIX + "mode"


def cloned_metadata(
    txn: OptimisticTransaction,
    source: Metadata,
    properties: Mapping[str, str],
    origin: Mapping[str, str],
) -> Metadata:
    """Return the metadata of a clone.

    Args:
        txn: The transaction that makes the clone. If a table exists, its id stays, and so do values
            that must not go back, such as the last values of its identity columns.
        source: The source's metadata.
        properties: Properties that replace the source's.
        origin: The result of `clone_properties` for a shallow clone.

    Raises:
        ConfigError: A property is not valid.
        SchemaError: The mode of column mapping would differ from the source's or from that of the
            existing table (kind `DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE`).
    """
    exists = txn.read_version >= 0
    current = txn.snapshot.metadata if exists else None
    metadata = shared_metadata(source)
    if current is not None:
        metadata = restored_metadata(metadata, current)
    own = {} if current is None else current.configuration
    options = txn.table.options
    configuration = {
        **metadata.configuration,
        **{key: own[key] for key in _ROW_TRACKING_COLUMNS if key in own},
        **normalize_configuration(
            properties,
            allow_arbitrary=options.allow_arbitrary_properties,
            current=metadata.configuration,
            enforce_retention=options.enforce_retention_compatibility,
        ),
        **origin,
    }
    cloned = replace(
        metadata,
        id=txn.table.clock.new_uuid() if current is None else current.id,
        name=None if current is None else current.name,
        description=None if current is None else current.description,
        configuration=configuration,
    )
    for known in (source, *(() if current is None else (current,))):
        _ensure_same_mode(known, cloned)
    return cloned


def ensure_possible(properties: Mapping[str, str], options: EngineOptions) -> None:
    """Refuse properties that no clone can have, before the files of its source are read.

    Raises:
        ConfigError: One of them is not valid.
    """
    normalize_configuration(
        properties, allow_arbitrary=options.allow_arbitrary_properties, enforce_retention=False
    )


def shared_metadata(metadata: Metadata) -> Metadata:
    """Return a table's metadata without the properties that belong to this table only."""
    own = (*_ROW_TRACKING_COLUMNS, *IN_COMMIT_TIMESTAMP_ENABLEMENT, *CLONE_PROPERTIES)
    kept = {key: text for key, text in metadata.configuration.items() if key not in own}
    return replace(metadata, configuration=kept)


def cloned_domains(
    source: Mapping[str, DomainMetadata], current: Mapping[str, DomainMetadata]
) -> tuple[DomainMetadata, ...]:
    """Return the domain actions of a CLONE: the source's clustering and nothing else."""
    return restored_domains(source, current)


def _ensure_same_mode(known: Metadata, cloned: Metadata) -> None:
    old, new = (TableMetadata.of(m).properties.column_mapping_mode for m in (known, cloned))
    if old != new:
        raise SchemaError(
            f"A clone can't change the property {_MODE} from {shown(old)} to {shown(new)}: its "
            "files have the columns as the source's do, and a table that is there keeps its mode. "
            "Nothing was written. Clone to a new path, without the property.",
            kind="DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE",
            old_mode=old,
            new_mode=new,
        )
