"""Reads a statement token by token: words, names, texts, numbers, and parts that are kept as text.

Keywords are words in any case, and mean something only where the grammar asks for them; so each of
them can be a name elsewhere. Only as many tokens are kept as the grammar looks ahead.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable
from decimal import Decimal
from typing import NoReturn, TypeVar

from optimist.core.errors import UsageError
from optimist.core.expressions.syntax_errors import syntax_error
from optimist.core.expressions.tokens import Token, next_token, read_name, read_text
from optimist.core.sql.own_names import PATHS_ALONE, OwnNames
from optimist.core.sql.parameters import Parameters
from optimist.core.sql.statements import ColumnPath, Span, SqlText, TableName

__all__ = ["Reader"]

_T = TypeVar("_T")
_OPENING, _CLOSING = ("(", "[", "{"), (")", "]", "}")
_BEFORE_A_VALUE = (
    *("SELECT", "AND", "OR", "NOT", "WHEN", "THEN", "ELSE", "IN", "LIKE", "BETWEEN", "BY", "OF"),
    *("LIMIT", "OFFSET", "VALUES", "WHERE", "DISTINCT", "ON", "HAVING"),
)
_BEFORE_A_QUERY = ("AS", "SELECT", "WITH")
# Spark's suffixes say the type; longer numbers than these have no use here.
_NUMBER = re.compile(
    r"(?P<digits>[+-]?(?:[0-9]{1,40}\.?[0-9]{0,40}|\.[0-9]{1,40})(?:[eE][+-]?[0-9]{1,3})?)"
    r"(?:BD|[LSYFD])?",
    re.IGNORECASE,
)
_WHOLE_NUMBER = re.compile(r"(?P<digits>[0-9]{1,40})[LSY]?", re.IGNORECASE)
_TYPE_OF_CONSTANT = re.compile(
    r"^(?:TIMESTAMP|TIMESTAMP_LTZ|TIMESTAMP_NTZ|DATE)\s+(?=')", re.IGNORECASE
)


class Reader:
    """One pass over a statement.

    Args:
        text: The statement.
        parameters: What its markers stand for; None leaves them as they are.
        start: Where to begin.
        own_names: Which tables of statements that Spark knows too are ours.
    """

    def __init__(
        self,
        text: str,
        parameters: Parameters | None = None,
        start: int = 0,
        *,
        own_names: OwnNames = PATHS_ALONE,
    ) -> None:
        self._own_names = own_names
        self._text = text
        self._parameters = parameters
        self._ahead: deque[Token] = deque()
        self._next = start
        self._num_markers = 0
        self._values: dict[int, str] = {}
        self._last_end = start
        self._before: deque[Token] = deque(maxlen=2)
        self._open_angles = 0

    def peek(self, distance: int = 0) -> Token:
        """Return the next token, or the one so many behind it."""
        while len(self._ahead) <= distance:
            token = self._marked(next_token(self._text, self._next))
            self._next = token.end
            self._ahead.append(self._counted(token))
        return self._ahead[distance]

    def advance(self) -> Token:
        """Go past the next token."""
        token = self.peek()
        self._ahead.popleft()
        self._last_end = token.end
        return token

    def is_at(self, *words: str) -> bool:
        """Return whether these keywords, given in capitals, or marks follow."""
        return all(_is(self.peek(place), word) for place, word in enumerate(words))

    def is_at_any(self, *words: str) -> bool:
        """Return whether one of these keywords or marks follows."""
        return any(_is(self.peek(), word) for word in words)

    def take(self, *words: str) -> bool:
        """Go past these keywords or marks if all of them follow, or else stay."""
        if not self.is_at(*words):
            return False
        for _ in words:
            self.advance()
        return True

    def expect(self, *words: str) -> None:
        """Go past these keywords or marks, and raise an error if others follow."""
        for word in words:
            if not self.take(word):
                self.fail(f"{word} is expected here")

    def end(self) -> None:
        """Refuse a text that goes on here, but for semicolons."""
        if not self.is_at_end():
            self.fail("the statement should end here")

    def is_at_end(self) -> bool:
        """Go past semicolons, and return whether nothing else is left."""
        while self.take(";"):
            pass
        return self.peek().kind == "end"

    def fail(self, problem: str, token: Token | None = None) -> NoReturn:
        """Raise the error that points at a token, by default at the next one."""
        at = token or self.peek()
        if at.kind == "end":
            problem = f"{problem}, but the text ends"
        elif at.kind == "marker" and self._parameters is None:
            problem = f"{problem}, and the parser was told of no parameters"
        raise syntax_error(self._text, at.start, problem)

    def name(self, what: str) -> str:
        """Read one name, plain or in back-ticks."""
        if self.peek().kind not in ("word", "name"):
            self.fail(f"{what} is expected here")
        return read_name(self.advance())

    def path(self, what: str) -> ColumnPath:
        """Read a name of several parts, as of a field within structs."""
        parts = [self.name(what)]
        while self.take("."):
            parts.append(self.name(what))
        return tuple(parts)

    def paths(self, what: str) -> tuple[ColumnPath, ...]:
        """Read such names, separated by commas."""
        return self.listed(lambda: self.path(what))

    def listed(self, item: Callable[[], _T]) -> tuple[_T, ...]:
        """Read one or more items, separated by commas."""
        items = [item()]
        while self.take(","):
            items.append(item())
        return tuple(items)

    def is_at_table(self) -> bool:
        """Return whether a table's name follows, for statements that may be Spark's."""
        if self.is_at("IDENTIFIER", "("):
            return self.is_at_identifier()
        return self.peek().kind in ("word", "name")

    def is_at_identifier(self) -> bool:
        """Return whether `IDENTIFIER('name')` follows, with a constant."""
        is_constant = self.peek(2).kind in ("text", "marker") and self.peek(3).text == ")"
        return self.is_at("IDENTIFIER", "(") and is_constant

    def table(self, *, takes_text: bool = False) -> TableName:
        """Read a table: a name, ``delta.`/path` ``, `IDENTIFIER('name')`, or a path in quotes."""
        start = self.peek().start
        if takes_text and self.peek().kind == "text":
            return TableName((self.text("a path"),), is_text=True, span=self._since(start))
        if self.is_at("IDENTIFIER", "("):
            return self._identifier(start)
        parts = self.path("the name of a table")
        return TableName(parts, span=self._since(start))

    def own_table(self) -> TableName | None:
        """Read the table of a statement that Spark knows too, or return None for Spark's own."""
        return self._own_names.known(self.table()) if self.is_at_table() else None

    def changed_table(self) -> TableName | None:
        """Read the table whose rows a statement changes, or return None for Spark's own."""
        return self._own_names.known(self.table())

    def made_table(self) -> TableName | None:
        """Read the table that a statement makes, or return None for Spark's own."""
        if not self.is_at_table():
            return None
        return self._own_names.made(self.table(), self._format_ahead)

    def text(self, what: str, *, is_alone: bool = False) -> str:
        """Read the value of a text in quotes, or of a parameter that is one.

        Args:
            what: What is expected, for the error if there is none.
            is_alone: Texts that follow are not parts of it, as they are elsewhere in SQL.
        """
        constant = next_token(_TYPE_OF_CONSTANT.sub("", self._constant(), count=1), 0)
        if constant.kind != "text":
            self.fail(f"{what} in quotes is expected here")
        value = read_text(constant)
        self.advance()
        while not is_alone and self.peek().kind == "text":
            value += read_text(self.advance())
        return value

    def number(self, what: str) -> Decimal:
        """Read a number, with a sign or without."""
        return Decimal(self.digits(what))

    def digits(self, what: str) -> str:
        """Read a number as it is written, without the letters that say its type."""
        sign = "-" if self.take("-") else ""
        match = _NUMBER.fullmatch(self._constant())
        if match is None:
            self.fail(f"{what} is expected here")
        self.advance()
        return sign + match["digits"]

    def whole_number(self, what: str) -> int:
        """Read a number without a fraction, from 0 on."""
        match = _WHOLE_NUMBER.fullmatch(self._constant())
        if match is None:
            self.fail(f"{what} is expected here")
        self.advance()
        return int(match["digits"])

    def sql(self, what: str, is_end: Callable[[], bool] = lambda: False) -> SqlText:
        """Keep the text up to the statement's end, an unmatched bracket, or `is_end`.

        Args:
            what: What is expected, for the error if there is nothing.
            is_end: Whether the text ends before the next token; asked outside of brackets and of
                CASE, and never behind a dot.
        """
        start = end = kept = self.peek().start
        pieces: list[str] = []
        open_brackets, open_cases, is_field = _Open(), _Open(), False
        while self.peek().kind != "end" and not self.is_at(";"):
            token = self.peek()
            if open_brackets.count == 0 and (
                token.text in _CLOSING or (open_cases.count == 0 and not is_field and is_end())
            ):
                break
            if token.kind == "mark":
                open_brackets.see(token, token.text in _OPENING, token.text in _CLOSING)
            elif token.kind == "word" and not is_field:
                open_cases.see(token, _is(token, "CASE"), _is(token, "END"))
            elif token.kind == "marker":
                pieces += self._text[kept : token.start], self._value(token)
                kept = token.end
            end = self.advance().end
            is_field = token.text == "."
        if open_brackets.count:
            self.fail("this bracket is not closed", open_brackets.first)
        if open_cases.count:
            self.fail("END is missing for this CASE", open_cases.first)
        if end == start:
            self.fail(f"{what} is expected here")
        return SqlText("".join([*pieces, self._text[kept:end]]), Span(start, end))

    def _format_ahead(self) -> str | None:
        """Return the format behind USING, which may come before the query of the statement."""
        distance = depth = 0
        while (token := self.peek(distance)).kind != "end" and token.text != ";":
            depth += (token.text in _OPENING) - (token.text in _CLOSING)
            if depth == 0 and any(_is(token, word) for word in _BEFORE_A_QUERY):
                return None
            if depth == 0 and _is(token, "USING"):
                name = self.peek(distance + 1)
                return read_name(name) if name.kind in ("word", "name") else None
            distance += 1
        return None

    def _since(self, start: int) -> Span:
        return Span(start, self._last_end)

    def _identifier(self, start: int) -> TableName:
        self.expect("IDENTIFIER", "(")
        at = self.peek()
        text = self.text("a name")
        self.expect(")")
        inner = Reader(text)
        try:
            parts = inner.path("the name of a table")
            inner.end()
        except UsageError:
            self.fail("the text in IDENTIFIER is not a name", at)
        return TableName(parts, span=self._since(start))

    def _marked(self, token: Token) -> Token:
        """Join `:x` to one token if it is a parameter, not a field's type or a part of a value."""
        before = tuple(self._before)
        self._before.append(token)
        if token.text == "<" and (self._open_angles or (before and _is(before[-1], "STRUCT"))):
            self._open_angles += 1
        elif token.text == ">" and self._open_angles:
            self._open_angles -= 1
        is_type = bool(self._open_angles) and before[0].text in ("<", ",")
        if token.text != ":" or is_type or _adjoin(before, token):
            return token
        name = next_token(self._text, token.end)
        if name.kind != "word" or name.start > token.end:
            return token
        return Token("marker", token.text + name.text, token.start, name.end)

    def _counted(self, token: Token) -> Token:
        """Count a marker, and refuse one without a value if there are values."""
        if token.kind == "marker":
            place = self._num_markers
            self._num_markers += token.text == "?"
            if self._parameters is not None:
                value = self._parameters.sql_of(token.text, place)
                if value is None:
                    self.fail(f"the parameter {token.text} has no value", token)
                self._values[token.start] = value
        return token

    def _constant(self) -> str:
        """Return the text of the next token, or the value of a marker."""
        token = self.peek()
        return self._values.get(token.start, token.text)

    def _value(self, marker: Token) -> str:
        """Return the text for a marker, in brackets if it could become a comment (`--`)."""
        value = self._values.get(marker.start, marker.text)
        return f"({value})" if value.startswith("-") else value


class _Open:
    """The number of open brackets, or of open CASE, and the first of them."""

    def __init__(self) -> None:
        self.count = 0
        self.first: Token | None = None

    def see(self, token: Token, is_begin: bool, is_end: bool) -> None:
        if is_begin and self.count == 0:
            self.first = token
        self.count = max(0, self.count + is_begin - is_end)


def _adjoin(before: tuple[Token, ...], token: Token) -> bool:
    """Return whether a token adjoins a value that it takes a part of, as in `a:b`."""
    if not before or before[-1].end != token.start:
        return False
    last = before[-1]
    is_name = last.kind == "name" or (
        last.kind == "word" and not any(_is(last, word) for word in _BEFORE_A_VALUE)
    )
    return is_name or last.text in _CLOSING


def _is(token: Token, word: str) -> bool:
    return len(token.text) == len(word) and token.text.upper() == word
