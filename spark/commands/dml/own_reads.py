"""A transaction of a command that also reads the table that it changes."""

from __future__ import annotations

from pyspark.sql import DataFrame

from optimist.core.table.table_handle import TableHandle
from optimist.core.transaction.optimistic import OptimisticTransaction
from optimist.spark.commands.writing.own_sources import own_sources

__all__ = ["own_versions", "transaction_from"]


def transaction_from(log: TableHandle, *reads: DataFrame) -> OptimisticTransaction:
    """Begin a transaction, at the oldest version at which rows of the table were read.

    Otherwise conflicts with the commits since then would be missed.
    """
    begun = log.start_transaction(log.snapshot())
    read = [version for rows in reads for version in own_versions(log, begun, rows)]
    if read and min(read) < begun.read_version:
        begun = log.start_transaction(log.snapshot(version=min(read)))
    return begun


def own_versions(log: TableHandle, txn: OptimisticTransaction, rows: DataFrame) -> list[int]:
    """Return the versions of the table that the rows are read from.

    A version that the caller chose is a constant and does not count.
    """
    return [item.version for item in own_sources(rows, log, txn) if not item.is_time_travel]
