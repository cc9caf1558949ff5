"""`write`: put the rows of a DataFrame into a table, in one commit (spec 10.1 to 10.6)."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import DataFrame

from optimist.core.commands.command import Changes, run_command
from optimist.core.commands.create.create import table_parameters
from optimist.core.commands.removed_files import RemovedFiles
from optimist.core.commands.replaced_partitions import replaced_files
from optimist.core.commands.row_balance import RowBalance
from optimist.core.commands.row_writes import (
    WriteOutcome,
    ensure_may_replace,
    ensure_mode_fits,
    operation_mode,
    shown_flags,
)
from optimist.core.commands.uncommitted_files import UncommittedFiles
from optimist.core.commands.written_files import WrittenFiles
from optimist.core.data.partition_values import partition_schema
from optimist.core.errors import UsageError
from optimist.core.errors.foreign_text import quoted
from optimist.core.plugins.table_path import TablePath, path_text
from optimist.core.predicates import Predicate
from optimist.core.protocol.actions import AddFile, RemoveFile
from optimist.core.snapshot.one_version import table_not_found
from optimist.core.table.delta_log import DeltaLog
from optimist.core.table.table_handle import TableHandle
from optimist.core.transaction.conflicts.operations import Operation
from optimist.core.transaction.optimistic import OptimisticTransaction
from optimist.core.transaction.result import CommitResult
from optimist.spark.commands.checks import RowCheck
from optimist.spark.commands.dml.delete import delete_rows
from optimist.spark.commands.dml.target import TARGET_ALIAS, Target
from optimist.spark.commands.merge.source import repeatable
from optimist.spark.commands.reading.read import open_target
from optimist.spark.commands.writing.data_writer import DataWriter
from optimist.spark.commands.writing.own_sources import own_sources
from optimist.spark.commands.writing.prepared_rows import prepared_rows
from optimist.spark.commands.writing.replaced_rows import rows_to_replace
from optimist.spark.commands.writing.write_options import WriteRequest
from optimist.spark.commands.writing.written_schema import adopt_schema_of
from optimist.spark.conditions.analysis import without_zone_dependence
from optimist.spark.conditions.condition import Condition, resolve_condition
from optimist.spark.planes.planes import plane_of
from optimist.spark.planes.sources import of_fixed_versions
from optimist.spark.rows.changed_rows import INSERTED, kinds_of, with_changes
from optimist.spark.rows.identity_values import missing_identities
from optimist.spark.rows.scanned_table import ScannedTable
from optimist.spark.session.arguments import ensure_frame
from optimist.spark.session.callback_errors import original_errors
from optimist.spark.session.conf import reset_session_version, session_zone_name
from optimist.spark.session.job_scope import described
from optimist.spark.session.unchanged_conf import unchanged_conf

__all__ = ["BegunWrite", "ensure_may_create", "write", "write_in", "write_rows"]


@original_errors()
def write(
    df: DataFrame,
    path: TablePath,
    *,
    mode: str = "error",
    partitionBy: str | Sequence[str] | None = None,
    **options: object,
) -> CommitResult | None:
    """Write the rows of a DataFrame to a Delta table, in one transaction.

    Args:
        df: The rows; its session is used.
        path: The table; a first write creates it.
        mode: `append`, `overwrite`, `error` (also `errorifexists`) or `ignore`.
        partitionBy: The partition columns of a new table; on an existing one it must agree.
        options: Spark's names, in any case: `mergeSchema`, `overwriteSchema`, `replaceWhere`,
            `replaceOn` with `targetAlias`, `replaceUsing`, `partitionOverwriteMode`, `dataChange`,
            `userMetadata`, `txnAppId` with `txnVersion`, `optimizeWrite`, `maxRecordsPerFile`,
            `compression`; keys that start with `fs.` or `dfs.`; and `delta.` for the properties of
            a table that this write creates. An option that is left out falls back to the session's
            conf (docs/options.md).

    Returns:
        The commit, or None without one: the mode is `ignore` and the table exists, the write was
        committed before under the same `txnAppId` and `txnVersion`, or nothing was to be written.

    Raises:
        DeltaConcurrentModificationException: Another commit conflicts with this one; nothing was
            written.
        CommitOutcomeUnknownError: The store did not answer; settle it with
            `DeltaLog.resolve_commit`.
        SchemaError: The data does not fit the table, or a row violates a constraint; nothing was
            written.
        UsageError: An option is unknown, options exclude each other, or the table exists already.
        ArgumentTypeError: `df` is not a DataFrame, or `path` not a path; this is a `TypeError`,
            too.
    """
    ensure_frame(df)
    return write_rows(df, path_text(path), WriteRequest.of(mode, partitionBy, options))


@dataclass(frozen=True, slots=True)
class BegunWrite:
    """A table, and a transaction on it that has begun, so that nobody need look again.

    Attributes:
        log: The table.
        txn: The transaction, at the version that the caller has read.
    """

    log: DeltaLog
    txn: OptimisticTransaction

    @classmethod
    def on(cls, log: DeltaLog) -> BegunWrite:
        """Begin a write to the newest version, at the cost of one listing."""
        return cls(log, log.start_transaction())


def write_rows(
    df: DataFrame,
    path: str,
    request: WriteRequest,
    *,
    read: DataFrame | None = None,
    begun: BegunWrite | None = None,
) -> CommitResult | None:
    """Write by a parsed request, and return and raise as `write` does.

    Args:
        df: The rows.
        path: The table.
        request: The parsed arguments.
        read: The frame that the rows are computed from, if their own plan does not show it.
        begun: The write, if it has begun, to the table at `path`.
    """
    with original_errors():
        if begun is None:
            log, txn = open_target(df.sparkSession, path, request.filesystem_options), None
        else:
            log, txn = begun.log, begun.txn
        result = write_in(log, df, request, read=read, txn=txn)
        # A call with its own transaction version has not used the version in the session's conf.
        if request.txn is None:
            reset_session_version(df.sparkSession, log.options)
        return result


def write_in(
    log: TableHandle,
    df: DataFrame,
    request: WriteRequest,
    *,
    read: DataFrame | None = None,
    txn: OptimisticTransaction | None = None,
) -> CommitResult | None:
    """Write into a handle's table, in a transaction that may have begun (see `write_rows`)."""
    fixed = of_fixed_versions(df)
    with _store_if_read_twice(fixed, request) as rows:
        begun = txn or log.start_transaction()
        return _write_in_transaction(rows, fixed if read is None else read, log, begun, request)


