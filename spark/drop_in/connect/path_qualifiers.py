"""Columns under the name of their table, ``delta.`/p`.id`` or `db.t.id`, in a statement.

A command knows the rows of a table by an alias, so that alias takes the place of the name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from optimist.core.expressions.plain_text import tokens_between
from optimist.core.expressions.tokens import Token, read_name
from optimist.spark.rows.row_shape import quoted

__all__ = ["Aliases", "with_aliases", "without_name"]

Aliases = Mapping[tuple[str, ...], str]
"""The aliases of tables by their names, which have two parts or more."""


def with_aliases(text: str, aliases: Aliases) -> str:
    """Put the aliases of tables in place of their names, where these stand before a column.

    Args:
        text: An expression.
        aliases: The aliases.
    """
    if not aliases or "." not in text:
        return text
    tokens = tokens_between(text, 0, len(text))
    pieces, end, at = list[str](), 0, 0
    while at < len(tokens):
        parts = _parts(tokens[at:])
        name = _name_before_a_column(parts, aliases)
        if name is not None:
            pieces += text[end : tokens[at].start], quoted(aliases[name])
            end = tokens[at + 2 * len(name) - 2].end
        at += max(1, 2 * len(parts) - 1)
    return "".join([*pieces, text[end:]])


def without_name(column: tuple[str, ...], aliases: Aliases) -> tuple[str, ...]:
    """Return the path of a column with the alias of its table in the place of the name."""
    name = _name_before_a_column(column, aliases)
    return column if name is None else (aliases[name], *column[len(name) :])


def _parts(tokens: Sequence[Token]) -> tuple[str, ...]:
    """Return the parts of the name that stands first; a star may be the last of them."""
    parts = list[str]()
    for name, dot in zip(tokens[::2], [*tokens[1::2], None], strict=False):
        if name.kind not in ("word", "name") and not (parts and name.text == "*"):
            break
        parts.append(read_name(name))
        if dot is None or dot.text != ".":
            break
    return tuple(parts)


def _name_before_a_column(parts: tuple[str, ...], aliases: Aliases) -> tuple[str, ...] | None:
    fitting = (
        name for name in aliases if len(name) < len(parts) and _are_same(parts[: len(name)], name)
    )
    return max(fitting, key=len, default=None)


def _are_same(written: tuple[str, ...], name: tuple[str, ...]) -> bool:
    """Compare two names; paths are the same only letter by letter."""
    return all(
        one == other or ("/" not in other and one.lower() == other.lower())
        for one, other in zip(written, name, strict=True)
    )
