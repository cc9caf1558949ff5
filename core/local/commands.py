"""DELETE, UPDATE and MERGE as `DeltaLog` offers them, from the transaction to the commit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pyarrow as pa

from optimist.core.commands.command import Changes, Work, run_command
from optimist.core.commands.idempotence import ensure_app_txn
from optimist.core.commands.merge.clauses import ensure_order
from optimist.core.commands.merge.evolution import evolve_schema
from optimist.core.commands.merge.run import changes_of_merge, merge_rows
from optimist.core.commands.row_changes import (
    changes_of_delete,
    changes_of_update,
)
from optimist.core.commands.row_rewrite import rewrite_rows
from optimist.core.commands.row_rules import ensure_rows_can_be_checked
from optimist.core.commands.stopwatch import Stopwatch
from optimist.core.commands.uncommitted_files import UncommittedFiles
from optimist.core.errors.argument_types import ensure_kind, ensure_optional_text, wrong_type
from optimist.core.errors.html_repr import field_html
from optimist.core.errors.short_repr import short_repr
from optimist.core.local.assignments import LocalAssignments
from optimist.core.local.conditions import LocalCondition
from optimist.core.local.delete import LocalDelete
from optimist.core.local.merge.merge_target import LocalMergeTarget
from optimist.core.local.merge.request import LocalMergeRequest
from optimist.core.local.merge.resolution import LocalResolvedMerge
from optimist.core.local.merge.source_rows import SourceRows
from optimist.core.local.row_writer import RowWriter
from optimist.core.local.target import LocalTarget
from optimist.core.local.update import LocalUpdate
from optimist.core.predicates import Predicate
from optimist.core.protocol.schema_checks import ensure_no_duplicate_columns
from optimist.core.runtime.progress import Progress, ProgressReport
from optimist.core.schema.arrow_types import from_arrow_schema, with_signed_integers
from optimist.core.schema.identity_columns import ensure_none_updated
from optimist.core.schema.types import GENERATION_EXPRESSION
from optimist.core.schema.variants import with_variants
from optimist.core.transaction.optimistic import OptimisticTransaction
from optimist.core.transaction.result import CommitResult, MaybeNone

__all__ = ["CommandOptions", "RowsChanged", "delete", "merge", "update"]

_EVALUATED = frozenset({GENERATION_EXPRESSION})
"""The keys of columns' metadata whose SQL assignments evaluate."""


@dataclass(frozen=True, slots=True)
class RowsChanged:
    """The result of a command.

    Attributes:
        commit: The commit; None if nothing changed and nothing had to be recorded, or for a replay.
        num_deleted: The number of deleted rows; None if whole files were removed whose row counts
            the log does not have.
        num_updated: The number of updated rows.
        num_inserted: The number of inserted rows.
        num_copied: The number of rows that were written again unchanged.
    """

    commit: CommitResult | MaybeNone = None
    num_deleted: int | None = 0
    num_updated: int = 0
    num_inserted: int = 0
    num_copied: int = 0

    __repr__ = short_repr
    _repr_html_ = field_html


@dataclass(frozen=True, slots=True)
class CommandOptions:
    """The options of all commands.

    Attributes:
        user_metadata: A text for the history.
        app_txn: Application id and version of a write that may be repeated; None to take both from
            the options.
        progress: Called after each file.
        retry: Whether to run again after a conflict; None to use the options.
    """

    user_metadata: str | None = None
    app_txn: tuple[str, int] | None = None
    progress: Progress | None = None
    retry: bool | None = None

    def __post_init__(self) -> None:
        ensure_optional_text(self.user_metadata, "user_metadata")
        ensure_app_txn(self.app_txn)
        if self.progress is not None and not callable(self.progress):
            raise wrong_type("progress", self.progress, "a function of one argument")
        if self.retry is not None:
            ensure_kind(self.retry, "retry", bool, "true, false or None")


def delete(
    txn: OptimisticTransaction, predicate: str | Predicate | None, options: CommandOptions
) -> RowsChanged:
    """Delete rows and commit (see `DeltaLog.delete`)."""

    def work(pending: UncommittedFiles) -> Changes:
        watch = Stopwatch(txn.table.clock)
        condition = None if predicate is None else _condition(txn, predicate)
        writer = RowWriter(_local_target(txn, options, "DELETE"), pending, is_checked=False)
        rows = LocalDelete(writer, condition)
        rewrite = rewrite_rows(rows, _find_candidates(txn, condition), pending, watch)
        return changes_of_delete(rewrite, _text_of(condition), txn.table, watch)

    return _run_command(txn, work, options)


