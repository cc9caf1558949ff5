"""The alias behind a table in a query: where it stands, or may stand."""

from __future__ import annotations

from optimist.core.sql.reader import Reader

__all__ = ["SETS", "place_of_alias", "read_alias"]

SETS = frozenset(("UNION", "INTERSECT", "EXCEPT", "MINUS"))
"""What stands between two queries."""

_AFTER_A_TABLE = frozenset(
    (
        *("WHERE", "GROUP", "HAVING", "ORDER", "SORT", "CLUSTER", "DISTRIBUTE", "WINDOW", "LIMIT"),
        *("OFFSET", "ON", "USING", "JOIN", "INNER", "CROSS", "LEFT", "RIGHT", "FULL", "OUTER"),
        *("SEMI", "ANTI", "NATURAL", "LATERAL", "TABLESAMPLE", "PIVOT", "UNPIVOT", *SETS),
        *("SELECT", "INSERT", "MAP", "REDUCE", "WHEN", "SET"),
    )
)


def read_alias(reader: Reader) -> str | None:
    """Read another name of the table, or return None if there is none."""
    if reader.take("AS"):
        return reader.name("another name of the table")
    token = reader.peek()
    is_name = token.kind == "name" or (
        token.kind == "word" and token.text.upper() not in _AFTER_A_TABLE
    )
    return reader.name("another name of the table") if is_name else None


def place_of_alias(text: str, end: int) -> int | None:
    """Return where an alias of a table may be added, or None if the query gives it one.

    Args:
        text: The query.
        end: Where the table ends, with its version.
    """
    reader, place = Reader(text, start=end), end
    while reader.is_at_any("TABLESAMPLE", "REPEATABLE") and reader.peek(1).text == "(":
        reader.advance()
        reader.expect("(")
        reader.sql("a sample")
        place = reader.peek().end
        reader.expect(")")
    return place if read_alias(reader) is None else None
