"""The arguments that several commands have, with their help."""

from __future__ import annotations

import csv
from enum import Enum
from typing import Annotated

import typer

from optimist.core.errors import UsageError
from optimist.core.errors.foreign_text import quoted
from optimist.core.values.field_types import LARGEST_LONG

__all__ = [
    "LARGEST",
    "Columns",
    "Destination",
    "Limit",
    "OutputForm",
    "RowFormat",
    "Url",
    "Version",
    "Where",
    "column_names",
]


LARGEST = LARGEST_LONG
"""The largest number of a version or of rows."""


class OutputForm(str, Enum):
    """The form of an answer."""

    TABLE = "table"
    JSON = "json"


class RowFormat(str, Enum):
    """The form of rows."""

    JSONL = "jsonl"
    CSV = "csv"
    PARQUET = "parquet"


Url = Annotated[str, typer.Argument(metavar="URL", help="The table: a path or a URL.")]
Where = Annotated[
    str | None, typer.Option("--where", metavar="SQL", help="Only rows for which this is true.")
]
Columns = Annotated[
    str | None,
    typer.Option("--columns", metavar="A,B", help="The columns wanted, separated by commas."),
]
Version = Annotated[
    int | None,
    typer.Option(
        "--version",
        metavar="N",
        help="A version; the newest one without it.",
        min=0,
        max=LARGEST,
    ),
]
Limit = Annotated[
    int | None,
    typer.Option("--limit", "-n", metavar="N", help="At most so many.", min=0, max=LARGEST),
]
Destination = Annotated[
    str | None,
    typer.Option("--file", metavar="PATH", help="A new file to write to, instead of the output."),
]


def column_names(columns: str | None) -> list[str] | None:
    """Return the names in a list with commas, in which a name may stand in backquotes."""
    if columns is None:
        return None
    try:
        return next(csv.reader([columns], quotechar="`", skipinitialspace=True))
    except csv.Error as error:
        raise UsageError(
            f"The list of columns {quoted(columns)} can't be read: {error}. Nothing was done. "
            "Separate names by commas, and put a name with a comma or a line end in backquotes.",
            kind="OPTIMIST_INVALID_ARGUMENT",
            argument="--columns",
        ) from None
