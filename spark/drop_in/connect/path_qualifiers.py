"""Columns under the path of their table, ``delta.`/p`.id``, in a statement without an alias.

A command knows the rows of a table by an alias, so that alias takes the place of the path.
"""

from __future__ import annotations

from collections.abc import Mapping

from optimist.core.expressions.plain_text import tokens_between
from optimist.spark.rows.row_shape import quoted

__all__ = ["with_aliases"]


def with_aliases(text: str, aliases: Mapping[str, str]) -> str:
    """Put the aliases of tables in place of their paths, where these stand before a column.

    Args:
        text: An expression.
        aliases: The aliases, by the paths as the statement writes them.
    """
    if not aliases or "/" not in text:
        return text
    tokens = tokens_between(text, 0, len(text))
    pieces, end = list[str](), 0
    for first, dot, name, after in zip(tokens, tokens[1:], tokens[2:], tokens[3:], strict=False):
        is_path = first.text.lower() == "delta" and name.kind == "name"
        if not is_path or dot.text != "." or after.text != ".":
            continue
        alias = aliases.get(name.text[1:-1].replace("``", "`"))
        if alias is not None:
            pieces += text[end : first.start], quoted(alias)
            end = name.end
    return "".join([*pieces, text[end:]])
