"""Which columns have statistics (spec 9.2)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from optimist.core.errors import SchemaError
from optimist.core.foreign_text import quoted, shown
from optimist.core.predicates.parsing import parse_column_path
from optimist.core.predicates.resolution import resolve_column
from optimist.core.predicates.text import quote_path
from optimist.core.schema.types import DataType, DecimalType, PrimitiveType, StructField, StructType

__all__ = ["BOUNDED_TYPES", "has_bounds", "leaf_columns", "stats_columns"]

STATS_COLUMNS_PROPERTY = "delta.dataSkippingStatsColumns"
NUM_INDEXED_PROPERTY = "delta.dataSkippingNumIndexedCols"
_DEFAULT_NUM_INDEXED = 32

BOUNDED_TYPES = frozenset(
    {
        "byte",
        "short",
        "integer",
        "long",
        "float",
        "double",
        "date",
        "timestamp",
        "timestamp_ntz",
        "string",
    }
)
"""Primitive types with bounds; decimals have them too, all others only a null count."""

ColumnPath = tuple[str, ...]


def has_bounds(data_type: DataType) -> bool:
    """Whether statistics hold a minimum and a maximum of such a column (spec 9.1)."""
    if isinstance(data_type, PrimitiveType):
        return data_type.name in BOUNDED_TYPES
    return isinstance(data_type, DecimalType)


def stats_columns(
    schema: StructType,
    partition_columns: Sequence[str],
    configuration: Mapping[str, str],
    clustering: Collection[ColumnPath] = (),
) -> tuple[ColumnPath, ...]:
    """The logical paths of the leaf columns that get statistics, in the schema's order.

    Args:
        schema: The table's schema; structs are descended into, lists and maps are leaves.
        partition_columns: The partition columns, which never get statistics.
        configuration: The table's properties.
        clustering: The paths of the clustering columns, which always get statistics (spec 6.3).

    Raises:
        SchemaError: The property `delta.dataSkippingStatsColumns` names a column that can't have
            statistics, or one column twice (kinds of spec 9.2), or one that does not exist
            (`DELTA_COLUMN_NOT_FOUND`); or `delta.dataSkippingNumIndexedCols` is not a number
            (`DELTA_INVALID_PROPERTY_VALUE`).
    """
    partitions = {name.lower() for name in partition_columns}
    data_fields = tuple(field for field in schema if field.name.lower() not in partitions)
    leaves = tuple(path for path, _ in leaf_columns(StructType(data_fields)))
    named = configuration.get(STATS_COLUMNS_PROPERTY)
    if named is not None:
        chosen = _named_columns(named, schema, partitions)
    else:
        count = _num_indexed(configuration)
        chosen = set(leaves if count < 0 else leaves[:count])
    chosen |= set(clustering)
    return tuple(path for path in leaves if _is_below(path, chosen))


def leaf_columns(schema: StructType) -> Iterator[tuple[ColumnPath, StructField]]:
    """The leaf columns with their logical paths, depth first; lists and maps are leaves."""
    for field in schema:
        if isinstance(field.data_type, StructType):
            for path, leaf in leaf_columns(field.data_type):
                yield (field.name, *path), leaf
        else:
            yield (field.name,), field


def _num_indexed(configuration: Mapping[str, str]) -> int:
    text = configuration.get(NUM_INDEXED_PROPERTY, str(_DEFAULT_NUM_INDEXED))
    try:
        return int(text)
    except ValueError:
        raise SchemaError(
            f"The property {NUM_INDEXED_PROPERTY} must be a number, -1 or more; it is "
            f"{quoted(text)}.",
            kind="DELTA_INVALID_PROPERTY_VALUE",
            property=NUM_INDEXED_PROPERTY,
        ) from None


def _is_below(path: ColumnPath, chosen: set[ColumnPath]) -> bool:
    return any(path[:depth] in chosen for depth in range(1, len(path) + 1))


def _named_columns(text: str, schema: StructType, partitions: set[str]) -> set[ColumnPath]:
    chosen: set[ColumnPath] = set()
    for name in _split_names(text):
        path = _named_column(name, schema, partitions)
        if path in chosen:
            raise _refused(name, "it is named twice", "DELTA_DUPLICATE_DATA_SKIPPING_COLUMNS")
        chosen.add(path)
    return chosen


def _named_column(name: str, schema: StructType, partitions: set[str]) -> ColumnPath:
    resolved = resolve_column(parse_column_path(name), schema)
    if resolved is None:
        raise _refused(name, "the table has no such column", "DELTA_COLUMN_NOT_FOUND")
    if resolved.path[0].lower() in partitions:
        kind = "DELTA_COLUMN_DATA_SKIPPING_NOT_SUPPORTED_PARTITIONED_COLUMN"
        raise _refused(name, "it is a partition column", kind)
    if not isinstance(resolved.data_type, StructType) and not has_bounds(resolved.data_type):
        kind = "DELTA_COLUMN_DATA_SKIPPING_NOT_SUPPORTED_TYPE"
        raise _refused(name, f"its type {shown(resolved.data_type)} has no order", kind)
    return resolved.path


def _split_names(text: str) -> list[str]:
    """The names between the commas; a comma in back-ticks is part of a name."""
    names, is_quoted, current = [], False, ""
    for char in text:
        is_quoted ^= char == "`"
        if char == "," and not is_quoted:
            names.append(current)
            current = ""
        else:
            current += char
    return [name.strip() for name in (*names, current) if name.strip()]


def _refused(name: str, reason: str, kind: str) -> SchemaError:
    return SchemaError(
        f"{STATS_COLUMNS_PROPERTY} names {shown(quote_path(tuple(name.split('.'))))}, but "
        f"{reason}.",
        kind=kind,
        column=name,
    )