def ensure_may_create(txn: OptimisticTransaction, request: WriteRequest) -> None:
    """Refuse to create a table by a write that needs one: somebody has dropped it meanwhile.

    A catalog that has dropped the table's name would not know the new one, and would not take the
    name again for a place with files.

    Raises:
        TableNotFoundError: There is no table. Nothing was written.
    """
    if request.needs_table and txn.read_version < 0:
        raise table_not_found(txn.table)


def _store_if_read_twice(df: DataFrame, request: WriteRequest) -> AbstractContextManager[DataFrame]:
    """Return the rows, stored if they are read more than once, so that they stay the same."""
    return repeatable(df) if request.replaces_matches else nullcontext(df)


def _write_in_transaction(
    df: DataFrame,
    read: DataFrame,
    log: TableHandle,
    begun: OptimisticTransaction,
    request: WriteRequest,
) -> CommitResult | None:
    """Write rows, which may be stored ones, with `read` as the frame that they come from."""
    if begun.read_version >= 0 and request.mode == "ignore":
        return None
    ensure_may_create(begun, request)
    sources = own_sources(read, log, begun)
    if request.is_rearrangement:
        _ensure_own_rows(log, sources)
    txn = _begin_at_read_version(log, begun, request, sources)

    def work(pending: UncommittedFiles) -> Changes:
        ensure_mode_fits(txn, request.mode)  # a replay comes first: its table exists
        if sources or (request.batch is not None and request.batch.reads_target):
            # The new rows come from the table's rows: any change of the table meanwhile is a
            # conflict.
            txn.read_whole_table()
        adopt_schema_of(df, txn, request)
        plane, limit = plane_of(df.sparkSession, log.table), request.max_records_per_file
        writer = DataWriter(
            plane, txn, request.compression, limit, optimizes=request.optimize_write
        )
        command = _Write(df, request, writer, _replaces_partitions(df, txn, request))
        if request.replace_where is None and not request.replaces_matches:
            return command.run(pending)
        with unchanged_conf(df.sparkSession):
            return command.run(pending)

    with described(df.sparkSession, "WRITE", log.table.table_path):
        return run_command(txn, work, app_txn=request.txn).commit


def _begin_at_read_version(
    log: TableHandle,
    txn: OptimisticTransaction,
    request: WriteRequest,
    sources: tuple[ScannedTable, ...],
) -> OptimisticTransaction:
    """Return a write's transaction, which for an overwrite begins at its rows' version.

    At a newer version, an overwrite computed from the table itself would remove rows that were
    committed after its read, and that it never saw. A version that the user chose does not count:
    the overwrite restores it on purpose. A version that a stream has read does not count either:
    its batches replace all rows.
    """
    if request.batch is not None:
        return txn
    versions = [source.version for source in sources if not source.is_time_travel]
    if not request.is_overwrite or not versions or min(versions) >= txn.read_version:
        return txn
    return log.start_transaction(log.snapshot(version=min(versions)))


