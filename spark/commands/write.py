"""`write`: the rows of a DataFrame into a table, in one commit (spec 10.1 to 10.6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from optimist.core.commands.replaced_partitions import partitions_predicate
from optimist.core.commands.uncommitted_files import UncommittedFiles
from optimist.core.commands.written_files import WrittenFiles
from optimist.core.data.partition_values import partition_schema
from optimist.core.errors import OptimistError, UsageError
from optimist.core.log.file_table import add_files
from optimist.core.protocol.actions import Action, AddFile, Metadata
from optimist.core.protocol.schema_merge import (
    SchemaAction,
    SchemaDecision,
    SchemaWrite,
    decide_schema,
)
from optimist.core.schema.types import schema_to_json
from optimist.core.table.delta_log import DeltaLog
from optimist.core.transaction.conflicts.operations import Operation
from optimist.core.transaction.optimistic import OptimisticTransaction
from optimist.core.transaction.result import CommitResult
from optimist.spark.commands.checks import RowCheck, row_checks, with_checks
from optimist.spark.commands.data_writer import DataWriter
from optimist.spark.commands.write_options import WriteRequest, conf_txn
from optimist.spark.condition import Condition, resolve_condition
from optimist.spark.delete import Deletion, plan_deletion
from optimist.spark.idempotence import is_replay, progress
from optimist.spark.planes.planes import plane_of
from optimist.spark.planes.sources import TableSource, table_sources
from optimist.spark.rows.row_shape import column_of, shape_rows
from optimist.spark.session.callback_errors import original_errors
from optimist.spark.session.conf import open_log
from optimist.spark.spark_schema import from_spark_schema

__all__ = ["write"]


def write(
    df: DataFrame,
    path: str,
    *,
    mode: str = "error",
    partitionBy: str | Sequence[str] | None = None,
    **options: object,
) -> CommitResult | None:
    """Write the rows of a DataFrame to a Delta table, in one transaction.

    Args:
        df: The rows; its session is used.
        path: The table; a first write makes it.
        mode: `append`, `overwrite`, `error` (also `errorifexists`) or `ignore`.
        partitionBy: The partition columns of a new table; on an existing one it must agree.
        options: Spark's names: `mergeSchema`, `overwriteSchema`, `replaceWhere`,
            `partitionOverwriteMode`, `userMetadata`, `txnAppId` with `txnVersion`,
            `maxRecordsPerFile`, `compression`; and keys that start with `fs.` or `dfs.`.

    Returns:
        The commit, or None where none was made: mode `ignore` and the table exists, a write that
        was played before, or nothing to write.

    Raises:
        DeltaConcurrentModificationException: Another commit does not go together with this one;
            nothing was written.
        CommitOutcomeUnknownError: The store gave no answer; settle it with
            `DeltaLog.resolve_commit`.
        SchemaError: The data does not fit the table, or a row violates a constraint; nothing was
            written.
        UsageError: An unknown option, options that exclude each other, or the table exists already.
    """
    request = WriteRequest.of(mode, partitionBy, options)
    with original_errors():
        log = open_log(df.sparkSession, path, request.filesystem_options)
        return _run(df, log, request)


def _run(df: DataFrame, log: DeltaLog, request: WriteRequest) -> CommitResult | None:
    txn = log.start_transaction()
    if txn.read_version >= 0 and request.mode == "ignore":
        return None
    if txn.read_version >= 0 and request.mode == "error":
        raise UsageError(
            f"There is a table at {log.table_path} already. Nothing was written. Use mode append "
            "or "
            "overwrite to write to it.",
            kind="DELTA_PATH_EXISTS",
            path=log.table_path,
        )
    sources = _own_sources(df, log, txn)
    txn = _from_what_was_read(log, txn, request, sources)
    identity = request.txn or conf_txn(log.options)
    if is_replay(txn, identity):
        return None
    txn.ensure_writable()
    if sources:
        # Rows of the table go into the table: whatever changes it meanwhile is a conflict.
        txn.read_whole_table()
    _apply(log, txn, _decide(df, log, txn, request))
    plane = plane_of(df.sparkSession, log)
    writer = DataWriter(plane, log, txn, request.compression, request.max_records_per_file)
    job = _Write(df, txn, request, writer)
    with UncommittedFiles(log) as pending:
        outcome = job.run(pending)
        actions = (*progress(log, identity), *outcome.actions(log))
        return pending.commit(txn, actions, job.operation(outcome))


def _own_sources(
    df: DataFrame, log: DeltaLog, txn: OptimisticTransaction
) -> tuple[TableSource, ...]:
    """The scans of the very table that is written to."""
    if txn.read_version < 0:
        return ()
    return tuple(
        source
        for source in table_sources(df)
        if source.table_id == txn.metadata.id and _is_at(log, source.path)
    )


def _is_at(log: DeltaLog, path: str) -> bool:
    """Whether a path is the table's; a copy of a table elsewhere has the same id."""
    try:
        return log.store.resolve_path(path) == log.store.resolve_path(log.table_path)
    except OptimistError:
        return False  # another store's


