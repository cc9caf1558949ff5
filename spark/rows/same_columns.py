"""What a frame that follows its table needs of the version that it is to read."""

from __future__ import annotations

from optimist.core.errors import TableError
from optimist.core.foreign_text import shown
from optimist.core.schema.column_mapping import file_schema
from optimist.core.schema.types import StructType
from optimist.core.snapshot import Snapshot

__all__ = ["ensure_same_columns"]


def ensure_same_columns(name: str, before: Snapshot, newest: Snapshot, *more: str) -> None:
    """Columns may have been added; what a frame has names and types for must be there still.

    Args:
        name: What to call the table.
        before: The version that the frame was made with.
        newest: The version that is to be read.
        more: Other columns of the frame that have changed.

    Raises:
        TableError: A column is not what it was (kind `DELTA_SCHEMA_CHANGE_SINCE_ANALYSIS`).
    """
    known, found = (_stored_types(snapshot.schema) for snapshot in (before, newest))
    changed = [column for column, types in known.items() if found.get(column) != types]
    if changed or more:
        column = (*changed, *more)[0]
        raise TableError(
            f"The column {shown(column)} of {shown(name)} was renamed, dropped or given "
            f"another type after version {before.version}, with which this frame was made. Nothing "
            f"was read. Make the frame anew, or read that version ({before.version}).",
            kind="DELTA_SCHEMA_CHANGE_SINCE_ANALYSIS",
            column=column,
            version=before.version,
        )


def _stored_types(schema: StructType) -> dict[str, tuple[str, str]]:
    """For each column its type, and what it is in files: another column may get a name again."""
    stored = zip(schema, file_schema(schema), strict=True)
    return {item.name: (str(item.data_type), f"{own.name}:{own.data_type}") for item, own in stored}
