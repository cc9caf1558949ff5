"""Requests of ALTER TABLE for columns, as values (spec 10.9)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import pyarrow as pa

from optimist.core.errors import UsageError
from optimist.core.errors.foreign_text import quoted
from optimist.core.errors.short_repr import short_repr
from optimist.core.predicates.parsing import parse_column_path
from optimist.core.requests.arguments import at_least_one, wrong_type
from optimist.core.requests.table_definition import ColumnLike, column_given, delta_type
from optimist.core.schema.schema_edits import Path
from optimist.core.schema.sql_types import column_of_sql
from optimist.core.schema.types import DataType, StructField, StructType

__all__ = [
    "ColumnChange",
    "ColumnChanges",
    "ColumnName",
    "NewColumn",
    "NewColumns",
    "Position",
    "column_changes",
    "new_columns",
    "path_of",
]

ColumnName: TypeAlias = str | Path
"""A column: SQL text such as ``a.`b c` ``, or the names on the way to it, `("a", "b c")`.

Parts of arrays and maps are called `element`, `key` and `value`.
"""


class TypeOfSpark(Protocol):
    """A type of PySpark, which `DeltaTable.alter` takes in place of SQL."""

    def json(self) -> str:
        """Return the type as JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """A place among the columns, or among the fields of a struct.

    Attributes:
        first: Before all others.
        after: Behind the field of that name; at most one of the two is given. Neither: at the end
            for a new column, where it is for one that is there.
    """

    first: bool = False
    after: str | None = None

    def __post_init__(self) -> None:
        if self.first and self.after is not None:
            raise UsageError(
                f"A column can't be both the first and after {quoted(self.after)}. Nothing was "
                "written. Give one of the two.",
                kind="OPTIMIST_INVALID_ARGUMENT",
                argument="after",
            )

    @property
    def text(self) -> str | None:
        """The position for the history, or None if there is none."""
        if self.first:
            return "FIRST"
        return None if self.after is None else f"AFTER {self.after}"


@dataclass(frozen=True, slots=True)
class NewColumn(Position):
    """A column to be added.

    Attributes:
        column: Where: a name, or the way to a new field of a struct.
        data_type: Its type, as SQL or as a value; for `DeltaTable.alter` also as one of Spark's.
        nullable: Only nullable columns can be added, since old rows have no value.
        comment: What it is for.
        default: SQL of the value of rows to come; refused, as in Delta (spec 10.4).
    """

    column: ColumnName
    data_type: DataType | str | TypeOfSpark
    nullable: bool = True
    comment: str | None = None
    default: str | None = None

    __repr__ = short_repr

    @property
    def path(self) -> Path:
        """The way to it."""
        return path_of(self.column)

    @property
    def field(self) -> StructField:
        """The column as a field of a schema.

        Raises:
            SchemaError: The type is SQL that names none (kind `DELTA_UNSUPPORTED_DATA_TYPES`).
        """
        return _field(self.path[-1], self.data_type, self.nullable, self.comment)


NewColumns: TypeAlias = (
    "StructType | pa.Schema | Mapping[str, DataType | str | pa.DataType]"
    " | Iterable[NewColumn | ColumnLike]"
)
"""Columns to be added, in any of the ways that `new_columns` takes."""


@dataclass(frozen=True, slots=True)
class ColumnChange(Position):
    """The requested changes to one column, where None leaves a part as it is.

    Attributes:
        column: The column, a field of a struct, or a part of an array or a map.
        data_type: Another type, as for `NewColumn`.
        nullable: False for NOT NULL, true to take it off.
        comment: Another comment.
        default: SQL of the value that rows to come have where they bring none.
        drop_default: Take the default off.
    """

    column: ColumnName
    data_type: DataType | str | TypeOfSpark | None = None
    nullable: bool | None = None
    comment: str | None = None
    default: str | None = None
    drop_default: bool = False

    __repr__ = short_repr

    @property
    def path(self) -> Path:
        """The way to the column."""
        return path_of(self.column)

    @property
    def declared(self) -> StructField | None:
        """A field of the other type, or None if the type stays.

        Raises:
            SchemaError: As `NewColumn.field`.
        """
        if self.data_type is None:
            return None
        return _field(self.path[-1], self.data_type, True, None)