def update(
    txn: OptimisticTransaction,
    values: Mapping[str, object],
    predicate: str | Predicate | None,
    options: CommandOptions,
) -> RowsChanged:
    """Update rows and commit (see `DeltaLog.update`)."""

    def work(pending: UncommittedFiles) -> Changes:
        watch, schema = Stopwatch(txn.table.clock), txn.snapshot.schema
        condition = None if predicate is None else _condition(txn, predicate)
        assignments = LocalAssignments.of(values, schema, zone=txn.zone, moment=txn.moment)
        ensure_none_updated(schema, (path[0] for path in assignments.values))
        ensure_rows_can_be_checked(txn.metadata, schema, schema, evaluated=_EVALUATED)
        writer = RowWriter(_local_target(txn, options, "UPDATE"), pending)
        rows = LocalUpdate(writer, condition, assignments)
        rewrite = rewrite_rows(rows, _find_candidates(txn, condition), pending, watch)
        return changes_of_update(rewrite, _text_of(condition), txn.table, watch)

    return _run_command(txn, work, options)


def merge(
    txn: OptimisticTransaction, request: LocalMergeRequest, options: CommandOptions
) -> RowsChanged:
    """Merge rows into the table and commit (see `DeltaLog.merge`)."""

    def work(pending: UncommittedFiles) -> Changes:
        watch, before = Stopwatch(txn.table.clock), txn.snapshot.schema
        source_schema = with_variants(
            from_arrow_schema(with_signed_integers(request.source.schema)), before
        )
        ensure_no_duplicate_columns(
            source_schema, kind="DELTA_DUPLICATE_COLUMNS_FOUND.DATA", where="the source"
        )
        evolves = request.evolves_schema or txn.table.options.schema_auto_merge_enabled
        source = SourceRows.of(request.source, source_schema)
        columns = (*before.names, *source_schema.names)
        fixed = request.at_moment(txn.moment, columns)
        plain = replace(fixed, evolves_schema=evolves)
        ensure_order(plain.clauses)
        if evolves:
            evolve_schema(txn, source_schema, plain.clauses, None, is_plain=True)
        schema = txn.table_metadata.schema
        sides = plain.sides(before, source_schema, txn.zone)
        resolved = LocalResolvedMerge.of(plain, source, sides, schema)
        given = resolved.always_given(schema)
        ensure_rows_can_be_checked(txn.metadata, schema, given, evaluated=_EVALUATED)
        writer = RowWriter(_local_target(txn, options, "MERGE"), pending)
        target = LocalMergeTarget(writer, resolved)
        done = merge_rows(target, resolved.wanted_rows(), pending, watch)
        return changes_of_merge(done, resolved, txn.table, watch)

    return _run_command(txn, work, options)


def _condition(txn: OptimisticTransaction, given: str | Predicate) -> LocalCondition:
    return LocalCondition.of(given, txn.snapshot, txn.moment)


def _local_target(txn: OptimisticTransaction, options: CommandOptions, command: str) -> LocalTarget:
    return LocalTarget(txn, ProgressReport(txn.table.clock, options.progress, command), txn.zone)


def _find_candidates(txn: OptimisticTransaction, condition: LocalCondition | None) -> pa.Table:
    return txn.filter_files(None if condition is None else condition.predicate)


def _text_of(condition: LocalCondition | None) -> str | None:
    return None if condition is None else condition.text


def _run_command(txn: OptimisticTransaction, work: Work, options: CommandOptions) -> RowsChanged:
    """Run a command to its commit, with the caller's text for the history."""

    def work_with_metadata(pending: UncommittedFiles) -> Changes:
        changes = work(pending)
        operation = replace(changes.operation, user_metadata=options.user_metadata)
        return replace(changes, operation=operation)

    done = run_command(txn, work_with_metadata, app_txn=options.app_txn)
    counts = done.counts
    return RowsChanged(
        done.commit,
        num_deleted=counts.all_deleted if counts.is_counted else None,
        num_updated=counts.all_updated,
        num_inserted=counts.inserted,
        num_copied=counts.copied,
    )
