"""Checks before rows are copied into new files, and counts of the rows that files hold."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from optimist.core.commands.clones import ensure_own_rows
from optimist.core.data.table_ref import TableRef
from optimist.core.errors import ProtocolError
from optimist.core.protocol.actions import AddFile
from optimist.core.snapshot import Snapshot

__all__ = ["ensure_rewritable", "num_vectors"]


def ensure_rewritable(
    table: TableRef,
    snapshot: Snapshot,
    files: pa.Table,
    operation: str,
    *,
    records_changes: bool = False,
) -> None:
    """Refuse files that can't be rewritten without loss (spec 6.5, 10.11), or are not the table's.

    Args:
        table: The table.
        snapshot: The version that the rewrite starts from.
        files: The files whose rows are to be copied; rows of `snapshot.files`.
        operation: The name for the message, for example `UPDATE`.
        records_changes: Whether it writes change files where the table has the change data feed on.

    Raises:
        ProtocolError: The table has the change data feed on, and the rewrite does not write what it
            asks for (kind `DELTA_UNSUPPORTED_FEATURES_FOR_WRITE`, field `features`).
        TableError: A file is outside the table (kind `OPTIMIST_REWRITE_OF_OUTSIDE_FILE`).
    """
    ensure_own_rows(table, snapshot, files, operation)
    if snapshot.properties.enable_change_data_feed and not records_changes:
        raise ProtocolError(
            f"The operation {operation} on {snapshot.table_path} must write change files for the "
            "table's feature changeDataFeed, which only Spark does so far. Nothing was written. "
            "Run the command with DeltaTable of optimist.spark.",
            kind="DELTA_UNSUPPORTED_FEATURES_FOR_WRITE",
            features=("changeDataFeed",),
            operation=operation,
        )


def num_vectors(adds: Sequence[AddFile]) -> int:
    """How many of the files have a deletion vector, which is removed with its file (spec 8.3)."""
    return sum(add.deletion_vector is not None for add in adds)
