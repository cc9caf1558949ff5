"""Takes the alias of a table off the names in SQL text: `t.a > 1` becomes `a > 1`."""

from __future__ import annotations

from optimist.core.expressions.tokens import Token, next_token, read_name

__all__ = ["column_without", "text_without"]


def text_without(alias: str, sql: str) -> str:
    """Return SQL text without an alias before its names.

    Args:
        alias: The alias, in any case.
        sql: A condition or a value.
    """
    pieces: list[str] = []
    kept = start = 0
    before = ""
    while (token := next_token(sql, start)).kind != "end":
        start = token.end
        dot = next_token(sql, start)
        if before != "." and dot.text == "." and _is_name(token, alias):
            pieces.append(sql[kept : token.start])
            kept = start = next_token(sql, dot.end).start
            before = dot.text
        else:
            before = token.text
    return "".join([*pieces, sql[kept:]])


def column_without(alias: str, column: tuple[str, ...]) -> tuple[str, ...]:
    """Return the path of a column without an alias before it."""
    has_alias = len(column) > 1 and column[0].lower() == alias.lower()
    return column[1:] if has_alias else column


def _is_name(token: Token, alias: str) -> bool:
    return token.kind in ("word", "name") and read_name(token).lower() == alias.lower()
