"""The metadata and domains that RESTORE takes from an older version (spec 10.13).

Schema, partitioning and properties are exactly those of the older version. Values that keep numbers
and ids unique never go back: the last values of identity columns, and the ids of mapped columns.
In-commit timestamps that are on in both versions keep their first version. Versions that are
protected from log cleanup stay protected.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from optimist.core.protocol.actions import DomainMetadata, Metadata
from optimist.core.protocol.domains import CLUSTERING_DOMAIN
from optimist.core.protocol.properties import IN_COMMIT_TIMESTAMP_ENABLEMENT
from optimist.core.protocol.table_metadata import TableMetadata
from optimist.core.schema.identity_columns import identity_columns, with_high_water_marks
from optimist.core.schema.types import COLUMN_MAPPING_PREFIX, schema_to_json
from optimist.core.transaction.metadata_update import with_protected_history

__all__ = ["restored_domains", "restored_metadata"]

_MAX_ID = COLUMN_MAPPING_PREFIX + "maxColumnId"


def restored_metadata(target: Metadata, current: Metadata) -> Metadata:
    """Return the metadata of the restored table.

    Args:
        target: The metadata of the version to go back to.
        current: The metadata of the newest version.
    """
    metadata = _with_marks(target, current)
    return replace(metadata, configuration=_restored_configuration(target, current))


def restored_domains(
    target: Mapping[str, DomainMetadata], current: Mapping[str, DomainMetadata]
) -> tuple[DomainMetadata, ...]:
    """Return the domain actions of a RESTORE, which only set the clustering back.

    All other domains stay as they are: those of users, and row tracking, whose ids never go back.
    """
    before, after = current.get(CLUSTERING_DOMAIN), target.get(CLUSTERING_DOMAIN)
    if after is not None:
        return () if after == before else (after,)
    return () if before is None else (replace(before, removed=True),)


def _with_marks(target: Metadata, current: Metadata) -> Metadata:
    schema = TableMetadata.of(target).declared_schema
    marks = {
        column.physical_name: column.mark
        for column in identity_columns(TableMetadata.of(current).declared_schema)
        if column.mark is not None
    }
    given = {
        column.name: marks[column.physical_name]
        for column in identity_columns(schema)
        if column.physical_name in marks
    }
    advanced = with_high_water_marks(schema, given)
    if advanced == schema:
        return target
    return replace(target, schema_string=schema_to_json(advanced))


def _restored_configuration(target: Metadata, current: Metadata) -> dict[str, str]:
    before, after = TableMetadata.of(current), TableMetadata.of(target)
    configuration = dict(target.configuration)
    if after.is_mapped:
        largest = max(before.properties.max_column_id, after.properties.max_column_id)
        configuration[_MAX_ID] = str(largest)
    if before.properties.enable_in_commit_timestamps:
        for key in IN_COMMIT_TIMESTAMP_ENABLEMENT:
            configuration.pop(key, None)
            if key in current.configuration and after.properties.enable_in_commit_timestamps:
                configuration[key] = current.configuration[key]
    return with_protected_history(configuration, current)
