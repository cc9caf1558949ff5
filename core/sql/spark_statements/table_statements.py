"""Spark's own statements over a table of ours, as frozen values.

Spark's parser reads them in classic sessions; Spark Connect needs them from the text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from optimist.core.requests.table_definition import TableDefinition
from optimist.core.sql.statements import AlterTable, RowChange, SqlText, TableName

__all__ = [
    "CreateTable",
    "Insert",
    "PathStatement",
    "Truncate",
]


@dataclass(frozen=True, slots=True)
class Insert:
    """INSERT INTO, OVERWRITE and REPLACE WHERE.

    Attributes:
        table: The table.
        query: Where the rows come from, common table expressions included.
        is_overwrite: Rows are replaced.
        columns: The columns that the rows are for; None if the statement does not say.
        is_by_name: The rows' own names say which columns they are for.
        partition: The columns of PARTITION, each with its value; None for one that rows bring.
        replace_where: Which rows are replaced; None without REPLACE WHERE.
        evolves_schema: Columns that only the rows have become columns of the table.
    """

    statement: ClassVar[str] = "INSERT"
    table: TableName
    query: SqlText
    is_overwrite: bool = False
    columns: tuple[str, ...] | None = None
    is_by_name: bool = False
    partition: tuple[tuple[str, SqlText | None], ...] = ()
    replace_where: SqlText | None = None
    evolves_schema: bool = False


@dataclass(frozen=True, slots=True)
class CreateTable:
    """`CREATE [OR REPLACE] TABLE [IF NOT EXISTS]`, or `REPLACE TABLE`, with or without AS SELECT.

    Attributes:
        table: The table.
        definition: What it is to be.
        options: Keys and values of OPTIONS.
        location: The path of LOCATION; None if there is none.
        query: Where its rows come from; None without AS.
    """

    statement: ClassVar[str] = "CREATE TABLE"
    table: TableName
    definition: TableDefinition
    options: tuple[tuple[str, str], ...] = ()
    location: str | None = None
    query: SqlText | None = None


@dataclass(frozen=True, slots=True)
class Truncate:
    """`TRUNCATE TABLE t`."""

    statement: ClassVar[str] = "TRUNCATE TABLE"
    table: TableName


PathStatement: TypeAlias = RowChange | Insert | CreateTable | AlterTable | Truncate
