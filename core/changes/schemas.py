"""Whether the rows of all commits of a run can be read with the schema at its end (spec 10.11)."""

from __future__ import annotations

from collections.abc import Iterator

from optimist.core.errors import SchemaError
from optimist.core.errors.foreign_text import shown
from optimist.core.protocol.actions import Metadata
from optimist.core.protocol.table_metadata import TableMetadata
from optimist.core.schema.type_widening import is_widening
from optimist.core.schema.types import (
    ArrayType,
    DataType,
    MapType,
    PrimitiveType,
    StructType,
)

__all__ = ["ensure_reads_as", "reading_problem"]

_VOID = PrimitiveType("void")


def ensure_reads_as(
    earlier: Metadata, final: Metadata, *, version: int, final_version: int
) -> None:
    """Make sure that rows written under earlier metadata mean the same under the final metadata.

    Columns may have been added and types widened. A column that was dropped, renamed or given
    another type is refused, and so are other partition columns.

    Raises:
        SchemaError: The rows don't mean the same (kind
            `DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_SCHEMA_CHANGE`, fields `version`, `final_version`,
            `column`).
    """
    problem = reading_problem(earlier, final)
    if problem is None:
        return
    column, what = problem
    raise SchemaError(
        f"The changes can't be read with the schema of version {final_version}: {what} after "
        f"version {version}. Nothing was read. End the read before that change, and read the later "
        "versions separately.",
        kind="DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_SCHEMA_CHANGE",
        version=version,
        final_version=final_version,
        column=column,
    )


def reading_problem(earlier: Metadata, final: Metadata) -> tuple[str, str] | None:
    """Why rows written under earlier metadata don't mean the same under other metadata.

    Returns:
        The column and the reason, as `the column x was dropped`; None if they do.
    """
    if earlier.schema_string != final.schema_string:
        before, after = TableMetadata.of(earlier), TableMetadata.of(final)
        found = next(_problems(before.schema, after.schema, after.is_mapped, ""), None)
        if found is not None:
            return found
    if earlier.partition_columns != final.partition_columns:
        return "", "the partition columns changed"
    return None


def _problems(
    before: StructType, after: StructType, is_mapped: bool, path: str
) -> Iterator[tuple[str, str]]:
    """What keeps rows of one struct from being read as the other: the column, and the reason."""
    by_physical_name = {item.physical_name: item for item in after}
    for item in before:
        name = f"{path}{item.name}"
        same = by_physical_name.get(item.physical_name) if is_mapped else after.find(item.name)
        if same is None:
            yield name, f"the column {shown(name)} was dropped"
        elif is_mapped and same.name.lower() != item.name.lower():
            yield name, f"the column {shown(name)} was renamed to {shown(same.name)}"
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
    elif before not in (after, _VOID) and not is_widening(before, after):
        yield name, f"the type of {shown(name)} changed from {shown(before)} to {shown(after)}"
