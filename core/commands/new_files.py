"""How a transaction writes new data files, with Spark and without it (spec 10.2)."""

from __future__ import annotations

from dataclasses import replace

from optimist.core.data.parquet.parquet_format import DEFAULT_CODEC
from optimist.core.data.parquet.parquet_writer import FileSpec
from optimist.core.protocol.clustering import clustering_columns
from optimist.core.protocol.gates import supports
from optimist.core.protocol.schema_checks import ensure_no_cdc_columns
from optimist.core.protocol.table_metadata import TableMetadata
from optimist.core.schema.identity_columns import identity_columns
from optimist.core.schema.void_columns import ensure_storable
from optimist.core.transaction.optimistic import OptimisticTransaction

__all__ = ["new_files", "records_changes"]


def new_files(txn: OptimisticTransaction, *, codec: str = DEFAULT_CODEC) -> FileSpec:
    """Return the spec of new files in the table's directory, by the transaction's metadata.

    Args:
        txn: The transaction.
        codec: The codec if the table's `delta.parquet.compression.codec` names none.

    Raises:
        SchemaError: See `ensure_storable`, and `FileSpec.of`.
        ConfigError: See `FileSpec.of`.
    """
    table = txn.table
    schema = txn.table_metadata.schema
    ensure_storable(schema, txn.metadata.partition_columns)
    # By physical names, which the schema of REMOVE COLUMN MAPPING lacks.
    before = txn.snapshot
    clustering = {
        *clustering_columns(before.domain_metadata, schema),
        *clustering_columns(before.domain_metadata, before.schema),
    }
    # Statistics show how far the numbers of identity columns have been used.
    identities = tuple((column.name,) for column in identity_columns(schema))
    spec = FileSpec.of(
        table.table_path,
        txn.metadata,
        table.options,
        codec=codec,
        with_statistics=(*clustering, *identities),
    )
    return replace(
        spec,
        stats_columns=identities or None if spec.stats_columns is None else spec.stats_columns,
        # If files may have deletion vectors, statistics say whether their bounds are tight.
        tight_bounds=True if supports(txn.protocol, "deletionVectors") else None,
        access=table.data_access(),
    )


def records_changes(txn: OptimisticTransaction) -> bool:
    """Check whether the transaction's metadata turns the change data feed on (spec 10.11).

    Raises:
        SchemaError: It does, and a column has a name of the feed.
    """
    ensure_no_cdc_columns(txn.metadata, previous=txn.metadata)
    return TableMetadata.of(txn.metadata).properties.enable_change_data_feed
