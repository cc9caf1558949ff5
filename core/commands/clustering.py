"""The columns that a table may be clustered by (spec 6.3, feature `clustering`)."""

from __future__ import annotations

from collections.abc import Sequence

from optimist.core.data.statistics.stats_columns import stats_columns
from optimist.core.errors import SchemaError
from optimist.core.errors.foreign_text import listed, shown
from optimist.core.protocol.actions import Metadata
from optimist.core.protocol.table_metadata import TableMetadata
from optimist.core.schema.column_paths import named_path
from optimist.core.schema.schema_edits import path_text
from optimist.core.schema.stats_property import has_bounds, leaf_columns

__all__ = ["MAX_CLUSTERING_COLUMNS", "ensure_may_cluster_by"]

MAX_CLUSTERING_COLUMNS = 4


def ensure_may_cluster_by(
    columns: Sequence[tuple[str, ...]], metadata: Metadata
) -> tuple[tuple[str, ...], ...]:
    """Return the columns in the table's spelling, or refuse those that can't cluster a table.

    Args:
        columns: Their logical paths, in any case.
        metadata: The table's metadata.

    Raises:
        SchemaError: The columns are too many (kind `DELTA_CLUSTER_BY_INVALID_NUM_COLUMNS`); or one
            is given twice (`DELTA_DUPLICATE_COLUMNS_FOUND`), does not exist
            (`DELTA_COLUMN_NOT_FOUND_IN_SCHEMA`), has a type without smallest and largest value
            (`DELTA_CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED`), or gets no statistics by the
            table's properties (`DELTA_CLUSTERING_COLUMN_MISSING_STATS`).
    """
    table = TableMetadata.of(metadata)
    if len(columns) > MAX_CLUSTERING_COLUMNS:
        raise SchemaError(
            f"A table can be clustered by at most {MAX_CLUSTERING_COLUMNS} columns, not by "
            f"{len(columns)}. Nothing was written. Choose the ones that queries filter by most.",
            kind="DELTA_CLUSTER_BY_INVALID_NUM_COLUMNS",
            num_columns=len(columns),
        )
    leaves = dict(leaf_columns(table.schema))
    found = []
    for given in columns:
        path = named_path(given, table.schema)
        if path is None:
            raise _cannot_cluster((given,), "does not exist", "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA")
        if path in found:
            raise _cannot_cluster((path,), "is named twice", "DELTA_DUPLICATE_COLUMNS_FOUND")
        if path not in leaves or not has_bounds(leaves[path].data_type):
            raise _cannot_cluster(
                (path,),
                "has a type without smallest and largest value",
                "DELTA_CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED",
            )
        found.append(path)
    counted = stats_columns(table.schema, table.partition_columns, table.properties)
    missing = tuple(path for path in found if path not in counted)
    if missing:
        raise _cannot_cluster(
            missing,
            "gets no statistics: by delta.dataSkippingStatsColumns, "
            f"delta.dataSkippingNumIndexedCols or the partitioning, only "
            f"{_list_columns(counted)} do",
            "DELTA_CLUSTERING_COLUMN_MISSING_STATS",
        )
    return tuple(found)


def _list_columns(paths: Sequence[tuple[str, ...]]) -> str:
    """Format columns as a list for a message."""
    return listed(map(path_text, paths)) or "none"


def _cannot_cluster(columns: Sequence[tuple[str, ...]], problem: str, kind: str) -> SchemaError:
    names = tuple(map(path_text, columns))
    return SchemaError(
        f"A table can't be clustered by {shown(listed(names))}: the column {problem}. Nothing was "
        "written. Choose other columns.",
        kind=kind,
        columns=names,
    )
