"""The columns that can have statistics, and those that a table property names (spec 9.1, 9.2).

Only this module reads `delta.dataSkippingStatsColumns`. It checks the property when a user sets it.
For a property in a log it ignores names of no column, because other engines let it go stale.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from optimist.core.errors import SchemaError
from optimist.core.errors.foreign_text import listed, shown
from optimist.core.schema.column_paths import named_path
from optimist.core.schema.schema_edits import is_inside, path_text
from optimist.core.schema.types import DataType, DecimalType, PrimitiveType, StructField, StructType

__all__ = [
    "STATS_COLUMNS",
    "ColumnPath",
    "bounded_columns",
    "has_bounds",
    "leaf_columns",
    "named_leaves",
    "with_renamed_column",
    "without_column",
]

ColumnPath = tuple[str, ...]
STATS_COLUMNS = "delta.dataSkippingStatsColumns"
_BOUNDED_TYPES = frozenset(
    {"byte", "short", "integer", "long", "float", "double", "date", "string"}
    | {"timestamp", "timestamp_ntz"}
)
_PART = r"(?:`(?:[^`]|``)+`|[^`.]+)"
_DOTTED_NAME = re.compile(rf"{_PART}(?:\.{_PART})*")


def has_bounds(data_type: DataType) -> bool:
    """Return whether statistics hold a minimum and a maximum of such a column (spec 9.1)."""
    if isinstance(data_type, PrimitiveType):
        return data_type.name in _BOUNDED_TYPES
    return isinstance(data_type, DecimalType)


def leaf_columns(schema: StructType) -> Iterator[tuple[ColumnPath, StructField]]:
    """Yield the leaf columns with their logical paths, depth first. Lists and maps are leaves."""
    for field in schema:
        if isinstance(field.data_type, StructType):
            for path, leaf in leaf_columns(field.data_type):
                yield (field.name, *path), leaf
        else:
            yield (field.name,), field


def bounded_columns(
    names: Sequence[str], schema: StructType, partition_columns: Sequence[str]
) -> tuple[ColumnPath, ...]:
    """Return the logical paths of the named columns. A struct means all its leaves.

    Args:
        names: The names in `delta.dataSkippingStatsColumns`, as `a`, `a.b` or ``a.`b.c` ``.
        schema: The table's schema.
        partition_columns: The partition columns.

    Raises:
        SchemaError: A name is that of a partition column
            (`DELTA_COLUMN_DATA_SKIPPING_NOT_SUPPORTED_PARTITIONED_COLUMN`), of a column whose type
            has no minimum and maximum (`DELTA_COLUMN_DATA_SKIPPING_NOT_SUPPORTED_TYPE`), or of no
            column (`DELTA_COLUMN_NOT_FOUND_IN_SCHEMA`), field `column`. Or a column is named twice
            (`DELTA_DUPLICATE_DATA_SKIPPING_COLUMNS`, field `columns`).
    """
    partitioned = {name.lower() for name in partition_columns}
    leaves = [leaf for name in names for leaf in _leaves_of(name, schema, partitioned)]
    repeated = tuple(".".join(p) for p in dict.fromkeys(leaves) if leaves.count(p) > 1)
    if repeated:
        raise SchemaError(
            f"The table property {STATS_COLUMNS} names columns more than once: {listed(repeated)}. "
            "Nothing was written. Name each once.",
            kind="DELTA_DUPLICATE_DATA_SKIPPING_COLUMNS",
            columns=repeated,
        )
    return tuple(leaves)


def named_leaves(
    names: Sequence[str], schema: StructType, partition_columns: Sequence[str]
) -> frozenset[ColumnPath]:
    """Return the leaves of the named columns, and ignore names of no column."""
    partitioned = {name.lower() for name in partition_columns}
    paths = (_path_of(name, schema) for name in names)
    wanted = [path for path in paths if path is not None and path[0].lower() not in partitioned]
    return frozenset(
        leaf for leaf, _ in leaf_columns(schema) if any(is_inside(leaf, path) for path in wanted)
    )


def with_renamed_column(names: Sequence[str], old: ColumnPath, new: ColumnPath) -> tuple[str, ...]:
    """Return the names of the property after a column or a struct was renamed.

    Args:
        names: The names in the property.
        old: The old path.
        new: The new path.
    """
    return tuple(
        path_text((*new, *parts[len(old) :])) if is_inside(parts, old) else name
        for name, parts in ((name, _name_parts(name)) for name in names)
    )


def without_column(names: Sequence[str], path: ColumnPath) -> tuple[str, ...]:
    """Return the names of the property after a column or a struct was dropped."""
    return tuple(name for name in names if not is_inside(_name_parts(name), path))


def _leaves_of(name: str, schema: StructType, partitioned: set[str]) -> list[ColumnPath]:
    parts = _name_parts(name)
    if parts and parts[0].lower() in partitioned:
        raise _refused_column(
            name,
            "is a partition column, whose values are in the log already; leave it out",
            "DELTA_COLUMN_DATA_SKIPPING_NOT_SUPPORTED_PARTITIONED_COLUMN",
        )
    path = _path_of(name, schema)
    if path is None:
        raise _refused_column(
            name, "does not exist; correct its name", "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA"
        )
    under = {leaf: item for leaf, item in leaf_columns(schema) if leaf[: len(path)] == path}
    if path in under and not has_bounds(under[path].data_type):
        raise _refused_column(
            name,
            f"has the type {shown(under[path].data_type)}, which has no order; leave it out",
            "DELTA_COLUMN_DATA_SKIPPING_NOT_SUPPORTED_TYPE",
        )
    return list(under)


def _path_of(name: str, schema: StructType) -> ColumnPath | None:
    parts = _name_parts(name)
    return named_path(parts, schema) if parts else None


def _name_parts(name: str) -> ColumnPath:
    """Return the parts of a dotted name, without back-ticks, or none for an invalid name."""
    if not _DOTTED_NAME.fullmatch(name):
        return ()
    parts = (part.strip() for part in re.findall(_PART, name))
    return tuple(_unquote(part) if part.startswith("`") else part for part in parts)


def _unquote(part: str) -> str:
    return part[1:-1].replace("``", "`")


def _refused_column(name: str, problem: str, kind: str) -> SchemaError:
    return SchemaError(
        f"The column {shown(name)} in {STATS_COLUMNS} {problem}. Nothing was written.",
        kind=kind,
        column=name,
    )
