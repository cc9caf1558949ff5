"""How far a transaction has given out the numbers of identity columns (spec 1.6, 10.7)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from optimist.core.data.statistics.stats_text import stats_of
from optimist.core.protocol.actions import AddFile, Metadata
from optimist.core.protocol.table_metadata import TableMetadata
from optimist.core.schema.identity_columns import (
    IdentityColumn,
    identity_columns,
    with_high_water_marks,
)
from optimist.core.schema.types import StructType, schema_to_json

__all__ = ["IDENTITY_ONLY", "are_same_but_for_marks", "farthest_numbers", "with_marks"]

IDENTITY_ONLY = "delta.identity.schemaUpdate"
"""The tag of a commit whose metadata only moves high-water marks."""


def farthest_numbers(
    schema: StructType, names: Collection[str], adds: Sequence[AddFile]
) -> dict[str, int]:
    """Find for each column the number in the files that is farthest from its sequence's start.

    Args:
        schema: The table's.
        names: The columns whose numbers were given out.
        adds: The new files, with statistics of these columns.
    """
    columns = (column for column in identity_columns(schema) if column.name in names)
    found = {column: _bounds_of_column(column, adds) for column in columns}
    return {
        column.name: max(bounds) if column.step > 0 else min(bounds)
        for column, bounds in found.items()
        if bounds
    }


def with_marks(metadata: Metadata, written: Mapping[str, int]) -> Metadata:
    """Return the metadata after numbers up to these were given out."""
    schema = TableMetadata.of(metadata).declared_schema
    advanced = with_high_water_marks(schema, written)
    if advanced == schema:
        return metadata
    return replace(metadata, schema_string=schema_to_json(advanced))


def are_same_but_for_marks(old: Metadata, new: Metadata) -> bool:
    """Return whether the new metadata differ only in identity numbers given out, if at all."""
    before, after = (TableMetadata.of(each).declared_schema for each in (old, new))
    marks = {item.name: item.mark for item in identity_columns(after) if item.mark is not None}
    is_all_else_equal = replace(old, schema_string=new.schema_string) == new
    return is_all_else_equal and with_high_water_marks(before, marks) == after


def _bounds_of_column(column: IdentityColumn, adds: Sequence[AddFile]) -> list[int]:
    key = "maxValues" if column.step > 0 else "minValues"
    values = (stats_of(add.stats).get(key, {}).get(column.physical_name) for add in adds)
    return [value for value in values if value is not None]
