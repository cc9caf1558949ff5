"""`DeltaLog.append`: an Arrow table in one commit, without Spark and without a JVM."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import unquote

import pyarrow as pa

from optimist.core.data.filesystem import filesystem_for, make_durable
from optimist.core.data.parquet_writer import FileSet, FileSpec, arrow_rows, delete_files
from optimist.core.errors import NOTHING_COMMITTED, UsageError
from optimist.core.paths import join
from optimist.core.protocol.actions import Action, AddFile, Metadata, SetTransaction
from optimist.core.protocol.properties import TableProperties
from optimist.core.protocol.schema_merge import (
    SchemaAction,
    SchemaDecision,
    SchemaWrite,
    decide_schema,
)
from optimist.core.schema.arrow_types import from_arrow_schema
from optimist.core.schema.types import StructType, schema_to_json
from optimist.core.table_schema import table_schema
from optimist.core.transaction.conflicts.operations import Operation
from optimist.core.transaction.optimistic import OptimisticTransaction
from optimist.core.transaction.result import CommitResult

if TYPE_CHECKING:
    from optimist.core.table.delta_log import DeltaLog

__all__ = ["append"]

_NEEDS_EXPRESSIONS = {
    "delta.invariants": "an invariant",
    "delta.generationExpression": "a generation expression",
    "CURRENT_DEFAULT": "a default value",
}


def append(
    log: DeltaLog,
    data: pa.Table,
    *,
    partition_by: Sequence[str] = (),
    user_metadata: str | None = None,
    txn: tuple[str, int] | None = None,
) -> CommitResult | None:
    """See `DeltaLog.append`."""
    transaction = log.start_transaction()
    if txn is not None and transaction.txn_version(txn[0]) >= txn[1]:
        return None
    transaction.ensure_writable()
    decision = _decide(transaction, data, partition_by)
    if decision.action is SchemaAction.CREATE:
        transaction.update_metadata(_new_metadata(log, decision))
    schema = table_schema(transaction.metadata)
    _ensure_rows_can_be_checked(transaction.metadata, schema)
    rows = arrow_rows(data, schema)
    _ensure_not_null(rows, schema)
    access = log.store.data_access(log.table_path)
    if access is not None:
        access.ensure_writable()
    spec = replace(FileSpec.of(log.table_path, transaction.metadata, log.options), access=access)
    if transaction.read_version < 0:
        log.ensure_log_directory()
    files = _write(log, spec, rows)
    actions: list[Action] = [*_progress(log, txn), *files]
    try:
        return _commit(transaction, files, actions, rows.num_rows, user_metadata)
    except NOTHING_COMMITTED:
        delete_files(log.table_path, files, spec.access)
        raise


def _write(log: DeltaLog, spec: FileSpec, rows: pa.Table) -> tuple[AddFile, ...]:
    """The files, on the disk; none is left if one can't be written."""
    writer = FileSet(spec, log.clock)
    filesystem, root = filesystem_for(spec.table_path, spec.access)
    try:
        writer.write(rows)
        files = writer.close()
        make_durable(filesystem, root, [join(root, unquote(item.path)) for item in files])
    except BaseException:
        writer.abort()
        raise
    return files


def _progress(log: DeltaLog, txn: tuple[str, int] | None) -> tuple[SetTransaction, ...]:
    return () if txn is None else (SetTransaction(txn[0], txn[1], log.clock.now_ms()),)


def _commit(
    transaction: OptimisticTransaction,
    files: Sequence[AddFile],
    actions: Sequence[Action],
    num_rows: int,
    user_metadata: str | None,
) -> CommitResult:
    metrics = {
        "numFiles": len(files),
        "numOutputRows": num_rows,
        "numOutputBytes": sum(item.size for item in files),
    }
    columns = transaction.metadata.partition_columns
    operation = Operation.write("Append", columns, user_metadata=user_metadata)
    return transaction.commit(actions, operation.with_metrics(metrics))


def _decide(
    transaction: OptimisticTransaction, data: pa.Table, partition_by: Sequence[str]
) -> SchemaDecision:
    exists = transaction.read_version >= 0
    write = SchemaWrite(from_arrow_schema(data.schema), partition_columns=partition_by)
    return decide_schema(
        transaction.snapshot.schema if exists else None,
        transaction.snapshot.partition_columns if exists else (),
        write,
    )


def _new_metadata(log: DeltaLog, decision: SchemaDecision) -> Metadata:
    return Metadata(
        id=log.clock.new_uuid(),
        schema_string=schema_to_json(decision.schema),
        partition_columns=decision.partition_columns,
        created_time=log.clock.now_ms(),
    )


def _ensure_rows_can_be_checked(metadata: Metadata, schema: StructType) -> None:
    """Rules in SQL need Spark to judge them; without it a table that has some is refused."""
    constraints = TableProperties.from_configuration(metadata.configuration).constraints
    reason = f"the CHECK constraint {next(iter(constraints))}" if constraints else None
    for item in schema:
        for key, what in _NEEDS_EXPRESSIONS.items():
            if key in item.metadata:
                reason = f"{what} on the column {item.name}"
    if reason is not None:
        raise UsageError(
            f"The table has {reason}, which needs Spark to be honoured. Append with "
            "optimist.spark.write; nothing was written.",
            kind="OPTIMIST_NEEDS_SPARK",
        )


def _ensure_not_null(rows: pa.Table, schema: StructType) -> None:
    for item, column in zip(schema, rows.columns, strict=True):
        if not item.nullable and column.null_count:
            raise UsageError(
                f"NOT NULL constraint violated for column: {item.name}. It has "
                f"{column.null_count} null values in the data; nothing was written.",
                kind="DELTA_NOT_NULL_CONSTRAINT_VIOLATED",
                column=item.name,
            )
