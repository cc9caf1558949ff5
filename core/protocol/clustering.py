"""The columns by which a table is clustered (spec 6.3, feature `clustering`)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from optimist.core.errors import SchemaError
from optimist.core.errors.foreign_text import listed
from optimist.core.protocol.actions import DomainMetadata, Metadata
from optimist.core.protocol.domains import CLUSTERING_DOMAIN
from optimist.core.protocol.table_metadata import TableMetadata
from optimist.core.schema.column_paths import logical_path, physical_path
from optimist.core.schema.stats_property import has_bounds, leaf_columns
from optimist.core.schema.types import StructType
from optimist.core.values.foreign_json import parse_json

__all__ = [
    "clustering_columns",
    "clustering_domain",
    "ensure_clustering_fits",
]


def clustering_columns(
    domains: Mapping[str, DomainMetadata], schema: StructType
) -> tuple[tuple[str, ...], ...]:
    """Return the logical paths of the clustering columns, or none if the domain is malformed.

    Args:
        domains: The live metadata domains that count (see `domains_that_count`), by name.
        schema: The table's schema. A column that it lacks keeps its physical path.
    """
    domain = domains.get(CLUSTERING_DOMAIN)
    if domain is None:
        return ()
    try:
        columns = parse_json(domain.configuration or "{}").get("clusteringColumns")
    except (ValueError, AttributeError):
        return ()  # another engine wrote it, so do not refuse the table for it
    if not isinstance(columns, list):
        return ()
    # Engines write each column as an array (its path). The protocol's text shows plain names.
    paths = (column if isinstance(column, list) else [column] for column in columns)
    found = (tuple(str(part) for part in path) for path in paths)
    return tuple(logical_path(path, schema) or path for path in found)


def clustering_domain(columns: Sequence[tuple[str, ...]], schema: StructType) -> DomainMetadata:
    """Return the domain that names the columns by which a table is clustered.

    Args:
        columns: Their logical paths, which the schema has. None for a table that keeps the feature
            and is no longer clustered.
        schema: The table's schema, with the columns' physical names.
    """
    physical = [physical_path(path, schema) for path in columns]
    body = {"clusteringColumns": physical, "domainName": CLUSTERING_DOMAIN}
    return DomainMetadata(CLUSTERING_DOMAIN, json.dumps(body, separators=(",", ":")))


def ensure_clustering_fits(metadata: Metadata, domains: Mapping[str, DomainMetadata]) -> None:
    """Refuse metadata that a table with these clustering columns can't have (spec 6.3).

    Args:
        metadata: The table's new metadata.
        domains: The new live metadata domains that count, by name.

    Raises:
        SchemaError: The table would be partitioned as well
            (`DELTA_CLUSTERING_TO_PARTITIONED_TABLE_WITH_NON_EMPTY_CLUSTERING_COLUMNS`), a
            clustering column would be gone (`DELTA_UNSUPPORTED_DROP_CLUSTERING_COLUMN`), or would
            have a type without minimum and maximum
            (`DELTA_CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED`); field `columns`.
    """
    table = TableMetadata.of(metadata)
    columns = clustering_columns(domains, table.schema)
    if not columns:
        return
    leaves = dict(leaf_columns(table.schema))
    if table.partition_columns:
        raise _unfit_columns(
            columns,
            f"and can't be partitioned (by {listed(table.partition_columns)}) as well",
            "DELTA_CLUSTERING_TO_PARTITIONED_TABLE_WITH_NON_EMPTY_CLUSTERING_COLUMNS",
        )
    lost = tuple(path for path in columns if path not in leaves)
    if lost:
        raise _unfit_columns(
            lost,
            "which its new schema does not have",
            "DELTA_UNSUPPORTED_DROP_CLUSTERING_COLUMN",
        )
    unbounded = tuple(path for path in columns if not has_bounds(leaves[path].data_type))
    if unbounded:
        raise _unfit_columns(
            unbounded,
            "whose new type has no smallest and largest value",
            "DELTA_CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED",
        )


def _unfit_columns(columns: Iterable[tuple[str, ...]], problem: str, kind: str) -> SchemaError:
    names = tuple(map(".".join, columns))
    return SchemaError(
        f"The table is clustered by {listed(names)}, {problem}. Nothing was written. Keep the "
        "columns, or take the clustering off first (ALTER TABLE ... CLUSTER BY NONE).",
        kind=kind,
        columns=names,
    )
