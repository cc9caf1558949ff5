"""What a frame that follows its table needs of the version that it is to read."""

from __future__ import annotations

from optimist.core.errors import TableError
from optimist.core.foreign_text import shown
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
    types = {item.name: str(item.data_type) for item in newest.schema}
    changed = [item.name for item in before.schema if types.get(item.name) != str(item.data_type)]
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
