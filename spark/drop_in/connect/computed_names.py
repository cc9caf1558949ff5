"""Names and statements that the server computes, found out before they are looked into.

`IDENTIFIER(expression)` is a name, and EXECUTE IMMEDIATE has a whole statement as a value. The
server computes both from constants, parameters and its variables. So it is asked for the values,
by a query without a table, and the statement is looked into as if it had them written in it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame

from optimist.core.errors import UsageError
from optimist.core.predicates.text import quote_literal
from optimist.core.sql.parameters import Parameters
from optimist.core.sql.reader import Reader
from optimist.core.sql.relations import markers_of
from optimist.core.sql.statements import Span

__all__ = ["Immediate", "immediate", "with_constant_names"]

_MAY_BE_COMPUTED = re.compile(r"\bidentifier\b", re.IGNORECASE)
_Ask = Callable[[str], DataFrame]


@dataclass(frozen=True, slots=True)
class Immediate:
    """`EXECUTE IMMEDIATE text [INTO variables] [USING values]`.

    Attributes:
        text: The statement; None if the server does not tell it.
        is_alone: Neither variables nor values are named.
    """

    text: str | None
    is_alone: bool


def with_constant_names(ask: _Ask, text: str, parameters: Parameters | None) -> str:
    """Return a statement with the values of what stands in IDENTIFIER.

    Args:
        ask: Runs a query on the server.
        text: The statement.
        parameters: The values of its parameters.
    """
    found = list[tuple[Span, str]]()
    if _MAY_BE_COMPUTED.search(text) is not None:
        with suppress(UsageError):  # the server will say what is wrong
            found = _computed(text, parameters)
    names = _values(ask, [sql for _, sql in found])
    if names is None:
        return text
    pieces, end = list[str](), 0
    for (span, _), name in zip(found, names, strict=True):
        pieces += text[end : span.start], quote_literal(name, "string")
        end = span.end
    return "".join([*pieces, text[end:]])


def _computed(text: str, parameters: Parameters | None) -> list[tuple[Span, str]]:
    """Return where names are computed, and how, without those of one constant or parameter.

    One with a parameter `?` in it is left, since the values of the others go by their places.
    """
    reader, found, before = Reader(text, parameters), list[tuple[Span, str]](), ""
    while reader.peek().kind != "end":
        is_computed = reader.is_at("IDENTIFIER", "(") and not reader.is_at_identifier()
        before = reader.advance().text if before == "." or not is_computed else ""
        if is_computed and not before:
            reader.expect("IDENTIFIER", "(")
            sql = reader.sql("a name")
            if not any(span.start < sql.span.end for span in _markers(text, sql.span.start)):
                found.append((sql.span, sql.sql))
    return found


def _markers(text: str, start: int) -> Sequence[Span]:
    return [span for span in markers_of(text) if span.start >= start]


def _values(ask: _Ask, expressions: Sequence[str]) -> Sequence[str] | None:
    """Return the texts that expressions without columns mean, or None if one means none."""
    if not expressions:
        return []
    try:
        rows = ask(f"SELECT {', '.join(expressions)}").collect()
    except AnalysisException:  # not what may be another answer later
        return None  # the server will say what is wrong
    values = tuple(rows[0]) if len(rows) == 1 else ()
    are_texts = all(isinstance(value, str) for value in values)
    return values if are_texts and len(values) == len(expressions) else None


def immediate(ask: _Ask, text: str, parameters: Parameters | None) -> Immediate | None:
    """Return the statement that a statement has as a value, or None for any other statement."""
    reader = Reader(text, parameters)
    if not reader.take("EXECUTE", "IMMEDIATE"):
        return None
    try:
        sql = reader.sql("a statement", lambda: reader.is_at_any("INTO", "USING"))
    except UsageError:
        return None
    values = _values(ask, [sql.sql])
    return Immediate(values[0] if values else None, reader.is_at_end())
