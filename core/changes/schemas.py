"""Whether the rows of all commits of a run can be read with the schema at its end (spec 10.11)."""

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
    """Make sure that rows written under earlier metadata mean the same under the final metadata.

    Columns may have been added and types widened. A column that was dropped, renamed or given
    another type is refused, and so are other partition columns. So is a column that data files have
    under another name or id, as they do once column mapping is turned off.

    Args:
        earlier: The metadata when the rows were written.
        final: The metadata that they are read by.
        version: The version of the first.
        final_version: The version of the second, for the error.
        may_lack: Whether the final metadata may lack columns, so that the rows come without these:
            it is so for rows that the commit after the first version removed.

    Raises:
        SchemaError: The rows don't mean the same (kind
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
    """Why rows written under earlier metadata don't mean the same under other metadata.

    Both columns must have one name, and one place in data files: what the first metadata wrote a
    column as is what the second looks for. This also holds where column mapping was turned on or
    off, or a column was dropped and made anew.

    Returns:
        The column and the reason, as `the column x was dropped`; None if they do.
    """
    before, after = TableMetadata.of(earlier), TableMetadata.of(final)
    is_alike = before.properties.column_mapping_mode == after.properties.column_mapping_mode
    if earlier.schema_string != final.schema_string or not is_alike:
        by_id = after.properties.column_mapping_mode == "id"
        problems = _Comparison(by_id, may_lack).of_structs(before.schema, after.schema, "")
        found = next(problems, None)
        if found is not None:
            return found
    if earlier.partition_columns != final.partition_columns:
        return "", "the partition columns changed"
    return None


@dataclass(frozen=True, slots=True)
class _Comparison:
    """Finds what keeps rows from being read as others: each column, and the reason.

    Attributes:
        by_id: Whether columns are found in data files by their ids.
        may_lack: Whether rows may be read without some of their columns.
    """

    by_id: bool
    may_lack: bool

    def of_structs(
        self, before: StructType, after: StructType, path: str
    ) -> Iterator[tuple[str, str]]:
        """The problems of one struct of columns, and of what is in these."""
        places = {item.physical_name: item for item in after}
        folded = {name.lower(): item for name, item in places.items()}
        for item in before:
            name, place = f"{path}{item.name}", item.physical_name
            same = places.get(place) or folded.get(place.lower())
            if same is None or (self.by_id and not _has_id_of(same, item)):
                namesake = after.find(item.name)
                if namesake is not None or not self.may_lack:
                    yield name, _lost(name, namesake)
            elif same.name.lower() != item.name.lower():
                yield name, f"the column {shown(name)} was renamed to {shown(same.name)}"
            else:
                yield from self._of_types(item.data_type, same.data_type, name)

    def _of_types(self, before: DataType, after: DataType, name: str) -> Iterator[tuple[str, str]]:
        if isinstance(before, StructType) and isinstance(after, StructType):
            yield from self.of_structs(before, after, f"{name}.")
        elif isinstance(before, ArrayType) and isinstance(after, ArrayType):
            yield from self._of_types(before.element_type, after.element_type, f"{name}.element")
        elif isinstance(before, MapType) and isinstance(after, MapType):
            yield from self._of_types(before.key_type, after.key_type, f"{name}.key")
            yield from self._of_types(before.value_type, after.value_type, f"{name}.value")
        elif before not in (after, _VOID) and not is_widening(before, after):
            yield name, f"the type of {shown(name)} changed from {shown(before)} to {shown(after)}"


def _has_id_of(same: StructField, item: StructField) -> bool:
    number = same.metadata.get(COLUMN_ID)
    return number is None or number == item.metadata.get(COLUMN_ID)


def _lost(name: str, namesake: StructField | None) -> str:
    if namesake is None:
        return f"the column {shown(name)} was dropped"
    return (
        f"the column {shown(name)} has another place in data files, as it was dropped and made "
        "anew, or column mapping was turned on or off"
    )
