"""Writes of rows to a clustered table: `df.write.clusterBy(...)`."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame

from optimist.core.errors import UsageError
from optimist.core.errors.foreign_text import listed
from optimist.core.predicates.parsing import parse_column_path
from optimist.core.protocol.clustering import clustering_columns
from optimist.core.requests.table_definition import TableDefinition
from optimist.spark.commands.reading.read import open_target
from optimist.spark.commands.writing.create_as_select import create_as_select
from optimist.spark.commands.writing.write import BegunWrite, ensure_may_create, write_rows
from optimist.spark.commands.writing.write_options import WriteRequest

__all__ = ["write_clustered"]


def write_clustered(
    rows: DataFrame,
    path: str,
    cluster_by: Sequence[str],
    request: WriteRequest,
    *,
    read: DataFrame | None = None,
    begun: BegunWrite | None = None,
) -> None:
    """Create a clustered table, or write to one that is clustered by the same columns.

    Args:
        rows: The rows.
        path: The table.
        cluster_by: The columns, as SQL spells them; empty for a plain write.
        request: The rest of the write's arguments.
        read: See `write_rows`.
        begun: See `write_rows`.

    Raises:
        UsageError: The table is clustered by other columns (kind
            `DELTA_CLUSTERING_COLUMNS_MISMATCH`).
        TableNotFoundError: See `ensure_may_create`.
    """
    if not cluster_by:
        write_rows(rows, path, request, read=read, begun=begun)
        return
    if begun is None:
        begun = BegunWrite.on(open_target(rows.sparkSession, path, request.filesystem_options))
    ensure_may_create(begun.txn, request)
    log, snapshot = begun.log, begun.txn.snapshot
    if begun.txn.read_version < 0:
        definition = TableDefinition(
            partition_by=request.partition_by or (),
            cluster_by=tuple(cluster_by),
            properties=request.properties,
        )
        create_as_select(rows, log, definition, request)
        return
    found = clustering_columns(snapshot.domain_metadata, snapshot.schema)
    wanted = [parse_column_path(name) for name in cluster_by]
    if [_lower_case(column) for column in found] != [_lower_case(column) for column in wanted]:
        raise UsageError(
            f"The rows are to be clustered by {listed(cluster_by)}, but the table is clustered by "
            f"{listed(['.'.join(column) for column in found]) or 'no column'}. Nothing was "
            "written. Leave clusterBy out, or change the table with ALTER TABLE ... CLUSTER BY.",
            kind="DELTA_CLUSTERING_COLUMNS_MISMATCH",
            path=log.table_path,
        )
    write_rows(rows, path, request, read=read, begun=begun)


def _lower_case(column: Sequence[str]) -> list[str]:
    return [part.lower() for part in column]
