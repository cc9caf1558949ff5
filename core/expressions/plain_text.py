"""The text of a part of an expression, without comments and enclosing parentheses."""

from __future__ import annotations

from optimist.core.expressions.tokens import Token, next_token
from optimist.core.expressions.tree import Expression, Operation, Subquery

__all__ = ["plain_text", "tokens_between"]


def plain_text(text: str, part: Expression) -> str:
    """Return the SQL of a part of a parsed text.

    If it is parsed again, it gives an equal part.
    """
    tokens = tokens_between(text, part.start, part.end)
    is_bracketed = isinstance(part, Subquery) or (
        isinstance(part, Operation) and part.operator == "ROW"
    )
    while not is_bracketed and _are_in_brackets(tokens):
        tokens = tokens[1:-1]
    pieces: list[str] = []
    end = tokens[0].start
    for token in tokens:
        pieces += (" " if token.start > end else "", token.text)
        end = token.end
    return "".join(pieces)


def tokens_between(text: str, start: int, end: int) -> list[Token]:
    """Return the tokens of a part of a text."""
    tokens = []
    while start < end:
        token = next_token(text, start)
        if token.kind == "end" or token.start >= end:
            break
        tokens.append(token)
        start = token.end
    return tokens


def _are_in_brackets(tokens: list[Token]) -> bool:
    """Tell whether the first token is a parenthesis that the last one closes."""
    if tokens[0].text != "(":
        return False
    depth = 0
    for token in tokens[:-1]:
        depth += (token.text == "(") - (token.text == ")")
        if not depth:
            return False
    return tokens[-1].text == ")"
