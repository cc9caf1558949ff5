"""The arguments that several commands have, with their help."""

from __future__ import annotations

import csv
from enum import Enum
from typing import Annotated

import typer

__all__ = [
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
    typer.Option("--version", metavar="N", help="A version; the newest one without it.", min=0),
]
Limit = Annotated[
    int | None, typer.Option("--limit", "-n", metavar="N", help="At most so many.", min=0)
]
Destination = Annotated[
    str | None,
    typer.Option("--file", metavar="PATH", help="A new file to write to, instead of the output."),
]


def column_names(columns: str | None) -> list[str] | None:
    """Return the names in a list with commas, in which a name may stand in backquotes."""
    if columns is None:
        return None
    return next(csv.reader([columns], quotechar="`", skipinitialspace=True))
