"""The schema of a table after a write from Spark: the table's, a wider one, or the rows'."""

from __future__ import annotations

from pyspark.sql import DataFrame

from optimist.core.commands.written_schema import NewTable, adopt_schema
from optimist.core.protocol.schema_merge import SchemaWrite
from optimist.core.transaction.optimistic import OptimisticTransaction
from optimist.spark.commands.writing.write_options import WriteRequest
from optimist.spark.spark_schema import from_spark_schema

__all__ = ["adopt_schema_of"]


def adopt_schema_of(df: DataFrame, txn: OptimisticTransaction, request: WriteRequest) -> None:
    """Set the metadata with which the rows can be written, or create it for a new table.

    Raises:
        SchemaError: The rows do not fit the table, and the request does not let it change.
    """
    merge = request.merge_schema
    wanted = SchemaWrite(
        from_spark_schema(df.schema),
        partition_columns=request.partition_by,
        is_overwrite=request.is_overwrite,
        merge_schema=txn.table.options.schema_auto_merge_enabled if merge is None else merge,
        overwrite_schema=request.replaces_schema,
        data_change=not request.is_rearrangement,
    )
    adopt_schema(txn, wanted, NewTable(request.properties))