def _ensure_own_rows(log: TableHandle, sources: tuple[ScannedTable, ...]) -> None:
    """Refuse to rearrange rows that are not the table's own at its present version."""
    if not sources or any(source.is_time_travel or source.is_assumed for source in sources):
        raise UsageError(
            "With dataChange=false the rows must be read from the table itself, "
            f"{log.table.table_path}, and not from an older version. Nothing was written. Leave "
            "the option out, or read the rows from the table without storing them elsewhere.",
            kind="OPTIMIST_NO_REARRANGEMENT",
            path=log.table.table_path,
        )


def _replaces_partitions(df: DataFrame, txn: OptimisticTransaction, request: WriteRequest) -> bool:
    """Check whether only the written partitions are replaced, never without partitions."""
    if not txn.metadata.partition_columns or not request.replaces_partitions(df.sparkSession):
        return False
    if request.overwrite_schema:
        raise UsageError(
            "The option overwriteSchema replaces the whole table, but the session's "
            "spark.sql.sources.partitionOverwriteMode=dynamic replaces only partitions. Nothing "
            "was written. Leave overwriteSchema out, or give the option "
            "partitionOverwriteMode=static.",
            kind="DELTA_OVERWRITE_SCHEMA_WITH_DYNAMIC_PARTITION_OVERWRITE",
        )
    return True


