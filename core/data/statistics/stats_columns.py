"""The columns that have statistics (spec 9.2)."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from optimist.core.protocol.properties import TableProperties
from optimist.core.schema.stats_property import ColumnPath, leaf_columns, named_leaves
from optimist.core.schema.types import StructType

__all__ = ["stats_columns"]


def stats_columns(
    schema: StructType,
    partition_columns: Sequence[str],
    properties: TableProperties,
    always: Collection[ColumnPath] = (),
) -> tuple[ColumnPath, ...]:
    """Return the logical paths of the leaf columns with statistics, in the schema's order.

    Args:
        schema: The table's schema. Lists and maps are leaves, structs are not.
        partition_columns: The partition columns, which never get statistics.
        properties: The table's properties.
        always: Columns that get statistics whatever the properties are: those of clustering (spec
            6.3), and identity columns.
    """
    partitions = {name.lower() for name in partition_columns}
    data_fields = tuple(field for field in schema if field.name.lower() not in partitions)
    leaves = tuple(path for path, _ in leaf_columns(StructType(data_fields)))
    named = properties.data_skipping_stats_columns
    count = properties.data_skipping_num_indexed_cols
    if named is not None:
        chosen = set(named_leaves(named, schema, partition_columns))
    else:
        chosen = set(leaves if count < 0 else leaves[:count])
    chosen |= set(always)
    return tuple(path for path in leaves if _is_below(path, chosen))


def _is_below(path: ColumnPath, chosen: set[ColumnPath]) -> bool:
    return any(path[:depth] in chosen for depth in range(1, len(path) + 1))
