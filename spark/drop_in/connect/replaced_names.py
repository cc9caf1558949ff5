"""The names of Delta tables in a text, replaced by the names of frames or views.

A frame stands there under another name than the table's. So it gets the last part of the table's
name as its alias, unless the query gives it one, and a column may have that before it. A text may
also write more of the name before a column; then the frame's own name takes its place there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from optimist.core.errors.foreign_text import shown
from optimist.core.expressions.plain_text import tokens_between
from optimist.core.expressions.tokens import read_name
from optimist.core.sql import PathRelation, place_of_alias
from optimist.core.sql.statements import Span
from optimist.spark.drop_in.connect.refusals import refused
from optimist.spark.rows.row_shape import quoted

__all__ = ["replaced_names"]


def replaced_names(
    text: str,
    relations: Sequence[PathRelation],
    name_of: Callable[[PathRelation], str],
    plain: Callable[[str], str] = str,
) -> str:
    """Return a text with other names for its relations.

    Args:
        text: The text.
        relations: Its relations, in the order of the text.
        name_of: Returns the other name of a relation that is no name before a column.
        plain: Changes the pieces of the text between the names.

    Raises:
        UsageError: Columns have both the whole and the short name of a table before them (kind
            `OPTIMIST_UNSUPPORTED_STATEMENT`).
    """
    names = {item.path: name_of(item) for item in relations if not item.is_qualifier}
    qualified = {item.path for item in relations if item.is_qualifier}
    pieces, end = list[str](), 0
    for relation in relations:
        name = names[relation.path] if relation.is_qualifier else name_of(relation)
        pieces += plain(text[end : relation.span.start]), name
        end = relation.span.end
        if relation.name and not relation.is_qualifier and not relation.is_bare:
            at = place_of_alias(text, end)
            if at is not None and relation.path in qualified:
                _ensure_one_way(text, relation, relations)
            elif at is not None:
                pieces += plain(text[end:at]), f" AS {quoted(relation.name[-1])} "
                end = at
    return "".join([*pieces, plain(text[end:])])


def _ensure_one_way(text: str, relation: PathRelation, relations: Sequence[PathRelation]) -> None:
    """Refuse a short name before a column where the whole name stands before another."""
    short = relation.name[-1].lower()
    if short in _qualifiers(text, [item.span for item in relations]):
        whole = next(
            item.name for item in relations if item.is_qualifier and item.path == relation.path
        )
        name = ".".join(map(quoted, whole))
        raise refused(
            f"Both {shown(name)} and {shown(short)} before columns of a table",
            "Give the table another name in the query, as in FROM table AS t.",
        )


def _qualifiers(text: str, spans: Sequence[Span]) -> Iterator[str]:
    """Return the names that stand before a dot, in lower case, outside of relations."""
    tokens = tokens_between(text, 0, len(text))
    before = ""
    for token, dot in pairwise(tokens):
        is_first = token.kind in ("word", "name") and before != "." and dot.text == "."
        if is_first and not any(span.start <= token.start < span.end for span in spans):
            yield read_name(token).lower()
        before = token.text
