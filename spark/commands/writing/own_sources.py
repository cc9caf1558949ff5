"""A check for commands whose rows are computed from the table that they change."""

from __future__ import annotations

from pyspark.sql import DataFrame

from optimist.core.errors import OptimistError
from optimist.core.plugins.table_place import place_of
from optimist.core.table.table_handle import TableHandle
from optimist.core.transaction.optimistic import OptimisticTransaction
from optimist.spark.planes.sources import table_sources
from optimist.spark.rows.scanned_table import ScannedTable, remember_table

__all__ = ["own_sources", "own_versions", "transaction_from"]


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


def transaction_from(log: TableHandle, *reads: DataFrame) -> OptimisticTransaction:
    """Return the transaction, which starts at the oldest version that the rows are read from.

    Otherwise the commits in between would be missed.
    """
    begun = log.start_transaction(log.snapshot())
    read = [version for rows in reads for version in own_versions(log, begun, rows)]
    if read and min(read) < begun.read_version:
        begun = log.start_transaction(log.snapshot(version=min(read)))
    return begun


def own_versions(log: TableHandle, txn: OptimisticTransaction, rows: DataFrame) -> list[int]:
    """Return the versions of the table that the rows are read from.

    One that the caller chose is a constant, and does not count.
    """
    return [item.version for item in own_sources(rows, log, txn) if not item.is_time_travel]


def _is_at(log: TableHandle, path: str) -> bool:
    """Check whether a path is the table's, since a copy of the table has the same id."""
    try:
        return place_of(path, log.table.store) == place_of(log.table.table_path, log.table.store)
    except OptimistError:
        return False  # the path belongs to another store
