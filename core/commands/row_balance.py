"""The check that a command kept the rows that it was not to remove (spec 10.15)."""

from __future__ import annotations

import enum
from collections.abc import Sequence

from optimist.core.commands.removed_files import num_live_rows_of
from optimist.core.data.statistics.stats_text import num_live_rows_in
from optimist.core.errors import TableError
from optimist.core.log.many_files import ManyFiles
from optimist.core.protocol.actions import Action, AddFile, RemoveFile

__all__ = ["RowBalance", "ensure_balanced"]


class RowBalance(enum.Enum):
    """The number of rows that a command may add, compared with the removed files."""

    ANY = "any number of rows"
    NO_MORE = "at most as many rows"
    EQUAL = "exactly as many rows"


def ensure_balanced(
    actions: Sequence[Action],
    balance: RowBalance,
    operation: str,
    files: ManyFiles | None = None,
) -> None:
    """Refuse a commit that would double rows, or lose rows that it must keep.

    Live rows are counted by statistics. If a file has no row count, nothing is refused.

    Args:
        actions: The changes.
        balance: What is allowed.
        operation: For the message.
        files: Removed files that are not among the actions.

    Raises:
        TableError: The numbers do not match (kind `DELTA_NUM_RECORDS_MISMATCH`, fields `added` and
            `removed`).
    """
    if balance is RowBalance.ANY:
        return
    added = num_live_rows_in([item for item in actions if isinstance(item, AddFile)])
    removed = num_live_rows_in([item for item in actions if isinstance(item, RemoveFile)])
    if files is not None and removed is not None:
        others = num_live_rows_of(files.removed)
        removed = None if others is None else removed + others
    if added is None or removed is None or added == removed:
        return
    if balance is RowBalance.NO_MORE and added < removed:
        return
    raise TableError(
        f"The operation {operation} would add {added} rows and remove {removed}, but it must add "
        f"{balance.value}. Nothing was committed. Either the statistics of a removed file (its "
        "numRecords) are wrong, or its rows were not read correctly. Compare them with the file; "
        "overwriting the table with its own rows writes new statistics.",
        kind="DELTA_NUM_RECORDS_MISMATCH",
        added=added,
        removed=removed,
    )