def _from_what_was_read(
    log: DeltaLog,
    txn: OptimisticTransaction,
    request: WriteRequest,
    sources: tuple[TableSource, ...],
) -> OptimisticTransaction:
    """An overwrite computed from the table starts at the version it was computed from.

    Else it would remove rows that were committed between its read and its start, and that it never
    saw. An older version asked for by name is meant: overwriting with it restores it.
    """
    versions = [source.version for source in sources if not source.is_time_travel]
    if not request.is_overwrite or not versions or min(versions) >= txn.read_version:
        return txn
    return log.start_transaction(log.snapshot(version=min(versions)))


def _decide(
    df: DataFrame, log: DeltaLog, txn: OptimisticTransaction, request: WriteRequest
) -> SchemaDecision:
    merge = request.merge_schema
    wanted = SchemaWrite(
        from_spark_schema(df.schema),
        partition_columns=request.partition_by,
        is_overwrite=request.is_overwrite,
        merge_schema=log.options.schema_auto_merge_enabled if merge is None else merge,
        overwrite_schema=request.overwrite_schema,
    )
    snapshot = txn.snapshot
    if txn.read_version < 0:
        return decide_schema(None, (), wanted)
    constraints = snapshot.properties.constraints
    return decide_schema(
        snapshot.schema, snapshot.partition_columns, wanted, constraints=constraints
    )


