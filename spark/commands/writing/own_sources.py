"""A check for commands whose rows are computed from the table that they change."""

from __future__ import annotations

from pyspark.sql import DataFrame

from optimist.core.errors import OptimistError
from optimist.core.plugins.table_place import place_of
from optimist.core.table.table_handle import TableHandle
from optimist.core.transaction.optimistic import OptimisticTransaction
from optimist.spark.planes.sources import table_sources
from optimist.spark.rows.scanned_table import ScannedTable, remember_table

__all__ = ["own_sources"]


def own_sources(
    df: DataFrame, log: TableHandle, txn: OptimisticTransaction
) -> tuple[ScannedTable, ...]:
    """Return the scans in `df` that read the very table that is written to.

    Args:
        df: The rows that a command is given.
        log: The table.
        txn: The command's transaction.

    Raises:
        UsageError: See `TableTransaction.ensure_sources_fit`.
    """
    if txn.read_version < 0:
        return ()
    remember_table(txn.snapshot.table_path, txn.metadata.id)
    found = tuple(
        source
        for source in table_sources(df)
        if source.table_id == txn.metadata.id and _is_at(log, source.path)
    )
    log.ensure_sources_fit([source.version for source in found if not source.is_time_travel])
    return found


def _is_at(log: TableHandle, path: str) -> bool:
    """Check whether a path is the table's, since a copy of the table has the same id."""
    try:
        return place_of(path, log.table.store) == place_of(log.table.table_path, log.table.store)
    except OptimistError:
        return False  # the path belongs to another store
