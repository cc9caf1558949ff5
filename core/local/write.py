"""`DeltaLog.write`: put Arrow rows into a table, in one commit (spec 10.1 to 10.6)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from urllib.parse import unquote

import pyarrow as pa

from optimist.core.commands.command import Changes, run_command
from optimist.core.commands.new_files import new_files
from optimist.core.commands.removed_files import RemovedFiles
from optimist.core.commands.replaced_partitions import replaced_files
from optimist.core.commands.row_rewrite import rewrite_rows
from optimist.core.commands.row_writes import (
    WriteOutcome,
    ensure_may_replace,
    ensure_mode_fits,
    operation_mode,
    shown_flags,
)
from optimist.core.commands.stopwatch import Stopwatch
from optimist.core.commands.uncommitted_files import UncommittedFiles
from optimist.core.commands.written_files import WrittenFiles
from optimist.core.commands.written_schema import adopt_schema
from optimist.core.data.change_files import CHANGE_TYPE, INSERT, change_files, change_spec
from optimist.core.data.parquet.stream_files import SplitRows, StreamFiles
from optimist.core.data.partition_values import partition_schema
from optimist.core.data.storage.filesystem import filesystem_for, make_durable
from optimist.core.errors import UsageError
from optimist.core.errors.foreign_text import shown
from optimist.core.local.conditions import LocalCondition
from optimist.core.local.delete import LocalDelete
from optimist.core.local.new_rows import NewRows
from optimist.core.local.row_pieces import row_pieces
from optimist.core.local.row_writer import RowWriter
from optimist.core.local.target import LocalTarget
from optimist.core.local.write_request import LocalWrite
from optimist.core.paths import join
from optimist.core.predicates.functions.wall_clocks import TIMESTAMP, UTC
from optimist.core.protocol.schema_checks import ensure_no_duplicate_columns
from optimist.core.protocol.schema_merge import SchemaWrite
from optimist.core.protocol.widening import allowed_widening
from optimist.core.runtime.progress import ProgressReport
from optimist.core.runtime.read_ahead import read_ahead
from optimist.core.schema.arrow_types import from_arrow_schema, with_signed_integers
from optimist.core.schema.store_assignment import assigned_columns
from optimist.core.schema.type_widening import is_stored_alike
from optimist.core.schema.types import ArrayType, DataType, MapType, StructType
from optimist.core.schema.variants import with_variants
from optimist.core.transaction.conflicts.operations import Operation
from optimist.core.transaction.optimistic import OptimisticTransaction
from optimist.core.transaction.result import CommitResult

__all__ = ["write"]

_PREPARING = 2
"""The pieces of a stream that are prepared at a time."""
_LARGEST_FILE = 1 << 30
"""Where a file ends if the caller names no size: a stream may be longer than any file should be."""


def write(
    txn: OptimisticTransaction, data: pa.RecordBatchReader, request: LocalWrite
) -> CommitResult | None:
    """Write the rows and commit, see `DeltaLog.write`.

    Args:
        txn: A transaction that has just begun.
        data: The rows.
        request: The other arguments.
    """
    if txn.read_version >= 0 and request.mode == "ignore":
        return None

    def work(pending: UncommittedFiles) -> Changes:
        ensure_mode_fits(txn, request.mode)  # a replay comes first: its table exists
        merges = request.merges_schema or txn.table.options.schema_auto_merge_enabled
        given = _columns_of(txn, data.schema, request, merges=merges)
        wanted = SchemaWrite(
            given,
            partition_columns=request.partition_by,
            is_overwrite=request.is_overwrite,
            merge_schema=merges,
            overwrite_schema=request.overwrites_schema,
            is_plain=True,
            keeps_not_null=request.keeps_not_null,
        )
        adopt_schema(txn, wanted, request.new_table)
        return _Write(txn, data, given, request).run(pending)

    return run_command(txn, work, app_txn=request.app_txn).commit


def _columns_of(
    txn: OptimisticTransaction, arrow_schema: pa.Schema, request: LocalWrite, *, merges: bool
) -> StructType:
    """Return the columns of the rows, with the table's types where values are cast to these."""
    given = from_arrow_schema(with_signed_integers(arrow_schema))
    if txn.read_version < 0 or request.overwrites_schema:
        return given
    schema = txn.snapshot.schema
    ensure_no_duplicate_columns(
        given, kind="DELTA_DUPLICATE_COLUMNS_FOUND.DATA", where="the data to write"
    )
    allowed = allowed_widening(txn.metadata, txn.protocol) or is_stored_alike

    def keeps(table: DataType, data: DataType) -> bool:
        return merges and allowed(table, data)

    plain = with_variants(given, schema)
    found = assigned_columns(plain, schema, keeps)
    if txn.zone not in UTC:
        _ensure_no_times_cast(plain, found, txn.zone)
    return found


