"""Appending an Arrow table in one commit, without Spark and without a JVM (`DeltaLog.append`)."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import unquote

import pyarrow as pa

from optimist.core.commands.command import Changes, run_command
from optimist.core.commands.new_files import new_files
from optimist.core.commands.row_rules import (
    as_stored,
    ensure_rows_can_be_checked,
    ensure_rules_kept,
)
from optimist.core.commands.uncommitted_files import UncommittedFiles
from optimist.core.data.column_shape import arrow_rows
from optimist.core.data.parquet.parquet_writer import FileSpec, TaskFiles
from optimist.core.data.storage.filesystem import filesystem_for, make_durable
from optimist.core.data.table_ref import TableRef
from optimist.core.local.computed_columns import complete_rows
from optimist.core.paths import join
from optimist.core.protocol.actions import AddFile, Metadata
from optimist.core.protocol.schema_merge import (
    SchemaAction,
    SchemaDecision,
    SchemaWrite,
    decide_schema,
)
from optimist.core.protocol.widening import allowed_widening
from optimist.core.schema.arrow_types import from_arrow_schema
from optimist.core.schema.generated_columns import GENERATION_EXPRESSION
from optimist.core.schema.types import schema_to_json
from optimist.core.schema.variants import with_variants
from optimist.core.transaction.conflicts.operations import Operation
from optimist.core.transaction.optimistic import OptimisticTransaction
from optimist.core.transaction.result import CommitResult

__all__ = ["append"]

_COMPLETED = frozenset({GENERATION_EXPRESSION, "CURRENT_DEFAULT"})
"""The keys of columns' metadata whose SQL `complete_rows` evaluates."""


def append(
    txn: OptimisticTransaction,
    data: pa.Table,
    *,
    partition_by: Sequence[str] = (),
    user_metadata: str | None = None,
    app_txn: tuple[str, int] | None = None,
) -> CommitResult | None:
    """Append the rows and commit, see `DeltaLog.append`.

    Args:
        txn: A transaction that has just begun.
        data: The rows.
        partition_by: The partition columns of a new table.
        user_metadata: Text for the history.
        app_txn: Application id and version of a write that may be repeated; None leaves both to
            the options.
    """

    def work(pending: UncommittedFiles) -> Changes:
        rows, given = _rows_to_write(txn, data, partition_by)
        spec = new_files(txn)
        pending.announce()
        files = _write(txn, spec, rows)
        pending.register_files(files)
        txn.advance_identity_columns(given, files)
        operation = _operation(txn, files, rows.num_rows, user_metadata)
        return Changes(files, operation, must_land=True)

    return run_command(txn, work, app_txn=app_txn).commit


def _rows_to_write(
    txn: OptimisticTransaction, data: pa.Table, partition_by: Sequence[str]
) -> tuple[pa.Table, tuple[str, ...]]:
    """Shape and check the rows for the table, and begin the table if it is new.

    Returns:
        The rows, and the identity columns whose numbers were given out to them.
    """
    decision = _decide(txn, data, partition_by)
    if decision.action is SchemaAction.CREATE:
        txn.update_metadata(_new_metadata(txn.table, decision))
    schema = txn.table_metadata.schema
    given_columns = from_arrow_schema(data.schema)
    ensure_rows_can_be_checked(txn.metadata, schema, given_columns, evaluated=_COMPLETED)
    completed, given = complete_rows(arrow_rows(data, schema), schema, data.column_names)
    rows = as_stored(completed, schema, txn.metadata.partition_columns)
    ensure_rules_kept(rows, txn.metadata, schema)
    return rows, given


def _write(txn: OptimisticTransaction, spec: FileSpec, rows: pa.Table) -> tuple[AddFile, ...]:
    """Write the rows to durable files, and leave no file after an error."""
    table = txn.table
    if txn.read_version < 0:
        table.ensure_log_directory()
    writer = TaskFiles(spec, table.clock)
    filesystem, root = filesystem_for(spec.table_path, spec.access)
    try:
        writer.write(rows)
        files = writer.close()
        make_durable(filesystem, root, [join(root, unquote(item.path)) for item in files])
    except BaseException:
        writer.abort()
        raise
    return files


def _operation(
    txn: OptimisticTransaction,
    files: Sequence[AddFile],
    num_rows: int,
    user_metadata: str | None,
) -> Operation:
    metrics = {
        "numFiles": len(files),
        "numOutputRows": num_rows,
        "numOutputBytes": sum(item.size for item in files),
    }
    columns = txn.metadata.partition_columns
    operation = Operation.write("Append", columns, user_metadata=user_metadata)
    return operation.with_metrics(metrics)


def _decide(
    txn: OptimisticTransaction, data: pa.Table, partition_by: Sequence[str]
) -> SchemaDecision:
    exists = txn.read_version >= 0
    table = txn.snapshot.schema if exists else None
    schema = from_arrow_schema(data.schema)
    if table is not None:
        schema = with_variants(schema, table)
    write = SchemaWrite(schema, partition_columns=partition_by, is_plain=True)
    return decide_schema(
        table,
        txn.snapshot.partition_columns if exists else (),
        write,
        may_widen=allowed_widening(txn.metadata, txn.protocol) if exists else None,
    )


def _new_metadata(table: TableRef, decision: SchemaDecision) -> Metadata:
    return Metadata(
        id=table.clock.new_uuid(),
        schema_string=schema_to_json(decision.schema),
        partition_columns=decision.partition_columns,
        created_time=table.clock.now_ms(),
    )
