"""DELETE, UPDATE and MERGE as `DeltaLog` offers them, from the transaction to the commit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from optimist.core.commands.command import Changes, Stopwatch, run_command
from optimist.core.commands.merge_clauses import ensure_order
from optimist.core.commands.merge_outcome import merge_metrics
from optimist.core.commands.row_changes import changes_of_delete, changes_of_update
from optimist.core.commands.uncommitted_files import UncommittedFiles
from optimist.core.data.column_shape import arrow_rows
from optimist.core.local.append import ensure_rows_can_be_checked
from optimist.core.local.assignments import LocalAssignments
from optimist.core.local.conditions import LocalCondition
from optimist.core.local.delete import delete_rows
from optimist.core.local.merge.clauses import LocalMergeRequest
from optimist.core.local.merge.resolution import ResolvedMerge
from optimist.core.local.merge.run import merge_rows
from optimist.core.local.progress import Progress, ProgressReport
from optimist.core.local.rewriting import RowWriter
from optimist.core.local.target import LocalTarget
from optimist.core.local.update import update_rows
from optimist.core.predicates import Predicate
from optimist.core.protocol.schema_checks import ensure_no_duplicate_columns
from optimist.core.schema.arrow_types import from_arrow_schema
from optimist.core.schema.identity_columns import ensure_none_updated
from optimist.core.transaction.optimistic import OptimisticTransaction
from optimist.core.transaction.result import CommitResult

__all__ = ["CommandOptions", "RowsChanged", "delete", "merge", "update"]


@dataclass(frozen=True, slots=True)
class RowsChanged:
    """What a command has done.

    Attributes:
        commit: The commit; None if nothing changed and nothing had to be recorded, or for a replay.
        num_deleted: How many rows were deleted; None where whole files were removed, and the log
            does not say how many rows they had.
        num_updated: How many rows were updated.
        num_inserted: How many rows were added.
        num_copied: How many rows were written again as they were.
    """

    commit: CommitResult | None = None
    num_deleted: int | None = 0
    num_updated: int = 0
    num_inserted: int = 0
    num_copied: int = 0


@dataclass(frozen=True, slots=True)
class CommandOptions:
    """What all commands take.

    Attributes:
        user_metadata: Text for the history.
        app_txn: Application id and version of a write that may be repeated; None leaves both to
            the options.
        progress: Called after each file.
        retry: Whether to run again after a conflict; None leaves that to the options.
    """

    user_metadata: str | None = None
    app_txn: tuple[str, int] | None = None
    progress: Progress | None = None
    retry: bool | None = None


def delete(
    txn: OptimisticTransaction, predicate: str | Predicate | None, options: CommandOptions
) -> RowsChanged:
    """Delete rows and commit; see `DeltaLog.delete`."""
    done = RowsChanged()

    def work(pending: UncommittedFiles) -> Changes:
        nonlocal done
        watch = Stopwatch(txn.table.clock)
        target = LocalTarget(txn, ProgressReport(txn.table.clock, options.progress, "DELETE"))
        condition = None if predicate is None else LocalCondition.of(predicate, txn.snapshot)
        rewrite = delete_rows(RowWriter(target, pending, is_checked=False), condition)
        done = RowsChanged(
            num_deleted=rewrite.num_matching_rows, num_copied=rewrite.written.num_rows
        )
        text = None if condition is None else condition.text
        return _noted(changes_of_delete(rewrite, text, txn.table, watch), options)

    commit = run_command(txn, work, app_txn=options.app_txn)
    return replace(done, commit=commit)


def update(
    txn: OptimisticTransaction,
    values: Mapping[str, object],
    predicate: str | Predicate | None,
    options: CommandOptions,
) -> RowsChanged:
    """Update rows and commit; see `DeltaLog.update`."""
    done = RowsChanged()

    def work(pending: UncommittedFiles) -> Changes:
        nonlocal done
        watch = Stopwatch(txn.table.clock)
        target = LocalTarget(txn, ProgressReport(txn.table.clock, options.progress, "UPDATE"))
        condition = None if predicate is None else LocalCondition.of(predicate, txn.snapshot)
        assignments = LocalAssignments.of(values, txn.snapshot.schema)
        schema = txn.snapshot.schema
        ensure_none_updated(schema, (path[0] for path in assignments.values))
        ensure_rows_can_be_checked(txn.metadata, schema, schema)
        rewrite = update_rows(RowWriter(target, pending), condition, assignments)
        num_written, num_matching = rewrite.written.num_rows, rewrite.num_matching
        num_updated = num_written if num_matching is None else num_matching
        done = RowsChanged(num_updated=num_updated, num_copied=num_written - num_updated)
        text = None if condition is None else condition.text
        return _noted(changes_of_update(rewrite, text, txn.table, watch), options)

    commit = run_command(txn, work, app_txn=options.app_txn)
    return replace(done, commit=commit)


def merge(
    txn: OptimisticTransaction, request: LocalMergeRequest, options: CommandOptions
) -> RowsChanged:
    """Merge rows into the table and commit; see `DeltaLog.merge`."""
    done = RowsChanged()

    def work(pending: UncommittedFiles) -> Changes:
        nonlocal done
        watch, schema = Stopwatch(txn.table.clock), txn.snapshot.schema
        target = LocalTarget(txn, ProgressReport(txn.table.clock, options.progress, "MERGE"))
        source_schema = from_arrow_schema(request.source.schema)
        ensure_no_duplicate_columns(
            source_schema, kind="DELTA_DUPLICATE_COLUMNS_FOUND.DATA", where="the source"
        )
        plain = replace(request, source=arrow_rows(request.source, source_schema))
        ensure_order(plain.clauses)
        resolved = ResolvedMerge.of(plain, schema, source_schema)
        ensure_rows_can_be_checked(txn.metadata, schema, resolved.always_given(schema))
        rewrite, rows = merge_rows(RowWriter(target, pending), resolved)
        done = RowsChanged(
            num_deleted=rows.all_deleted,
            num_updated=rows.all_updated,
            num_inserted=rows.inserted,
            num_copied=rows.copied,
        )
        metrics = merge_metrics(
            rows, rewrite, num_source_rows=plain.source.num_rows, elapsed_ms=watch.total_ms()
        )
        changes = Changes(
            rewrite.actions(txn.table.clock.now_ms()),
            resolved.operation(resolved.on).with_metrics(metrics),
            balance=resolved.balance,
        )
        return _noted(changes, options)

    commit = run_command(txn, work, app_txn=options.app_txn)
    return replace(done, commit=commit)


def _noted(changes: Changes, options: CommandOptions) -> Changes:
    """The changes with the caller's text for the history."""
    operation = replace(changes.operation, user_metadata=options.user_metadata)
    return replace(changes, operation=operation)