def _ensure_no_times_cast(given: DataType, stored: DataType, zone: str) -> None:
    """Refuse rows whose times would be cast, which the reader of the rows does in UTC only."""
    if isinstance(given, StructType) and isinstance(stored, StructType):
        for one, other in zip(given, stored, strict=True):
            _ensure_no_times_cast(one.data_type, other.data_type, zone)
    elif isinstance(given, ArrayType) and isinstance(stored, ArrayType):
        _ensure_no_times_cast(given.element_type, stored.element_type, zone)
    elif isinstance(given, MapType) and isinstance(stored, MapType):
        _ensure_no_times_cast(given.key_type, stored.key_type, zone)
        _ensure_no_times_cast(given.value_type, stored.value_type, zone)
    elif given != stored and TIMESTAMP in (given, stored):
        raise UsageError(
            f"The rows have values of the type {shown(given)} for {shown(stored)}, and rows are "
            f"written so only in UTC, not in the time zone {shown(zone)} of the options. Nothing "
            "was written. Cast the values yourself.",
            kind="OPTIMIST_NEEDS_SPARK",
            value=str(stored),
        )


@dataclass(frozen=True, slots=True)
class _Write:
    """One write whose transaction already has the table's new schema."""

    txn: OptimisticTransaction
    data: pa.RecordBatchReader
    given: StructType
    request: LocalWrite

    def run(self, pending: UncommittedFiles) -> Changes:
        """Write the rows, and remove the rows that they replace."""
        condition = self._resolve_condition()
        schema = self.txn.table_metadata.schema
        is_checked = self.txn.table.options.replace_where_constraint_check_enabled
        checked, moment = condition if is_checked else None, self.txn.moment
        rows = NewRows(self.txn.metadata, schema, self.given, checked, moment)
        rows.ensure_possible()
        outcome = self._write_and_remove(rows, condition, pending)
        operation = self._operation(outcome, condition)
        now_ms = self.txn.table.clock.now_ms()
        actions, files = outcome.changes(now_ms)
        return Changes(actions, operation, must_land=True, files=files)

    def _resolve_condition(self) -> LocalCondition | None:
        """Return the condition by which rows are replaced, resolved against the table."""
        wanted, txn = self.request.predicate, self.txn
        if wanted is None:
            return None
        schema = txn.table_metadata.schema if txn.read_version < 0 else txn.snapshot.schema
        condition = LocalCondition.on(
            wanted, schema, txn.metadata.partition_columns, txn.moment, zone=txn.zone
        )
        ensure_may_replace(
            condition.text,
            is_partition_only=condition.is_partition_only,
            argument="The argument predicate",
            options=txn.table.options,
        )
        return condition

    def _write_and_remove(
        self, rows: NewRows, condition: LocalCondition | None, pending: UncommittedFiles
    ) -> WriteOutcome:
        if condition is not None and self.txn.read_version >= 0:
            return self._replace(rows, condition, pending)
        written = self._write_rows(rows, pending)
        if not self.request.is_overwrite:
            return WriteOutcome(written)
        if self.txn.read_version < 0:
            self.txn.read_whole_table()  # not a blind append, although nothing was overwritten
            return WriteOutcome(written)
        return WriteOutcome(written, RemovedFiles(self._find_replaced_files(written)))

    def _find_replaced_files(self, written: WrittenFiles) -> pa.Table:
        """Return all files, or those in the partitions that are written."""
        names = self.txn.metadata.partition_columns
        if not (names and self.request.is_dynamic):
            return self.txn.filter_files()
        fields = partition_schema(self.txn.table_metadata.schema, names)
        return replaced_files(self.txn, written.adds, fields, zone=self.txn.zone)

    def _replace(
        self, rows: NewRows, condition: LocalCondition, pending: UncommittedFiles
    ) -> WriteOutcome:
        """Delete the rows for which the condition is true, and write the new rows.

        If the deleted rows are recorded as changes, the new rows must be recorded, too, because
        readers of changes then read only change files of the commit (spec 10.11).
        """
        clock = self.txn.table.clock
        target = LocalTarget(self.txn, ProgressReport(clock, None, "WRITE"), self.txn.zone)
        matching = LocalDelete(RowWriter(target, pending, is_checked=False), condition)
        candidates = self.txn.filter_files(condition.predicate)
        deletion = rewrite_rows(matching, candidates, pending, Stopwatch(clock))
        written = self._write_rows(rows, pending, has_changes=bool(deletion.written.changes))
        return WriteOutcome(written, deletion.removed, deletion)

    def _write_rows(
        self, rows: NewRows, pending: UncommittedFiles, *, has_changes: bool = False
    ) -> WrittenFiles:
        """Write the rows to durable files, and leave no file after an error."""
        table = self.txn.table
        target = self.request.target_file_size or _LARGEST_FILE
        spec = replace(new_files(self.txn), target_bytes=target)
        pending.announce()
        if self.txn.read_version < 0:
            table.ensure_log_directory()
        files = StreamFiles(spec, table.clock)
        changes = StreamFiles(change_spec(spec), table.clock) if has_changes else None
        try:
            for new, inserts in self._split_pieces(rows, files, changes):
                files.add(new)
                if changes is not None and inserts is not None:
                    changes.add(inserts)
            adds = files.close()
            changed = change_files(changes.close()) if changes is not None else ()
            written = WrittenFiles(adds, files.num_rows, changed)
            filesystem, root = filesystem_for(spec.table_path, spec.access)
            paths = [join(root, unquote(item.path)) for item in written.actions]
            make_durable(filesystem, root, paths)
            pending.register_files(written.actions)
        except BaseException:
            files.abort()
            if changes is not None:
                changes.abort()
            raise
        self.txn.advance_identity_columns(rows.numbered, adds)
        return written

    def _split_pieces(
        self, rows: NewRows, files: StreamFiles, changes: StreamFiles | None
    ) -> Iterator[tuple[SplitRows, SplitRows | None]]:
        """Yield the rows piece by piece, prepared and split by threads, in their order."""

        def prepare(numbered: tuple[int, pa.Table]) -> tuple[SplitRows, SplitRows | None]:
            num_before, piece = numbered
            prepared = rows.prepared(piece, num_before=num_before)
            inserts = None if changes is None else changes.split(_as_inserts(prepared))
            return files.split(prepared), inserts

        pieces = _number_pieces(row_pieces(self.data))
        return read_ahead(prepare, pieces, threads=_PREPARING, ahead=_PREPARING)

    def _operation(self, outcome: WriteOutcome, condition: LocalCondition | None) -> Operation:
        """Return the operation, as the history shows it."""
        request = self.request
        operation = Operation.write(
            operation_mode(request.mode),
            request.partition_by,
            predicate=None if condition is None else condition.text,
            user_metadata=request.user_metadata,
        )
        shown = shown_flags(
            is_dynamic=request.is_dynamic,
            overwrite_schema=request.overwrites_schema,
            merge_schema=request.merges_schema,
        )
        operation = replace(operation, parameters={**operation.parameters, **shown})
        return operation.with_metrics(outcome.metrics(is_overwrite=request.is_overwrite))


def _number_pieces(pieces: Iterable[pa.Table]) -> Iterator[tuple[int, pa.Table]]:
    """Yield each piece with the number of rows before it."""
    num_before = 0
    for piece in pieces:
        yield num_before, piece
        num_before += piece.num_rows


def _as_inserts(rows: pa.Table) -> pa.Table:
    kinds = pa.repeat(pa.scalar(INSERT), rows.num_rows)
    return rows.append_column(CHANGE_TYPE, pa.chunked_array([kinds]))
