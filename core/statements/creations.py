"""CREATE TABLE, REPLACE TABLE and CREATE TABLE ... LIKE at a path."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from optimist.core.commands.create.create import create_table
from optimist.core.commands.create.existing_definition import definition_of
from optimist.core.errors import UsageError
from optimist.core.errors.foreign_text import quoted
from optimist.core.requests.table_definition import CreateMode, TableDefinition
from optimist.core.sql.spark_statements.table_statements import CreateTable
from optimist.core.sql.statements import CreateLike
from optimist.core.statements.context import OpenTable, StatementContext, needs_spark
from optimist.core.statements.result_rows import NO_ROWS

__all__ = ["create", "create_like", "ensure_same_place", "like", "one_place"]


def create(context: StatementContext, statement: CreateTable) -> pa.Table:
    """Run CREATE TABLE or REPLACE TABLE without a query.

    Raises:
        UsageError: The statement has a query or options (kind `OPTIMIST_NEEDS_SPARK`); or see
            `create_table`.
    """
    if statement.query is not None:
        raise needs_spark("CREATE TABLE AS SELECT", "Or create the table, and append its rows.")
    if statement.options:
        raise needs_spark("CREATE TABLE with OPTIONS", "Or give properties with TBLPROPERTIES.")
    path, location = statement.table.path, statement.location
    if path is None and location is None:
        log = context.open_name(statement.table)
    else:
        log = context.open_path(one_place(path, location))
    create_table(log.start_transaction, replace(statement.definition, is_local=True))
    return NO_ROWS


def create_like(context: StatementContext, statement: CreateLike) -> pa.Table:
    """Run CREATE TABLE ... LIKE between paths."""
    ensure_same_place(statement)
    target: OpenTable = context.open(statement.table)
    source = context.open(statement.source).snapshot()
    create_table(target.start_transaction, like(definition_of(source), statement))
    return NO_ROWS


def like(known: TableDefinition, statement: CreateLike) -> TableDefinition:
    """Return the definition of a table that is made like another."""
    mode = CreateMode.CREATE_IF_NOT_EXISTS if statement.if_not_exists else CreateMode.CREATE
    properties = {**known.properties, **dict(statement.properties)}
    return replace(known, mode=mode, properties=properties)


def ensure_same_place(statement: CreateLike) -> None:
    """Refuse a path with another location.

    Raises:
        UsageError: They differ (kind `DELTA_AMBIGUOUS_PATHS_IN_CREATE_TABLE`).
    """
    path, location = statement.table.path, statement.location
    if path is None or location is None or location.rstrip("/") == path.rstrip("/"):
        return
    raise UsageError(
        f"The statement gives two places for the table: the path {path}, and the location "
        f"{location}. Nothing was written. Leave the location out.",
        kind="DELTA_AMBIGUOUS_PATHS_IN_CREATE_TABLE",
        path=path,
        location=location,
    )


def one_place(path: str | None, location: str | None) -> str:
    """Return the one path that a table's name and its LOCATION give.

    Raises:
        UsageError: Both are None, or they differ (kind
            `DELTA_CREATE_TABLE_IDENTIFIER_LOCATION_MISMATCH`).
    """
    given = [place for place in (path, location) if place is not None]
    if not given:
        raise UsageError(
            "Table name or location has to be specified. Nothing was written.",
            kind="OPTIMIST_INVALID_ARGUMENT",
            argument="location",
        )
    if len(set(given)) > 1:
        raise UsageError(
            "Creating path-based Delta table with a different location isn't supported: the "
            f"name says {quoted(path)}, the location {quoted(location)}. Nothing was "
            "written. Give one of them.",
            kind="DELTA_CREATE_TABLE_IDENTIFIER_LOCATION_MISMATCH",
            identifier=path,
            location=location,
        )
    return given[0]
