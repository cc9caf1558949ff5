"""The columns that a table is clustered by (spec 6.3, feature `clustering`)."""

from __future__ import annotations

from collections.abc import Mapping

from optimist.core.protocol.actions import DomainMetadata
from optimist.core.schema.column_paths import logical_path
from optimist.core.schema.types import StructType
from optimist.core.values.foreign_json import parse_json

__all__ = ["clustering_columns"]

_DOMAIN = "delta.clustering"


def clustering_columns(
    domains: Mapping[str, DomainMetadata], schema: StructType
) -> tuple[tuple[str, ...], ...]:
    """The logical paths of the clustering columns; empty if the domain can't be understood.

    Args:
        domains: The live metadata domains, by name.
        schema: The table's schema; a column that it lacks keeps its physical path.
    """
    domain = domains.get(_DOMAIN)
    if domain is None:
        return ()
    try:
        columns = parse_json(domain.configuration or "{}").get("clusteringColumns")
    except (ValueError, AttributeError):
        return ()  # another engine's business, and no reason to refuse the table
    if not isinstance(columns, list):
        return ()
    # Engines write each column as an array, its path; the protocol's text shows plain names.
    paths = (column if isinstance(column, list) else [column] for column in columns)
    found = (tuple(str(part) for part in path) for path in paths)
    return tuple(logical_path(path, schema) or path for path in found)
