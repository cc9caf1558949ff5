"""The argument `columns` of `read`: columns of a table, or fields of structs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from optimist.core.errors import ArgumentTypeError, SchemaError, UsageError
from optimist.core.errors.foreign_text import listed, quoted
from optimist.core.predicates.parsing import parse_column_path
from optimist.core.schema.column_paths import named_path
from optimist.core.schema.types import StructType
from optimist.spark.rows import row_shape

__all__ = ["ReadColumns"]

_METADATA = "_metadata"


@dataclass(frozen=True, slots=True)
class ReadColumns:
    """Columns in the order in which the caller named them.

    Attributes:
        paths: The path of each, in the table's spelling.
    """

    paths: tuple[tuple[str, ...], ...]

    @classmethod
    def of(cls, columns: object, schema: StructType) -> ReadColumns:
        """Return the columns that a caller names.

        A name that equals a column's name, ignoring case, means that column. Any other name is read
        as in SQL: ``a.`b c` `` is a field of a struct.

        Args:
            columns: The argument.
            schema: The columns of the table.

        Raises:
            ArgumentTypeError: The argument is not a list of texts.
            UsageError: The list is empty (kind `OPTIMIST_NO_COLUMNS`), or a text is not a name.
            SchemaError: The table has no such column (kind `DELTA_COLUMN_NOT_FOUND`).
        """
        names = _list_of_texts(columns)
        if not names:
            raise UsageError(
                "The argument columns is an empty list. Name at least one column, or leave the "
                "argument out to get all columns.",
                kind="OPTIMIST_NO_COLUMNS",
            )
        return cls(tuple(_find_path(name, schema) for name in names))

    def chosen(self, frame: DataFrame) -> DataFrame:
        """Return these columns of a frame that has them."""
        return frame.select(*map(_column_at, self.paths))


def _list_of_texts(columns: object) -> list[str]:
    listed_columns = list(columns) if isinstance(columns, Sequence) else [columns]
    if isinstance(columns, str) or not all(isinstance(name, str) for name in listed_columns):
        raise ArgumentTypeError(
            "columns must be a list of the names of columns, found to be "
            f"{type(columns)}. Nothing was read.",
            kind="OPTIMIST_INVALID_ARGUMENT_TYPE",
            argument="columns",
        )
    return [str(name) for name in listed_columns]


def _find_path(name: str, schema: StructType) -> tuple[str, ...]:
    own = schema.find(name)
    if own is not None:
        return (own.name,)
    path = parse_column_path(name)
    found = named_path(path, schema)
    if found is None and path[0].lower() == _METADATA and schema.find(_METADATA) is None:
        return (_METADATA, *path[1:])
    if found is None:
        raise SchemaError(
            f"The table has no column {quoted(name)}. Nothing was read. Its columns are: "
            f"{listed(schema.names)}.",
            kind="DELTA_COLUMN_NOT_FOUND",
            column=name,
        )
    return found


def _column_at(path: tuple[str, ...]) -> Column:
    return sf.col(".".join(map(row_shape.quoted, path)))
