"""DELETE, UPDATE, MERGE and TRUNCATE TABLE over rows that this process reads and writes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyarrow as pa

from optimist.core.commands.reruns import run_until_it_lands
from optimist.core.local.commands import CommandOptions, RowsChanged
from optimist.core.local.commands import delete as delete_rows
from optimist.core.local.commands import merge as merge_rows
from optimist.core.local.commands import update as update_rows
from optimist.core.local.merge.request import LocalClause, LocalMergeRequest
from optimist.core.predicates.text import quote_path
from optimist.core.requests.assigned_paths import ensure_apart
from optimist.core.sql.spark_statements.table_statements import Truncate
from optimist.core.sql.statements import (
    Assignment,
    Delete,
    Merge,
    MergeClause,
    SqlText,
    TableName,
    Update,
)
from optimist.core.statements.aliases import column_without, text_without
from optimist.core.statements.context import OpenTable, StatementContext, begin
from optimist.core.statements.result_rows import NO_ROWS, affected_rows, merged_rows
from optimist.core.transaction.optimistic import OptimisticTransaction

__all__ = ["delete", "merge", "truncate", "update"]

_TARGET, _SOURCE = "merge_target", "merge_source"
"""What expressions may call rows that have neither a name nor an alias."""
_OPTIONS = CommandOptions()


def delete(_: StatementContext, log: OpenTable, statement: Delete) -> pa.Table:
    """Run DELETE."""
    condition = _condition(statement)
    done = _run(log, lambda txn: delete_rows(txn, condition, _OPTIONS))
    return affected_rows(done.num_deleted)


def update(_: StatementContext, log: OpenTable, statement: Update) -> pa.Table:
    """Run UPDATE."""
    alias, condition = _own_alias(statement), _condition(statement)
    values = {
        column: text_without(alias, sql)
        for column, sql in _values(statement.assignments, alias).items()
    }
    done = _run(log, lambda txn: update_rows(txn, values, condition, _OPTIONS))
    return affected_rows(done.num_updated)


def truncate(_: StatementContext, log: OpenTable, statement: Truncate) -> pa.Table:
    """Run TRUNCATE TABLE."""
    del statement
    _run(log, lambda txn: delete_rows(txn, None, _OPTIONS))
    return NO_ROWS


def merge(context: StatementContext, log: OpenTable, statement: Merge) -> pa.Table:
    """Run MERGE with a source of rows in memory, or of a table.

    Raises:
        UsageError: The source is a query (kind `OPTIMIST_NEEDS_SPARK`).
        OptimistError: See `LocalMerge.execute`.
    """
    alias = statement.alias or _last_part(statement.table) or _TARGET
    source_alias = statement.source_alias or _SOURCE
    if isinstance(statement.source, TableName):
        source_alias = statement.source_alias or _last_part(statement.source) or _SOURCE
    clauses = tuple(_clause(clause, alias) for clause in statement.clauses)
    is_own = _reads_itself(context, log, statement.source)

    def run(txn: OptimisticTransaction) -> RowsChanged:
        # The source is read once the transaction has begun: a commit between the two is then among
        # those that the transaction checks.
        if is_own:
            txn.read_whole_table()
        rows = context.rows(statement.source, "MERGE")
        on = statement.condition.sql
        evolves = statement.evolves_schema
        request = LocalMergeRequest(rows, on, alias, source_alias, clauses, evolves)
        return merge_rows(txn, request, _OPTIONS)

    done = _run(log, run)
    return merged_rows(done.num_updated, done.num_deleted or 0, done.num_inserted)


def _reads_itself(context: StatementContext, log: OpenTable, source: TableName | SqlText) -> bool:
    """Return whether the source of a MERGE is the table that it changes."""
    if isinstance(source, SqlText) or context.named_rows(source) is not None:
        return False
    return context.open(source).snapshot().metadata.id == log.snapshot().metadata.id


def _clause(clause: MergeClause, alias: str) -> LocalClause:
    is_insert = clause.action == "insert"

    def condition(given: SqlText) -> str:
        return given.sql

    def values(given: tuple[Assignment, ...]) -> Mapping[str, object]:
        return _values(given, alias, inserts=is_insert)

    return clause.mapped(condition, values)


def _values(
    assignments: tuple[Assignment, ...], alias: str, *, inserts: bool = False
) -> dict[str, str]:
    columns = [column_without(alias, each.column) for each in assignments]
    ensure_apart(columns, inserts=inserts)
    return {
        quote_path(column): each.value.sql
        for column, each in zip(columns, assignments, strict=True)
    }


def _condition(statement: Delete | Update) -> str | None:
    given = statement.condition
    return None if given is None else text_without(_own_alias(statement), given.sql)


def _own_alias(statement: Delete | Update) -> str:
    return statement.alias or _last_part(statement.table) or _TARGET


def _last_part(table: TableName) -> str | None:
    return None if table.path is not None else table.parts[-1]


def _run(log: OpenTable, run: Callable[[OptimisticTransaction], RowsChanged]) -> RowsChanged:
    return run_until_it_lands(begin(log), run)
