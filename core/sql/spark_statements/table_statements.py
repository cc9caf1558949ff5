"""Spark's own statements over a table that is named by its path, as frozen values.

Spark's parser reads them in classic sessions; Spark Connect needs them from the text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from optimist.core.sql.statements import CloneMode, ColumnPath, RowChange, SqlText, TableName

__all__ = [
    "AddColumns",
    "AlterTable",
    "ChangeColumns",
    "ColumnAlteration",
    "ColumnDefinition",
    "CreateTable",
    "DropColumns",
    "IdentityRule",
    "Insert",
    "PathStatement",
    "RenameColumn",
    "ReplaceColumns",
    "SetComment",
    "SetProperties",
    "TableAlteration",
    "Truncate",
    "UnsetProperties",
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
class IdentityRule:
    """`GENERATED {ALWAYS | BY DEFAULT} AS IDENTITY (START WITH n INCREMENT BY n)`."""

    start: int = 1
    step: int = 1
    is_always: bool = True


@dataclass(frozen=True, slots=True)
class ColumnDefinition:
    """A column of CREATE TABLE, ADD COLUMNS or REPLACE COLUMNS.

    Attributes:
        path: Its name, or the way to a new field of a struct.
        type_text: Its type in SQL.
        is_nullable: Whether it may hold nulls.
        comment: What it is for.
        default: The value of rows that bring none.
        generated_as: What computes it.
        identity: How its numbers are given out.
        is_first: It comes before all others.
        after: It comes behind the column of that name.
    """

    path: ColumnPath
    type_text: str
    is_nullable: bool = True
    comment: str | None = None
    default: str | None = None
    generated_as: str | None = None
    identity: IdentityRule | None = None
    is_first: bool = False
    after: str | None = None


@dataclass(frozen=True, slots=True)
class CreateTable:
    """`CREATE [OR REPLACE] TABLE [IF NOT EXISTS]`, or `REPLACE TABLE`, with or without AS SELECT.

    Attributes:
        table: The table.
        mode: What is done if it exists.
        columns: Its columns.
        partitioned_by: The names of the partition columns.
        cluster_by: The columns to cluster by.
        properties: Keys and values of TBLPROPERTIES.
        options: Keys and values of OPTIONS.
        comment: What it is for.
        location: The path of LOCATION; None if there is none.
        query: Where its rows come from; None without AS.
    """

    statement: ClassVar[str] = "CREATE TABLE"
    table: TableName
    mode: CloneMode
    columns: tuple[ColumnDefinition, ...] = ()
    partitioned_by: tuple[str, ...] = ()
    cluster_by: tuple[ColumnPath, ...] = ()
    properties: tuple[tuple[str, str], ...] = ()
    options: tuple[tuple[str, str], ...] = ()
    comment: str | None = None
    location: str | None = None
    query: SqlText | None = None


@dataclass(frozen=True, slots=True)
class SetProperties:
    """`SET TBLPROPERTIES (key = value, ...)`."""

    properties: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class UnsetProperties:
    """`UNSET TBLPROPERTIES [IF EXISTS] (key, ...)`."""

    keys: tuple[str, ...]
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class SetComment:
    """`COMMENT ON TABLE t IS text`; None takes the comment away."""

    comment: str | None


@dataclass(frozen=True, slots=True)
class AddColumns:
    """`ADD COLUMNS (column type, ...)`."""

    columns: tuple[ColumnDefinition, ...]


@dataclass(frozen=True, slots=True)
class ReplaceColumns:
    """`REPLACE COLUMNS (column type, ...)`."""

    columns: tuple[ColumnDefinition, ...]


@dataclass(frozen=True, slots=True)
class RenameColumn:
    """`RENAME COLUMN column TO name`."""

    column: ColumnPath
    new_name: str


@dataclass(frozen=True, slots=True)
class DropColumns:
    """`DROP COLUMNS [IF EXISTS] (column, ...)`."""

    columns: tuple[ColumnPath, ...]
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class ColumnAlteration:
    """What ALTER COLUMN says of one column; what is None stays as it is.

    Attributes:
        column: The column.
        type_text: Another type in SQL.
        is_nullable: False for SET NOT NULL, true for DROP NOT NULL.
        comment: Another comment.
        default: The value of rows to come that bring none.
        drops_default: DROP DEFAULT.
        is_first: It comes before all others.
        after: It comes behind the column of that name.
    """

    column: ColumnPath
    type_text: str | None = None
    is_nullable: bool | None = None
    comment: str | None = None
    default: str | None = None
    drops_default: bool = False
    is_first: bool = False
    after: str | None = None


@dataclass(frozen=True, slots=True)
class ChangeColumns:
    """`ALTER COLUMN column ..., column ...`."""

    changes: tuple[ColumnAlteration, ...]


TableAlteration: TypeAlias = (
    SetProperties
    | UnsetProperties
    | SetComment
    | AddColumns
    | ReplaceColumns
    | RenameColumn
    | DropColumns
    | ChangeColumns
)


@dataclass(frozen=True, slots=True)
class AlterTable:
    """ALTER TABLE with one change, or `COMMENT ON TABLE`."""

    statement: ClassVar[str] = "ALTER TABLE"
    table: TableName
    change: TableAlteration


@dataclass(frozen=True, slots=True)
class Truncate:
    """`TRUNCATE TABLE t`."""

    statement: ClassVar[str] = "TRUNCATE TABLE"
    table: TableName


PathStatement: TypeAlias = RowChange | Insert | CreateTable | AlterTable | Truncate