_Type: TypeAlias = DataType | str | pa.DataType
ColumnChanges: TypeAlias = "Mapping[str, _Type] | Iterable[ColumnChange | tuple[str, _Type]]"
"""Columns to be changed, in any of the ways that `column_changes` takes."""


def column_changes(given: ColumnChanges, argument: str = "changes") -> tuple[ColumnChange, ...]:
    """Return the columns to be changed that a caller gives in any of several ways.

    Args:
        given: A mapping of names to types, or a list of `ColumnChange` or of such pairs.
        argument: What the caller calls them, for the error.

    Raises:
        ArgumentTypeError: They are none of these (kind `OPTIMIST_INVALID_ARGUMENT_TYPE`).
        UsageError: The list is empty (kind `OPTIMIST_NO_COLUMNS`).
    """
    items = given.items() if isinstance(given, Mapping) else given
    return tuple(_column_change(item, argument) for item in at_least_one(items, argument))


def _column_change(given: object, argument: str) -> ColumnChange:
    if isinstance(given, ColumnChange):
        return given
    if isinstance(given, tuple) and len(given) == 2 and isinstance(given[0], str):
        return ColumnChange(given[0], data_type=delta_type(given[1], argument))
    raise wrong_type(
        argument, given, "a dict of names and new types, or a list of ColumnChange or such pairs"
    )


def new_columns(given: NewColumns, argument: str = "columns") -> tuple[NewColumn, ...]:
    """Return the columns to be added that a caller gives in any of several ways.

    Args:
        given: A schema, a mapping of names to types, or a list of `NewColumn`, `Column`, pairs of
            name and type, or fields of a schema.
        argument: What the caller calls them, for the error.

    Raises:
        ArgumentTypeError: They are none of these (kind `OPTIMIST_INVALID_ARGUMENT_TYPE`).
        UsageError: The list is empty (kind `OPTIMIST_NO_COLUMNS`).
    """
    items = given.items() if isinstance(given, Mapping) else given
    return tuple(_new_column(item, argument) for item in at_least_one(items, argument))


def _new_column(given: NewColumn | ColumnLike, argument: str) -> NewColumn:
    if isinstance(given, NewColumn):
        return given
    if isinstance(given, tuple) and len(given) == 2 and isinstance(given[0], str):
        return NewColumn(given[0], delta_type(given[1], argument))
    column = column_given(given, argument)
    if column.generated_as is not None or column.identity is not None:
        raise UsageError(
            f"The column {quoted(column.name)} of the argument {argument} is to be computed or "
            "numbered, and a table that is there can't get such a column. Nothing was written. "
            "Add it without that.",
            kind="OPTIMIST_INVALID_ARGUMENT",
            argument=argument,
        )
    return NewColumn(
        (column.name,),
        column.data_type,
        nullable=column.nullable,
        comment=column.comment,
        default=column.default,
    )


def path_of(column: ColumnName) -> Path:
    """Return the names on the way to a column.

    Raises:
        UsageError: The text is no column's name (kind `OPTIMIST_INVALID_PREDICATE`), or no name is
            given (kind `OPTIMIST_INVALID_ARGUMENT`).
    """
    if not isinstance(column, str | Sequence) or not all(isinstance(name, str) for name in column):
        raise wrong_type(
            "column", column, "a name, or the names on the way to it, all of them text"
        )
    path = parse_column_path(column) if isinstance(column, str) else tuple(column)
    if not path or not all(path):
        raise UsageError(
            f"{quoted(column)} is not the name of a column. Nothing was written. Give a name.",
            kind="OPTIMIST_INVALID_ARGUMENT",
            argument="column",
        )
    return path


def _field(
    name: str, given: DataType | str | TypeOfSpark, nullable: bool, comment: str | None
) -> StructField:
    plain = column_of_sql(name, given) if isinstance(given, str) else _of_type(name, given)
    metadata = dict(plain.metadata) if comment is None else {**plain.metadata, "comment": comment}
    return StructField(name, plain.data_type, nullable, metadata)


def _of_type(name: str, given: DataType | TypeOfSpark) -> StructField:
    if not isinstance(given, DataType):
        raise wrong_type("data_type", given, "SQL such as 'bigint', or one of Delta's types")
    return StructField(name, given)
