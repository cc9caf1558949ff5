"""The check whether a command records its changes of rows (spec 10.11)."""

from __future__ import annotations

from optimist.core.protocol.schema_checks import ensure_no_cdc_columns
from optimist.core.protocol.table_metadata import TableMetadata
from optimist.core.transaction.optimistic import OptimisticTransaction

__all__ = ["records_changes"]


def records_changes(txn: OptimisticTransaction) -> bool:
    """Tell whether the table's change data feed is on, by the transaction's metadata.

    Raises:
        SchemaError: The feed is on, and a column has the name of one of the feed's columns.
    """
    ensure_no_cdc_columns(txn.metadata, previous=txn.metadata)
    return TableMetadata.of(txn.metadata).properties.enable_change_data_feed