def _apply(log: DeltaLog, txn: OptimisticTransaction, decision: SchemaDecision) -> None:
    if decision.action is SchemaAction.KEEP:
        return
    text = schema_to_json(decision.schema)
    if decision.action is SchemaAction.CREATE:
        txn.update_metadata_for_new_table(
            Metadata(
                id=log.clock.new_uuid(),
                schema_string=text,
                partition_columns=decision.partition_columns,
                created_time=log.clock.now_ms(),
            )
        )
        return
    changed = replace(
        txn.metadata, schema_string=text, partition_columns=decision.partition_columns
    )
    if decision.action is SchemaAction.OVERWRITE:
        txn.update_metadata_for_table_overwrite(changed)
    else:
        txn.update_metadata(changed)


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What was written and what goes; `deletion` where rows of a file went and others stayed."""

    written: WrittenFiles
    removed: tuple[AddFile, ...] = ()
    deletion: Deletion | None = None

    def actions(self, log: DeltaLog) -> tuple[Action, ...]:
        now_ms = log.clock.now_ms()
        kept = self.deletion.kept_rows.adds if self.deletion else ()
        return (*(add.remove(now_ms) for add in self.removed), *kept, *self.written.adds)

    def metrics(self, *, is_overwrite: bool) -> dict[str, object]:
        kept = self.deletion.kept_rows if self.deletion else WrittenFiles()
        metrics: dict[str, object] = {
            "numFiles": len(self.written.adds) + len(kept.adds),
            "numOutputRows": self.written.num_rows + kept.num_rows,
            "numOutputBytes": self.written.size_bytes + kept.size_bytes,
        }
        if is_overwrite:
            metrics["numRemovedFiles"] = len(self.removed)
            metrics["numRemovedBytes"] = sum(add.size for add in self.removed)
        if self.deletion is not None and self.deletion.num_deleted is not None:
            metrics["numDeletedRows"] = self.deletion.num_deleted
            metrics["numCopiedRows"] = kept.num_rows
            metrics["numAddedChangeFiles"] = 0
        return metrics


@dataclass(frozen=True, slots=True)
class _Write:
    """One write whose transaction knows the table's schema already."""

    df: DataFrame
    txn: OptimisticTransaction
    request: WriteRequest
    writer: DataWriter

    def run(self, pending: UncommittedFiles) -> _Outcome:
        """Write the rows, and find out what they replace."""
        condition = self._replaced_rows()
        written = self.writer.write(self._rows(condition), pending)
        if not self.request.is_overwrite or self.txn.read_version < 0:
            return _Outcome(written)
        if condition is not None:
            deletion = plan_deletion(self.df.sparkSession, self.writer, condition, pending)
            return _Outcome(written, deletion.removed, deletion)
        predicate = None
        if self.request.is_dynamic and self.txn.metadata.partition_columns:
            fields = partition_schema(self.writer.schema, self.txn.metadata.partition_columns)
            predicate = partitions_predicate(written.adds, fields)
        return _Outcome(written, add_files(self.txn.filter_files(predicate)))

    def operation(self, outcome: _Outcome) -> Operation:
        """What the history says."""
        request = self.request
        operation = Operation.write(
            request.operation_mode,
            request.partition_by or (),
            predicate=request.replace_where,
            user_metadata=request.user_metadata,
        )
        flags = {
            "isDynamicPartitionOverwrite": request.is_dynamic,
            "canOverwriteSchema": request.overwrite_schema,
            "canMergeSchema": bool(request.merge_schema),
        }
        shown = {name: True for name, value in flags.items() if value}
        operation = replace(operation, parameters={**operation.parameters, **shown})
        return operation.with_metrics(outcome.metrics(is_overwrite=request.is_overwrite))

    def _rows(self, condition: Condition | None) -> DataFrame:
        """The rows as they are written, with every check on them."""
        schema, metadata = self.writer.schema, self.txn.metadata
        rows = shape_rows(self.df, schema)
        texts = [
            field.name
            for field in partition_schema(schema, metadata.partition_columns)
            if str(field.data_type) == "string"
        ]
        # In a partition an empty string is null, and that before constraints look at it.
        if texts:
            rows = rows.withColumns({n: sf.nullif(column_of(n), sf.lit("")) for n in texts})
        checks = row_checks(schema, metadata.configuration)
        if self.writer.log.options.replace_where_constraint_check_enabled:
            checks += self._replacement_check(condition)
        return with_checks(rows, checks)

    def _replaced_rows(self) -> Condition | None:
        """The condition of `replaceWhere`, resolved against the table."""
        text, snapshot = self.request.replace_where, self.txn.snapshot
        if text is None:
            return None
        is_new = self.txn.read_version < 0
        schema = self.writer.schema if is_new else snapshot.schema
        frame = self.df if is_new else self.writer.plane.scan(snapshot)
        condition = resolve_condition(
            frame, text, schema=schema, partition_columns=self.txn.metadata.partition_columns
        )
        enabled = self.writer.log.options.replace_where_data_columns_enabled
        if not condition.is_partition_only and not enabled:
            raise UsageError(
                f"replaceWhere {text!r} names columns that the table is not partitioned by, and "
                "spark.databricks.delta.replaceWhere.dataColumns.enabled is false. Nothing was "
                "written.",
                kind="DELTA_REPLACE_WHERE_ON_DATA_COLUMNS_DISABLED",
                predicate=text,
            )
        return condition

    def _replacement_check(self, condition: Condition | None) -> tuple[RowCheck, ...]:
        """Rows that `replaceWhere` would not replace next time have no place among the new ones."""
        if condition is None:
            return ()
        names = {path[0] for path in condition.predicate.columns()}
        columns = tuple(name for name in self.writer.schema.names if name in names)
        return (
            RowCheck(
                "DELTA_REPLACE_WHERE_MISMATCH",
                "replaceWhere",
                condition.text,
                columns,
                condition.column,
            ),
        )
