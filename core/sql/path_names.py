"""`path_in_name`: the path in a table's name, wherever a name is given as text."""

from __future__ import annotations

from optimist.core.errors import UsageError
from optimist.core.sql.reader import Reader
from optimist.core.sql.statements import TableName

__all__ = ["path_in_name"]


def path_in_name(name: str) -> str | None:
    """Return the path in a name such as ``delta.`/path` ``, or None for any other text."""
    if "delta" not in name.lower():
        return None
    reader = Reader(name)
    try:
        table = TableName(reader.path("the name of a table"))
        is_whole = reader.peek().kind == "end"
    except UsageError:
        return None
    return table.path if is_whole else None
