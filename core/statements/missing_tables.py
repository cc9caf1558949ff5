"""Errors for statements over a table that does not exist, in Delta's own words.

Reads say that a path or a table does not exist; statements about a table say that there is none.
Scripts check both.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from optimist.core.errors import TableNotFoundError, UsageError
from optimist.core.errors.foreign_text import shown
from optimist.core.sql.statements import DescribeHistory, TableName

__all__ = [
    "as_missing_name",
    "as_no_delta_table",
    "as_wrong_for",
    "marked",
    "told_as_missing",
]


def told_as_missing(statement: object, table: TableName) -> AbstractContextManager[None]:
    """Wrap a statement so that a missing table is reported as Delta reports it."""
    path = table.path
    if path is None or table.location is not None:
        return as_missing_name(str(table))
    if isinstance(statement, DescribeHistory):
        return as_wrong_for(statement.statement, path)
    return as_no_delta_table(path)


@contextmanager
def as_no_delta_table(name: str) -> Iterator[None]:
    """Wrap what opens a table that a caller names.

    Raises:
        TableNotFoundError: There is no table (kind `DELTA_MISSING_DELTA_TABLE`).
    """
    try:
        yield
    except TableNotFoundError as error:
        raise TableNotFoundError(
            f"{marked(name)} is not a Delta table. {error.args[0]}",
            kind="DELTA_MISSING_DELTA_TABLE",
            **error.fields,
        ) from None


@contextmanager
def as_wrong_for(statement: str, name: str) -> Iterator[None]:
    """Wrap a statement that only Delta tables know.

    Raises:
        UsageError: There is no table (kind `DELTA_TABLE_ONLY_OPERATION`).
    """
    try:
        yield
    except TableNotFoundError as error:
        raise UsageError(
            f"{marked(name)} is not a Delta table. {statement} is only supported for Delta "
            f"tables. {error.args[0]}",
            kind="DELTA_TABLE_ONLY_OPERATION",
            **error.fields,
        ) from None


@contextmanager
def as_missing_name(name: str) -> Iterator[None]:
    """Wrap what opens a table that a catalog names: its files may be gone.

    Raises:
        TableNotFoundError: There is no table (kind `DELTA_TABLE_NOT_FOUND`).
    """
    try:
        yield
    except TableNotFoundError as error:
        raise TableNotFoundError(
            f"Delta table {shown(name)} doesn't exist. {error.args[0]}",
            kind="DELTA_TABLE_NOT_FOUND",
            **error.fields,
        ) from None


def marked(name: str) -> str:
    """Return a name as errors show it, in back-ticks."""
    text = shown(name)
    return text if text.startswith("`") else f"`{text}`"