@dataclass(frozen=True, slots=True)
class _Write:
    """One write whose transaction already has the table's new schema."""

    df: DataFrame
    request: WriteRequest
    writer: DataWriter
    replaces_partitions: bool

    @property
    def txn(self) -> OptimisticTransaction:
        return self.writer.txn

    def run(self, pending: UncommittedFiles) -> Changes:
        """Write the rows, and remove the rows that they replace."""
        condition = self._resolve_replace_condition()
        outcome = self._write_and_remove(condition, pending)
        now_ms = self.txn.table.clock.now_ms()
        operation = self._operation(outcome, condition)
        if self.request.is_rearrangement:
            # As many rows as are removed: this is the only possible check of equal rows.
            same = tuple(
                replace(action, data_change=False)
                for action in outcome.actions(now_ms)
                if isinstance(action, AddFile | RemoveFile)
            )
            return Changes(same, operation, balance=RowBalance.EQUAL)
        # A batch without rows is recorded, too, or else it would come again.
        actions, files = outcome.changes(now_ms)
        must_land = self.request.batch is not None
        return Changes(actions, operation, must_land=must_land, files=files)

    @property
    def target(self) -> Target:
        """The table, under the alias that the condition has for its rows."""
        request, alias = self.request, None
        if request.replaces_matches:
            alias = request.target_alias or TARGET_ALIAS
        return Target(self.df.sparkSession, self.writer, self.txn.table.clock.now_ms(), alias)

    def _write_and_remove(
        self, condition: Condition | None, pending: UncommittedFiles
    ) -> WriteOutcome:
        missing = missing_identities(self.writer.schema, self.df.columns)
        rows = self._prepared_rows(condition, missing)
        if condition is not None and self.txn.read_version >= 0:
            return self._replace(rows, condition, missing, pending)
        written = self.writer.write(rows, pending, identities=missing)
        if not self.request.is_overwrite:
            return WriteOutcome(written)
        if self.txn.read_version < 0:
            self.txn.read_whole_table()  # not a blind append, although nothing was overwritten
            return WriteOutcome(written)
        removed = self._find_replaced_files(written) if self.replaces_partitions else None
        return WriteOutcome(
            written, RemovedFiles(self.txn.filter_files() if removed is None else removed)
        )

    def _find_replaced_files(self, written: WrittenFiles) -> pa.Table:
        """Return the files in the partitions that are written."""
        schema, names = self.writer.schema, self.txn.metadata.partition_columns
        zone = session_zone_name(self.df.sparkSession)

        def readable(predicate: Predicate) -> Predicate:
            return without_zone_dependence(predicate, schema, names, zone)

        fields = partition_schema(schema, names)
        return replaced_files(self.txn, written.adds, fields, zone=zone, readable=readable)

    def _replace(
        self,
        rows: DataFrame,
        condition: Condition,
        missing: tuple[str, ...],
        pending: UncommittedFiles,
    ) -> WriteOutcome:
        """Delete the rows for which the condition is true, and write the new rows.

        If the deleted rows are recorded as changes, the new rows must be recorded, too, because
        readers of changes then read only change files of the commit (spec 10.11).
        """
        deletion = delete_rows(self.target, condition, pending, self.target.stopwatch())
        has_changes = bool(deletion.written.changes)
        if has_changes:
            rows = with_changes(rows, rows.columns, kinds_of(INSERTED))
        written = self.writer.write(rows, pending, has_changes=has_changes, identities=missing)
        return WriteOutcome(written, deletion.removed, deletion)

    def _operation(self, outcome: WriteOutcome, condition: Condition | None) -> Operation:
        """Return the operation, as the history shows it."""
        request = self.request
        if request.batch is not None:
            metrics = outcome.metrics(is_overwrite=request.is_overwrite)
            return request.batch.operation(metrics, request.user_metadata)
        predicate = None
        if condition is not None and not request.replaces_matches:
            predicate = condition.text
        elif isinstance(request.replace_where, str) and not request.is_overwrite:
            predicate = request.replace_where
        if request.saves_managed_table is None or condition is not None:
            operation = Operation.write(
                operation_mode(request.mode),
                request.partition_by or (),
                predicate=predicate,
                user_metadata=request.user_metadata,
            )
        else:
            operation = self._replace_table_operation(is_managed=request.saves_managed_table)
        shown: dict[str, object] = {
            **shown_flags(
                is_dynamic=request.is_dynamic or self.replaces_partitions,
                overwrite_schema=request.overwrite_schema,
                merge_schema=bool(request.merge_schema),
            )
        }
        if operation.name != "WRITE":
            shown["isV1SaveAsTableOverwrite"] = True
        if request.replace_on is not None:
            shown["replaceOnCond"] = request.replace_on
        if request.replace_using is not None:
            shown["replaceUsingCols"] = f"({', '.join(request.replace_using)})"
        operation = replace(operation, parameters={**operation.parameters, **shown})
        return operation.with_metrics(outcome.metrics(is_overwrite=request.is_overwrite))

    def _replace_table_operation(self, *, is_managed: bool) -> Operation:
        """Return the operation of `saveAsTable` over a table, which Delta calls a replacement."""
        domains = self.txn.snapshot.domain_metadata if self.txn.read_version >= 0 else {}
        return Operation(
            "CREATE OR REPLACE TABLE AS SELECT",
            table_parameters(self.txn.metadata, domains, is_managed=is_managed),
            user_metadata=self.request.user_metadata,
        )

    def _prepared_rows(self, condition: Condition | None, missing: tuple[str, ...]) -> DataFrame:
        """Return the rows as they will be written, all of which must satisfy the condition."""
        is_checked = self.txn.table.options.replace_where_constraint_check_enabled
        more = self._replacement_check(condition) if is_checked else ()
        return prepared_rows(self.df, self.writer, missing, more)

    def _resolve_replace_condition(self) -> Condition | None:
        """Return the condition by which rows are replaced, resolved against the table."""
        wanted, snapshot = self.request.replace_where, self.txn.snapshot
        is_new = self.txn.read_version < 0
        if self.request.replaces_matches and not is_new:
            return rows_to_replace(self.target, self.df, self.request)
        if wanted is None or not self.request.is_overwrite:
            return None
        schema = self.writer.schema if is_new else snapshot.schema
        frame = self.df if is_new else self.writer.plane.scan(snapshot)
        condition = resolve_condition(
            frame,
            wanted,
            schema=schema,
            partition_columns=self.txn.metadata.partition_columns,
            began_ms=self.txn.table.clock.now_ms(),
        )
        if self.request.is_rearrangement and not condition.is_partition_only:
            raise UsageError(
                f"The option replaceWhere {quoted(condition.text)} names columns that are not "
                "partition columns, which is not possible with dataChange=false. Nothing was "
                "written. Name only partition columns, or leave dataChange out.",
                kind="DELTA_REPLACE_WHERE_WITH_FILTER_DATA_CHANGE_UNSET",
                predicate=condition.text,
            )
        ensure_may_replace(
            condition.text,
            is_partition_only=condition.is_partition_only,
            argument="The option replaceWhere",
            options=self.txn.table.options,
        )
        return condition

    def _replacement_check(self, condition: Condition | None) -> tuple[RowCheck, ...]:
        """Return the check that new rows match `replaceWhere`.

        Otherwise the same write again would not replace them.
        """
        if condition is None or condition.source is not None:
            return ()
        names = condition.columns
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
