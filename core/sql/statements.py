"""The statements as frozen values, which keep conditions and values as text."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import ClassVar, Literal, NamedTuple, TypeAlias

from optimist.core.requests.alterations import TableAlteration
from optimist.core.requests.merge_clauses import Clause
from optimist.core.requests.table_definition import CreateMode

__all__ = [
    "AlterTable",
    "Analyze",
    "Assignment",
    "Clone",
    "ColumnType",
    "Command",
    "ConvertToDelta",
    "CreateLike",
    "Delete",
    "DescribeDetail",
    "DescribeHistory",
    "Generate",
    "Merge",
    "MergeClause",
    "Optimize",
    "Reorg",
    "Restore",
    "RowChange",
    "Span",
    "SqlText",
    "TableName",
    "TimeTravel",
    "Update",
    "Vacuum",
]

ColumnPath: TypeAlias = tuple[str, ...]


class Span(NamedTuple):
    """A part of the user's text: from `start` up to, and without, `end`."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class SqlText:
    """A condition, a value or a query, which the grammar does not look into.

    Attributes:
        sql: The text, with the values of parameters put in.
        span: Where it stands.
    """

    sql: str
    span: Span = field(default=Span(0, 0), compare=False)


@dataclass(frozen=True, slots=True)
class TableName:
    """The name of a table in a statement.

    Attributes:
        parts: The parts of the name; the path alone if it stands in quotes.
        is_text: It is a path in quotes, as in `VACUUM '/p'`.
        span: Where it stands.
        location: The path that a catalog gives for the name; None without a catalog.
    """

    parts: tuple[str, ...]
    is_text: bool = False
    span: Span = field(default=Span(0, 0), compare=False)
    location: str | None = None

    @property
    def path(self) -> str | None:
        """The path in ``delta.`/p` `` or `'/p'`, or of a name that a catalog knows; else None."""
        if self.location is not None:
            return self.location
        if self.is_text:
            return self.parts[0]
        is_path = len(self.parts) == 2 and ("/" in self.parts[1] or ":" in self.parts[1])
        return self.parts[1] if is_path and self.parts[0].lower() == "delta" else None

    def __str__(self) -> str:
        quoted = ("`" + part.replace("`", "``") + "`" for part in self.parts)
        return f"'{self.parts[0]}'" if self.is_text else ".".join(quoted)


@dataclass(frozen=True, slots=True)
class TimeTravel:
    """An old version of a table: one of the two is given.

    Attributes:
        version: Its number.
        timestamp: A time, as it stands between quotes: the newest version that is not younger.
    """

    version: int | None = None
    timestamp: str | None = None


@dataclass(frozen=True, slots=True)
class ColumnType:
    """A column of CONVERT TO DELTA: its name, its type in SQL, what may be null, its comment."""

    name: str
    type_text: SqlText
    is_nullable: bool = True
    comment: str | None = None


@dataclass(frozen=True, slots=True)
class Analyze:
    """`ANALYZE TABLE t COMPUTE DELTA STATISTICS`, which is Databricks' and not delta-spark's."""

    statement: ClassVar[str] = "ANALYZE TABLE"
    table: TableName


@dataclass(frozen=True, slots=True)
class Optimize:
    """`OPTIMIZE t [FULL] [WHERE p] [ZORDER BY (columns)]`."""

    statement: ClassVar[str] = "OPTIMIZE"
    table: TableName
    is_full: bool = False
    where: SqlText | None = None
    zorder_by: tuple[ColumnPath, ...] = ()


@dataclass(frozen=True, slots=True)
class Vacuum:
    """`VACUUM t [LITE|FULL] [USING INVENTORY ...] [RETAIN n HOURS] [DRY RUN]`.

    Attributes:
        table: The table.
        mode: LITE or FULL; None if the statement does not say.
        inventory: The table, or the query, that lists the files; None without one.
        retain_hours: The hours given; None if there are none.
        is_dry_run: Nothing is to be deleted.
    """

    statement: ClassVar[str] = "VACUUM"
    table: TableName
    mode: Literal["LITE", "FULL"] | None = None
    inventory: TableName | SqlText | None = None
    retain_hours: Decimal | None = None
    is_dry_run: bool = False


@dataclass(frozen=True, slots=True)
class DescribeHistory:
    """`DESCRIBE HISTORY t [LIMIT n]`."""

    statement: ClassVar[str] = "DESCRIBE HISTORY"
    table: TableName
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class DescribeDetail:
    """`DESCRIBE DETAIL t`."""

    statement: ClassVar[str] = "DESCRIBE DETAIL"
    table: TableName


@dataclass(frozen=True, slots=True)
class Generate:
    """`GENERATE mode FOR TABLE t`, with the mode as it is written."""

    statement: ClassVar[str] = "GENERATE"
    mode: str
    table: TableName


