"""`run_statement`: one registry of what runs each kind of statement."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeAlias

import pyarrow as pa

from optimist.core.commands.not_built_yet import not_built_yet
from optimist.core.errors.html_repr import field_html
from optimist.core.sql.spark_statements.shows import Show
from optimist.core.sql.spark_statements.table_statements import CreateTable, Insert, Truncate
from optimist.core.sql.statement_texts import Statement
from optimist.core.sql.statements import (
    AlterTable,
    Analyze,
    Clone,
    ConvertToDelta,
    CreateLike,
    Delete,
    DescribeDetail,
    DescribeHistory,
    Generate,
    Merge,
    Optimize,
    Reorg,
    Restore,
    Update,
    Vacuum,
)
from optimist.core.statements import maintenance, row_changes
from optimist.core.statements.alterations import alter_table
from optimist.core.statements.clones import clone_path
from optimist.core.statements.context import OpenTable, StatementContext
from optimist.core.statements.conversions import convert_path
from optimist.core.statements.creations import create, create_like
from optimist.core.statements.inserts import insert
from optimist.core.statements.missing_tables import told_as_missing
from optimist.core.statements.shows import show

__all__ = ["MAKERS", "RUNNERS", "StatementResult", "run_statement"]

_Run: TypeAlias = Callable[[StatementContext, OpenTable, Any], pa.Table]
_Make: TypeAlias = Callable[[StatementContext, Any], pa.Table]


@dataclass(frozen=True, slots=True)
class StatementResult:
    """The result of a statement.

    Attributes:
        statement: The words of the statement, such as `DESCRIBE HISTORY`.
        rows: Its rows, with the names and types of Delta's columns; no columns where Delta
            answers nothing.
    """

    statement: str
    rows: pa.Table

    _repr_html_ = field_html

    def __repr__(self) -> str:
        return f"StatementResult({self.statement!r}, num_rows={self.rows.num_rows})"


def run_statement(context: StatementContext, statement: Statement) -> StatementResult:
    """Run a statement.

    Args:
        context: How tables are found, and who moves their rows.
        statement: The statement, as `parse_statement` reads it.

    Raises:
        TableNotFoundError: There is no such table.
        UsageError: Nobody knows the table's name (kind `OPTIMIST_CATALOG_NAMES_UNSUPPORTED`), only
            Spark can run the statement (kind `OPTIMIST_NEEDS_SPARK`), or it is not built yet (kind
            `OPTIMIST_NOT_BUILT_YET`).
        OptimistError: See the method of `DeltaLog` for the same command.
    """
    make = MAKERS.get(type(statement))
    if make is not None:
        return StatementResult(statement.statement, make(context, statement))
    run = RUNNERS.get(type(statement))
    if run is None:
        raise not_built_yet(statement.statement)
    log = context.open(statement.table)
    with told_as_missing(statement, context.told_name(statement.table)):
        return StatementResult(statement.statement, run(context, log, statement))


RUNNERS: Mapping[type, _Run] = MappingProxyType(
    {
        AlterTable: alter_table,
        Analyze: maintenance.analyze,
        Delete: row_changes.delete,
        DescribeDetail: maintenance.describe_detail,
        DescribeHistory: maintenance.describe_history,
        Generate: maintenance.generate,
        Insert: insert,
        Merge: row_changes.merge,
        Optimize: maintenance.optimize,
        Reorg: maintenance.reorg,
        Restore: maintenance.restore,
        Show: show,
        Truncate: row_changes.truncate,
        Update: row_changes.update,
        Vacuum: maintenance.vacuum,
    }
)
"""What runs a statement over an existing table."""
MAKERS: Mapping[type, _Make] = MappingProxyType(
    {
        Clone: clone_path,
        ConvertToDelta: convert_path,
        CreateLike: create_like,
        CreateTable: create,
    }
)
"""What runs a statement that makes a table, and finds its place itself."""
