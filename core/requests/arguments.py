"""Arguments of users: rows in more than one form, and lists of names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, TypeAlias, TypeVar

import pyarrow as pa

from optimist.core.errors import ArgumentTypeError, UsageError
from optimist.core.errors.argument_types import ensure_text, wrong_type
from optimist.core.errors.foreign_text import quoted, shown

__all__ = [
    "Rows",
    "arrow_stream",
    "arrow_table",
    "at_least_one",
    "ensure_text",
    "names",
    "several",
    "wrong_type",
]


_Item = TypeVar("_Item")


class _ArrowStream(Protocol):
    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...


Rows: TypeAlias = "pa.Table | pa.RecordBatch | _ArrowStream"
"""Rows in memory or to come: what Arrow has, or gives by its stream interface, as frames of pandas
and Polars do, and results of DuckDB."""


def arrow_table(rows: Rows, argument: str) -> pa.Table:
    """Return the rows as an Arrow table, all of them in memory.

    Args:
        rows: The rows.
        argument: What the caller calls them, for the error.

    Raises:
        ArgumentTypeError: They are no rows.
    """
    return rows if isinstance(rows, pa.Table) else arrow_stream(rows, argument).read_all()


def arrow_stream(rows: Rows, argument: str) -> pa.RecordBatchReader:
    """Return the rows as an Arrow stream, whose batches come as they are asked for.

    Raises:
        ArgumentTypeError: They are no rows.
    """
    if isinstance(rows, pa.RecordBatchReader):
        return rows  # so that an error of its source stays what it is
    if isinstance(rows, pa.Table):
        return rows.to_reader()
    if isinstance(rows, pa.RecordBatch):
        return pa.Table.from_batches([rows]).to_reader()
    if not hasattr(rows, "__arrow_c_stream__"):
        raise ArgumentTypeError(
            f"The argument {argument} is of type {shown(type(rows).__name__)}, which has no "
            "Arrow rows. Nothing was written. Pass a pyarrow.Table, or an object that exports a "
            "stream of Arrow, such as a frame of pandas or Polars.",
            kind="OPTIMIST_INVALID_ARGUMENT_TYPE",
            argument=argument,
        )
    return pa.RecordBatchReader.from_stream(rows)


def several(given: Iterable[_Item], argument: str) -> tuple[_Item, ...]:
    """Return a caller's list as a tuple, and refuse one text in place of a list.

    Raises:
        ArgumentTypeError: It is one text, or no list (kind `OPTIMIST_INVALID_ARGUMENT_TYPE`).
    """
    if isinstance(given, str):
        raise ArgumentTypeError(
            f"The argument {argument} must be a list, not the text {quoted(given)}. Nothing was "
            "done. Put it in a list.",
            kind="OPTIMIST_INVALID_ARGUMENT_TYPE",
            argument=argument,
        )
    if not isinstance(given, Iterable):
        raise wrong_type(argument, given, "a list")
    return tuple(given)


def names(given: Iterable[str] | None, argument: str) -> tuple[str, ...]:
    """Return a caller's list of names as a tuple; None gives no names.

    Raises:
        ArgumentTypeError: It is no list, or holds something else than text (kind
            `OPTIMIST_INVALID_ARGUMENT_TYPE`).
    """
    found = several(() if given is None else given, argument)
    for name in found:
        if not isinstance(name, str):
            raise wrong_type(argument, name, "a list of names")
    return found


def at_least_one(given: Iterable[_Item], argument: str) -> tuple[_Item, ...]:
    """Return a caller's list as a tuple, and refuse an empty one.

    Raises:
        ArgumentTypeError: As `several`.
        UsageError: The list is empty (kind `OPTIMIST_NO_COLUMNS`).
    """
    items = several(given, argument)
    if not items:
        raise UsageError(
            f"The argument {argument} is an empty list. Nothing was written. Name a column.",
            kind="OPTIMIST_NO_COLUMNS",
        )
    return items
