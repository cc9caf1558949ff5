"""The path, or the parts, of a table's name, wherever a name is given as text."""

from __future__ import annotations

from optimist.core.errors import UsageError
from optimist.core.sql.reader import Reader
from optimist.core.sql.statements import TableName

__all__ = ["parts_of_name", "path_in_name"]


def path_in_name(name: str) -> str | None:
    """Return the path in a name such as ``delta.`/path` ``, or None for any other text."""
    return TableName(parts_of_name(name)).path if "delta" in name.lower() else None


def parts_of_name(name: str) -> tuple[str, ...]:
    """Return the parts of a name as SQL writes it, or none if the text is no name."""
    reader = Reader(name)
    try:
        parts = reader.path("the name of a table")
        is_whole = reader.peek().kind == "end"
    except UsageError:
        return ()
    return parts if is_whole else ()