@dataclass(frozen=True, slots=True)
class ConvertToDelta:
    """`CONVERT TO DELTA t [NO STATISTICS] [PARTITIONED BY (columns with types)]`."""

    statement: ClassVar[str] = "CONVERT TO DELTA"
    table: TableName
    collects_statistics: bool = True
    partitioned_by: tuple[ColumnType, ...] = ()


@dataclass(frozen=True, slots=True)
class Restore:
    """`RESTORE [TABLE] t TO {VERSION|TIMESTAMP} AS OF x`."""

    statement: ClassVar[str] = "RESTORE"
    table: TableName
    travel: TimeTravel


@dataclass(frozen=True, slots=True)
class AlterTable:
    """ALTER TABLE with one change, or `COMMENT ON TABLE`."""

    table: TableName
    change: TableAlteration

    @property
    def statement(self) -> str:
        """The words of the statement."""
        return self.change.statement


@dataclass(frozen=True, slots=True)
class Reorg:
    """`REORG TABLE t [WHERE p] APPLY (PURGE)`, or APPLY (UPGRADE UNIFORM (...)).

    Attributes:
        table: The table.
        where: Which partitions; None for all.
        uniform_version: The version of Iceberg's compatibility; None for PURGE.
    """

    statement: ClassVar[str] = "REORG TABLE"
    table: TableName
    where: SqlText | None = None
    uniform_version: int | None = None


@dataclass(frozen=True, slots=True)
class Clone:
    """`CREATE [OR REPLACE] TABLE t {SHALLOW|DEEP} CLONE s [AS OF ...] [TBLPROPERTIES] [LOCATION]`.

    Attributes:
        table: The table that is made.
        mode: What is done if it exists.
        source: The table that is cloned.
        is_shallow: The files stay where they are.
        travel: Which version of the source; None for the newest.
        properties: Keys and values, in their order.
        location: The path of the table that is made; None if the statement does not say.
    """

    statement: ClassVar[str] = "CLONE"
    table: TableName
    mode: CreateMode
    source: TableName
    is_shallow: bool
    travel: TimeTravel | None = None
    properties: tuple[tuple[str, str], ...] = ()
    location: str | None = None


@dataclass(frozen=True, slots=True)
class CreateLike:
    """`CREATE TABLE [IF NOT EXISTS] t LIKE s [USING format] [LOCATION path] [TBLPROPERTIES]`.

    Attributes:
        table: The table that is made.
        source: The table that it is made like.
        if_not_exists: A table that is there stays as it is.
        provider: The format; None if the statement does not say.
        location: The path of the table that is made; None if the statement does not say.
        properties: Keys and values, in their order.
    """

    statement: ClassVar[str] = "CREATE TABLE LIKE"
    table: TableName
    source: TableName
    if_not_exists: bool = False
    provider: str | None = None
    location: str | None = None
    properties: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Assignment:
    """`column = value`, where the column may be a field within structs."""

    column: ColumnPath
    value: SqlText


@dataclass(frozen=True, slots=True)
class Delete:
    """`DELETE FROM t [alias] [WHERE condition]`."""

    statement: ClassVar[str] = "DELETE"
    table: TableName
    alias: str | None = None
    condition: SqlText | None = None


@dataclass(frozen=True, slots=True)
class Update:
    """`UPDATE t [alias] SET column = value, ... [WHERE condition]`."""

    statement: ClassVar[str] = "UPDATE"
    table: TableName
    assignments: tuple[Assignment, ...]
    alias: str | None = None
    condition: SqlText | None = None


MergeClause: TypeAlias = Clause[SqlText, tuple[Assignment, ...]]
"""One WHEN clause; its values are None for `UPDATE SET *` and `INSERT *`."""


@dataclass(frozen=True, slots=True)
class Merge:
    """`MERGE [WITH SCHEMA EVOLUTION] INTO t [alias] USING s [alias] ON condition WHEN ...`.

    Attributes:
        table: The table.
        source: A table's name, or a query.
        condition: When a row of the table and one of the source match.
        clauses: What is done.
        alias: The table's other name.
        source_alias: The source's.
        evolves_schema: Columns that only the source has become columns of the table.
    """

    statement: ClassVar[str] = "MERGE"
    table: TableName
    source: TableName | SqlText
    condition: SqlText
    clauses: tuple[MergeClause, ...]
    alias: str | None = None
    source_alias: str | None = None
    evolves_schema: bool = False


Command: TypeAlias = (
    Analyze
    | Optimize
    | Vacuum
    | DescribeHistory
    | DescribeDetail
    | Generate
    | ConvertToDelta
    | Restore
    | AlterTable
    | Reorg
    | Clone
    | CreateLike
)
"""What Spark's parser lacks or misreads, or makes something else of."""

RowChange: TypeAlias = Delete | Update | Merge
"""What Spark's parser reads well; Spark Connect needs them from the text."""
