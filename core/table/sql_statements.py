"""The common part of `DeltaLog.sql` and `run_sql`: parameters, names and paths."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import pyarrow as pa

from optimist.core.errors import UsageError
from optimist.core.errors.argument_types import ensure_mapping, ensure_text
from optimist.core.errors.foreign_text import shown
from optimist.core.predicates.builder import literal
from optimist.core.requests.arguments import Rows, arrow_table, several
from optimist.core.sql.parameters import Parameters
from optimist.core.sql.statement_texts import Statement, parse_statement
from optimist.core.sql.statements import TableName
from optimist.core.statements.context import OpenTable, StatementContext
from optimist.core.statements.run import StatementResult, run_statement

__all__ = ["OWN_NAME", "StatementArguments", "parse_with", "run_over"]

OWN_NAME = "this"
"""What a statement of `DeltaLog.sql` calls the table of the handle."""

StatementArguments: TypeAlias = Mapping[str, object] | Sequence[object]


def parse_with(text: str, args: StatementArguments | None) -> Statement:
    """Parse a statement whose parameters are given as Python values."""
    ensure_text(text, "text")
    if args is None:
        return parse_statement(text)
    if isinstance(args, Mapping):
        named = {name: str(literal(value)) for name, value in args.items()}
        return parse_statement(text, Parameters(named=named))
    values = several(args, "args")
    return parse_statement(text, Parameters(positional=[str(literal(value)) for value in values]))


def run_over(
    statement: Statement,
    open_path: Callable[[str], OpenTable],
    sources: Mapping[str, Rows] | None,
    own_table: OpenTable | None = None,
) -> StatementResult:
    """Run a statement.

    Args:
        statement: The statement.
        open_path: Opens the table at a path.
        sources: Rows by the names that the statement has for them.
        own_table: The table that the statement calls `this`.
    """
    if sources is not None:
        ensure_mapping(sources, "sources", "a dict of names and rows")
    given = {name.lower(): arrow_table(rows, name) for name, rows in (sources or {}).items()}
    return run_statement(_Tables(open_path, given, own_table), statement)


class _Tables(StatementContext):
    """Tables by their paths, and the names that the caller gives."""

    def __init__(
        self,
        open_path: Callable[[str], OpenTable],
        sources: Mapping[str, pa.Table],
        own_table: OpenTable | None,
    ) -> None:
        self._open_path = open_path
        self._sources = sources
        self._own_table = own_table

    def open_path(self, path: str) -> OpenTable:
        return self._open_path(path)

    def told_name(self, name: TableName) -> TableName:
        if self._own_table is not None and _key(name) == OWN_NAME:
            return TableName(("delta", self._own_table.table.table_path))
        return name

    def open_name(self, name: TableName) -> OpenTable:
        if self._own_table is not None and _key(name) == OWN_NAME:
            return self._own_table
        raise UsageError(
            f"The name {shown(str(name))} is not the name of a table that is known here. Nothing "
            "was read or written. Name the table by its path, as delta.`/path`; with DeltaLog.sql, "
            f"call the table of the handle {OWN_NAME}. Names of a catalog need spark.sql.",
            kind="OPTIMIST_CATALOG_NAMES_UNSUPPORTED",
            name=str(name),
        )

    def named_rows(self, name: TableName) -> pa.Table | None:
        return self._sources.get(_key(name) or "")


def _key(name: TableName) -> str | None:
    is_one_word = len(name.parts) == 1 and not name.is_text
    return name.parts[0].lower() if is_one_word else None
