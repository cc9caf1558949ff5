"""Whether a command records what it changes (spec 10.11), with Spark and without it."""

from __future__ import annotations

from optimist.core.protocol.schema_checks import ensure_no_cdc_columns
from optimist.core.protocol.table_metadata import TableMetadata
from optimist.core.transaction.optimistic import OptimisticTransaction

__all__ = ["records_changes"]


def records_changes(txn: OptimisticTransaction) -> bool:
    """Whether the table has the change data feed on, by the metadata as the transaction has it.

    Raises:
        SchemaError: It has, and a column has a name of the feed.
    """
    ensure_no_cdc_columns(txn.metadata, previous=txn.metadata)
    return TableMetadata.of(txn.metadata).properties.enable_change_data_feed
