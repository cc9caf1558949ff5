"""The check that all rows of a range can be read with its last schema (spec 10.11)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from optimist.core.errors import SchemaError
from optimist.core.errors.foreign_text import shown
from optimist.core.protocol.actions import Metadata
from optimist.core.protocol.table_metadata import TableMetadata
from optimist.core.schema.type_widening import is_widening
from optimist.core.schema.types import (
    COLUMN_ID,
    ArrayType,
    DataType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
)

__all__ = ["ensure_reads_as", "reading_problem"]

_VOID = PrimitiveType("void")


def ensure_reads_as(
    earlier: Metadata,
    final: Metadata,
    *,
    version: int,
    final_version: int,
    may_lack: bool = False,
) -> None:
    """Refuse rows written under earlier metadata that have another meaning under the final ones.

    Columns may have been added and types widened. A column that was dropped, renamed or given
    another type is refused, and so are other partition columns. A column that data files have under
    another name or id is refused, too; this happens when column mapping is turned off.

    Args:
        earlier: The metadata when the rows were written.
        final: The metadata that they are read by.
        version: The version of the earlier metadata.
        final_version: The version of the final metadata, for the error.
        may_lack: Whether the final metadata may lack columns, so that the rows are read without
            them; for rows that the commit after `version` removed.

    Raises:
        SchemaError: The rows have another meaning (kind
            `DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_SCHEMA_CHANGE`, fields `version`, `final_version`,
            `column`).
    """
    problem = reading_problem(earlier, final, may_lack=may_lack)
    if problem is None:
        return
    column, what = problem
    remedy = (
        f"Version {version + 1} changed this and removed rows from before at once, so leave it "
        "out: end before it, and start after it."
        if may_lack
        else "End the read before that change, and read the later versions separately."
    )
    raise SchemaError(
        f"The changes can't be read with the schema of version {final_version}: {what} after "
        f"version {version}. Nothing was read. {remedy}",
        kind="DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_SCHEMA_CHANGE",
        version=version,
        final_version=final_version,
        column=column,
    )


def reading_problem(
    earlier: Metadata, final: Metadata, *, may_lack: bool = False
) -> tuple[str, str] | None:
    """Tell why rows written under earlier metadata have another meaning under other metadata.

    Both columns must have the same name, and the same name or id in data files: the second metadata
    must look for the column as the first wrote it. This rule also covers column mapping that was
    turned on or off, and a column that was dropped and added again.

    Returns:
        The column and the reason, as in `the column x was dropped`; None if the meaning is the
        same.
    """
    before, after = TableMetadata.of(earlier), TableMetadata.of(final)
    is_alike = before.properties.column_mapping_mode == after.properties.column_mapping_mode
    if earlier.schema_string != final.schema_string or not is_alike:
        by_id = after.properties.column_mapping_mode == "id"
        problems = _Comparison(by_id, may_lack).compare_structs(before.schema, after.schema, "")
        found = next(problems, None)
        if found is not None:
            return found
    if earlier.partition_columns != final.partition_columns:
        return "", "the partition columns changed"
    return None


@dataclass(frozen=True, slots=True)
class _Comparison:
    """Finds the columns that prevent rows from being read as others, with the reasons.

    Attributes:
        by_id: Whether columns are found in data files by their ids.
        may_lack: Whether rows may be read without some of their columns.
    """

    by_id: bool
    may_lack: bool

    def compare_structs(
        self, before: StructType, after: StructType, path: str
    ) -> Iterator[tuple[str, str]]:
        """Yield the problems of one struct's fields, at any depth."""
        by_physical_name = {item.physical_name: item for item in after}
        folded = {name.lower(): item for name, item in by_physical_name.items()}
        for item in before:
            name, physical_name = f"{path}{item.name}", item.physical_name
            same = by_physical_name.get(physical_name) or folded.get(physical_name.lower())
            if same is None or (self.by_id and not _has_id_of(same, item)):
                namesake = after.find(item.name)
                if namesake is not None or not self.may_lack:
                    yield name, _describe_lost(name, namesake)
            elif same.name.lower() != item.name.lower():
                yield name, f"the column {shown(name)} was renamed to {shown(same.name)}"
            else:
                yield from self._compare_types(item.data_type, same.data_type, name)

    def _compare_types(
        self, before: DataType, after: DataType, name: str
    ) -> Iterator[tuple[str, str]]:
        if isinstance(before, StructType) and isinstance(after, StructType):
            yield from self.compare_structs(before, after, f"{name}.")
        elif isinstance(before, ArrayType) and isinstance(after, ArrayType):
            yield from self._compare_types(
                before.element_type, after.element_type, f"{name}.element"
            )
        elif isinstance(before, MapType) and isinstance(after, MapType):
            yield from self._compare_types(before.key_type, after.key_type, f"{name}.key")
            yield from self._compare_types(before.value_type, after.value_type, f"{name}.value")
        elif before not in (after, _VOID) and not is_widening(before, after):
            yield name, f"the type of {shown(name)} changed from {shown(before)} to {shown(after)}"


def _has_id_of(same: StructField, item: StructField) -> bool:
    number = same.metadata.get(COLUMN_ID)
    return number is None or number == item.metadata.get(COLUMN_ID)


def _describe_lost(name: str, namesake: StructField | None) -> str:
    if namesake is None:
        return f"the column {shown(name)} was dropped"
    return (
        f"the column {shown(name)} has another name or id in data files, since it was dropped and "
        "added again, or column mapping was turned on or off"
    )
