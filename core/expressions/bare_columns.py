"""Columns with the names of functions that Spark calls without parentheses: `current_date`.

In Spark, such a name is the column where there is one, and the function elsewhere.
"""

from __future__ import annotations

from collections.abc import Collection

from optimist.core.expressions.cursor import NotSqlError
from optimist.core.expressions.names import free_names
from optimist.core.expressions.parser import parse_expression
from optimist.core.expressions.tokens import next_token

__all__ = ["with_bare_columns"]


def with_bare_columns(sql: str, columns: Collection[str]) -> str:
    """Return the text with back-ticks around those names that are columns.

    A text that is not SQL stays as it is.

    Args:
        sql: The text of an expression.
        columns: The names of the columns.
    """
    try:
        calls = [name for name in free_names(parse_expression(sql)) if name.is_call]
    except (NotSqlError, RecursionError):
        return sql
    known = {name.lower() for name in columns}
    for name in sorted(calls, key=lambda item: -item.start):
        if name.path[0].lower() in known:
            token = next_token(sql, name.start)
            while token.kind != "word":  # parentheses around the name
                token = next_token(sql, token.end)
            sql = f"{sql[: token.start]}`{token.text}`{sql[token.end :]}"
    return sql
