"""Subqueries, which are recognized here but not parsed."""

from __future__ import annotations

from optimist.core.expressions.cursor import Cursor
from optimist.core.expressions.tree import Subquery

__all__ = ["is_at_query", "subquery"]

_WORDS = ("WITH", "FROM", "VALUES", "TABLE")
_VALUES = ("word", "name", "number", "text", "marker")


def is_at_query(cursor: Cursor) -> bool:
    """Tell whether a query begins here, after a parenthesis, and not a column of such a name."""
    behind = cursor.peek(1)
    if cursor.is_at("SELECT"):
        return behind.kind in _VALUES or behind.text in ("*", "(", "-")
    return cursor.is_at_any(*_WORDS) and behind.kind in ("word", "name")


def subquery(cursor: Cursor, start: int) -> Subquery:
    """Read the query up to its closing parenthesis.

    Raises:
        NotSqlError: The parenthesis is not closed.
    """
    depth = 1
    while depth:
        token = cursor.peek()
        if token.kind == "end":
            cursor.fail(") is expected")
        cursor.advance()
        depth += (token.text == "(") - (token.text == ")")
    return Subquery(start=start, end=cursor.last_end)
