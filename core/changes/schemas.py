"""Whether all commits of a run can be read as the schema at its end (spec 10.11)."""

from __future__ import annotations

from collections.abc import Iterator

from optimist.core.errors import SchemaError
from optimist.core.protocol.actions import Metadata
from optimist.core.protocol.properties import TableProperties
from optimist.core.schema.types import (
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    PrimitiveType,
    StructType,
)
from optimist.core.table_schema import table_schema

__all__ = ["ensure_reads_as"]

_INTEGERS = ("byte", "short", "integer", "long")
_DIGITS = {"byte": 10, "short": 10, "integer": 10, "long": 20}
_WIDENINGS = frozenset(
    {(narrow, wide) for at, wide in enumerate(_INTEGERS) for narrow in _INTEGERS[:at]}
    | {(narrow, "double") for narrow in ("byte", "short", "integer", "float")}
    | {("date", "timestamp_ntz")}
)


def ensure_reads_as(
    earlier: Metadata, final: Metadata, *, version: int, final_version: int
) -> None:
    """Rows written under earlier metadata must mean the same under the final one.

    Columns may have been added and types widened. A column that was dropped, renamed or given
    another type, and another partitioning, are refused.

    Raises:
        SchemaError: They do not (kind `DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_SCHEMA_CHANGE`, fields
            `version`, `final_version`, `column`).
    """
    if earlier.schema_string == final.schema_string:
        problem = None
    else:
        is_mapped = _is_mapped(final)
        before, after = (table_schema(item) for item in (earlier, final))
        problem = next(_problems(before, after, is_mapped, ""), None)
    if problem is None and earlier.partition_columns != final.partition_columns:
        problem = ("", "the partition columns changed")
    if problem is None:
        return
    column, what = problem
    raise SchemaError(
        f"The changes can't be read as the table is at version {final_version}: {what} after "
        f"version {version}. Nothing was read. End before the change, and read the versions after "
        "it in a read of their own.",
        kind="DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_SCHEMA_CHANGE",
        version=version,
        final_version=final_version,
        column=column,
    )


def _is_mapped(metadata: Metadata) -> bool:
    properties = TableProperties.from_configuration(metadata.configuration)
    return properties.column_mapping_mode != "none"


def _problems(
    before: StructType, after: StructType, is_mapped: bool, path: str
) -> Iterator[tuple[str, str]]:
    """What makes rows of one struct unreadable as the other: the column, and a text."""
    by_physical_name = {item.physical_name: item for item in after}
    for item in before:
        name = f"{path}{item.name}"
        same = by_physical_name.get(item.physical_name) if is_mapped else after.find(item.name)
        if same is None:
            yield name, f"the column {name} was dropped"
        elif is_mapped and same.name.lower() != item.name.lower():
            yield name, f"the column {name} was renamed to {same.name}"
        else:
            yield from _type_problems(item.data_type, same.data_type, is_mapped, name)


def _type_problems(
    before: DataType, after: DataType, is_mapped: bool, name: str
) -> Iterator[tuple[str, str]]:
    if isinstance(before, StructType) and isinstance(after, StructType):
        yield from _problems(before, after, is_mapped, f"{name}.")
    elif isinstance(before, ArrayType) and isinstance(after, ArrayType):
        element = f"{name}.element"
        yield from _type_problems(before.element_type, after.element_type, is_mapped, element)
    elif isinstance(before, MapType) and isinstance(after, MapType):
        yield from _type_problems(before.key_type, after.key_type, is_mapped, f"{name}.key")
        yield from _type_problems(before.value_type, after.value_type, is_mapped, f"{name}.value")
    elif before != after and not _is_widening(before, after):
        yield name, f"the type of {name} changed from {before} to {after}"


def _is_widening(before: DataType, after: DataType) -> bool:
    """Whether the feature `typeWidening` allows the change (spec 6.3)."""
    if before == PrimitiveType("void"):
        return True
    if isinstance(after, DecimalType):
        whole = after.precision - after.scale
        if isinstance(before, DecimalType):
            return after.scale >= before.scale and whole >= before.precision - before.scale
        return isinstance(before, PrimitiveType) and whole >= _DIGITS.get(before.name, 99)
    if isinstance(before, PrimitiveType) and isinstance(after, PrimitiveType):
        return (before.name, after.name) in _WIDENINGS
    return False
