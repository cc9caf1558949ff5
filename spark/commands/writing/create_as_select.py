"""CREATE and REPLACE TABLE ... AS SELECT: a table and its rows in one commit (spec 10.6)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pyspark.sql import DataFrame

from optimist.core.commands.command import Changes, run_command
from optimist.core.commands.create.create import begin_creation
from optimist.core.commands.uncommitted_files import UncommittedFiles
from optimist.core.requests.table_definition import CreateMode, TableDefinition, columns_of
from optimist.core.table.delta_log import DeltaLog
from optimist.core.transaction.optimistic import OptimisticTransaction
from optimist.core.transaction.result import CommitResult
from optimist.spark.commands.writing.data_writer import DataWriter
from optimist.spark.commands.writing.own_sources import own_sources
from optimist.spark.commands.writing.prepared_rows import prepared_rows
from optimist.spark.commands.writing.write_options import WriteRequest
from optimist.spark.planes.planes import plane_of
from optimist.spark.planes.sources import of_fixed_versions
from optimist.spark.rows.identity_values import missing_identities
from optimist.spark.session.callback_errors import original_errors
from optimist.spark.session.conf import reset_session_version
from optimist.spark.spark_schema import from_spark_schema

__all__ = ["create_as_select"]


def create_as_select(
    df: DataFrame,
    log: DeltaLog,
    definition: TableDefinition,
    request: WriteRequest,
    *,
    before_commit: Callable[[], None] = lambda: None,
) -> CommitResult | None:
    """Create or replace a table with rows, in one commit.

    The rows may be read from the table that is replaced.

    Args:
        df: The rows; the table gets their columns, all of them nullable at any depth.
        log: The table.
        definition: The rest of the table's definition.
        request: Options of the write.
        before_commit: Is called once the rows are written. If it raises, nothing is committed.

    Returns:
        The commit, or None if the table exists and is kept, or the write was committed before under
        the same `txnAppId` and `txnVersion`.

    Raises:
        UsageError, TableNotFoundError, SchemaError: See `begin_creation`. Nothing was written.
        DeltaConcurrentModificationException: Another commit came first. Nothing was written.
    """
    columns = columns_of(from_spark_schema(df.schema).as_nullable())
    with original_errors():
        df = of_fixed_versions(df)
        txn = _begin_transaction(df, log)
        creation = begin_creation(txn, replace(definition, columns=columns), as_select=True)
        if creation is None:
            return None

        def work(pending: UncommittedFiles) -> Changes:
            plane, limit = plane_of(df.sparkSession, log.table), request.max_records_per_file
            writer = DataWriter(
                plane, txn, request.compression, limit, optimizes=request.optimize_write
            )
            missing = missing_identities(writer.schema, df.columns)
            written = writer.write(prepared_rows(df, writer, missing), pending, identities=missing)
            actions = (*creation.actions(txn.table.clock.now_ms()), *written.adds)
            operation = creation.operation(request.user_metadata)
            if (
                request.is_overwrite and request.batch is None
            ):  # by saveAsTable, which creates the table first
                shown = {**operation.parameters, "isV1SaveAsTableOverwrite": True}
                operation = replace(operation, parameters=shown)
            metrics = {
                "numFiles": len(written.adds),
                "numOutputRows": written.num_rows,
                "numOutputBytes": written.size_bytes,
            }
            if definition.mode is not CreateMode.CREATE:
                metrics["numRemovedFiles"] = len(creation.removed)
                metrics["numRemovedBytes"] = sum(add.size for add in creation.removed)
            operation = operation.with_metrics(metrics)
            if request.batch is not None:
                operation = request.batch.operation(metrics, request.user_metadata)
            before_commit()
            return Changes(actions, operation, must_land=True)

        result = run_command(txn, work, app_txn=request.txn).commit
        if request.txn is None:
            reset_session_version(df.sparkSession, log.options)
        return result


def _begin_transaction(df: DataFrame, log: DeltaLog) -> OptimisticTransaction:
    """Begin a transaction, at the version that the rows come from if they are the table's.

    At the newest version it would remove rows that were committed since then and that it never
    read.
    """
    begun = log.start_transaction()
    versions = [item.version for item in own_sources(df, log, begun) if not item.is_time_travel]
    if not versions or min(versions) >= begun.read_version:
        return begun
    return log.start_transaction(log.snapshot(version=min(versions)))
