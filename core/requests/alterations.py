"""The changes of ALTER TABLE as values, which SQL texts, plans of Spark and clients make."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from optimist.core.requests.columns import ColumnChange, NewColumn

__all__ = [
    "AddColumns",
    "AddConstraint",
    "ChangeColumns",
    "ClusterBy",
    "DropColumns",
    "DropConstraint",
    "DropFeature",
    "RenameColumn",
    "ReplaceColumns",
    "SetComment",
    "SetProperties",
    "SyncIdentity",
    "TableAlteration",
    "UnsetProperties",
]

_Path: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SetProperties:
    """`SET TBLPROPERTIES (key = value, ...)`."""

    statement: ClassVar[str] = "ALTER TABLE SET TBLPROPERTIES"
    properties: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class UnsetProperties:
    """`UNSET TBLPROPERTIES [IF EXISTS] (key, ...)`."""

    statement: ClassVar[str] = "ALTER TABLE UNSET TBLPROPERTIES"
    keys: tuple[str, ...]
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class SetComment:
    """`COMMENT ON TABLE t IS text`, where None removes the comment."""

    statement: ClassVar[str] = "COMMENT ON TABLE"
    comment: str | None


@dataclass(frozen=True, slots=True)
class AddColumns:
    """`ADD COLUMNS (column type, ...)`."""

    statement: ClassVar[str] = "ALTER TABLE ADD COLUMNS"
    columns: tuple[NewColumn, ...]


@dataclass(frozen=True, slots=True)
class ReplaceColumns:
    """`REPLACE COLUMNS (column type, ...)`."""

    statement: ClassVar[str] = "ALTER TABLE REPLACE COLUMNS"
    columns: tuple[NewColumn, ...]


@dataclass(frozen=True, slots=True)
class RenameColumn:
    """`RENAME COLUMN column TO name`."""

    statement: ClassVar[str] = "ALTER TABLE RENAME COLUMN"
    column: _Path
    new_name: str


@dataclass(frozen=True, slots=True)
class DropColumns:
    """`DROP COLUMNS [IF EXISTS] (column, ...)`."""

    statement: ClassVar[str] = "ALTER TABLE DROP COLUMNS"
    columns: tuple[_Path, ...]
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class ChangeColumns:
    """`ALTER COLUMN column ..., column ...`."""

    statement: ClassVar[str] = "ALTER TABLE ALTER COLUMN"
    changes: tuple[ColumnChange, ...]


@dataclass(frozen=True, slots=True)
class AddConstraint:
    """`ADD CONSTRAINT name CHECK (condition)`, with the condition as SQL."""

    statement: ClassVar[str] = "ALTER TABLE ADD CONSTRAINT"
    name: str
    condition: str


@dataclass(frozen=True, slots=True)
class DropConstraint:
    """`DROP CONSTRAINT [IF EXISTS] name`."""

    statement: ClassVar[str] = "ALTER TABLE DROP CONSTRAINT"
    name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropFeature:
    """`DROP FEATURE feature [TRUNCATE HISTORY]`."""

    statement: ClassVar[str] = "ALTER TABLE DROP FEATURE"
    feature: str
    truncates_history: bool = False


@dataclass(frozen=True, slots=True)
class ClusterBy:
    """`CLUSTER BY (columns)`, or without columns `CLUSTER BY NONE`."""

    statement: ClassVar[str] = "ALTER TABLE CLUSTER BY"
    columns: tuple[_Path, ...] = ()


@dataclass(frozen=True, slots=True)
class SyncIdentity:
    """`ALTER COLUMN column SYNC IDENTITY`."""

    statement: ClassVar[str] = "ALTER TABLE SYNC IDENTITY"
    column: _Path


TableAlteration: TypeAlias = (
    SetProperties
    | UnsetProperties
    | SetComment
    | AddColumns
    | ReplaceColumns
    | RenameColumn
    | DropColumns
    | ChangeColumns
    | AddConstraint
    | DropConstraint
    | DropFeature
    | ClusterBy
    | SyncIdentity
)
