"""A cursor over the tokens of a text that is one expression or one type."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NoReturn, TypeVar

from optimist.core.errors import UsageError
from optimist.core.expressions.tokens import Token, next_token, read_name

__all__ = ["Cursor", "NotSqlError"]

_T = TypeVar("_T")
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_]+")
_WORDS = ("word", "mark")
_WHOLE = re.compile(r"[0-9]{1,9}")


class NotSqlError(Exception):
    """An error for text that Spark's grammar does not allow.

    The caller says whose text it is.

    Attributes:
        problem: The problem, as the rest of a sentence.
        line: The line, counted from 1; None if there is no exact location.
        column: The column in the line, counted from 1.
        is_near: The text at that location.
    """

    def __init__(self, problem: str, line: int | None, column: int | None, is_near: str) -> None:
        super().__init__(f"{problem} at {is_near!r}" if is_near else problem)
        self.problem, self.line, self.column, self.is_near = problem, line, column, is_near


class Cursor:
    """Goes through the tokens of a text, once and forward."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._tokens = _cut_into_tokens(text)
        self._words = [item.text.upper() if item.kind in _WORDS else "" for item in self._tokens]
        self._at = 0

    def peek(self, distance: int = 0) -> Token:
        """Return the next token, or the one at a distance behind it."""
        return self._tokens[min(self._at + distance, len(self._tokens) - 1)]

    def advance(self) -> Token:
        """Take the next token."""
        token = self.peek()
        self._at += 1
        return token

    def mark(self) -> int:
        """Return the current location, for `reset`."""
        return self._at

    def reset(self, mark: int) -> None:
        """Go back to a location."""
        self._at = mark

    @property
    def last_end(self) -> int:
        """The end of the last token that was taken."""
        return self._tokens[self._at - 1].end if self._at else 0

    def is_at(self, *words: str) -> bool:
        """Tell whether these keywords or marks follow.

        Keywords are given in capitals.
        """
        if self._words[min(self._at, len(self._words) - 1)] != words[0]:
            return False
        return tuple(self._words[self._at : self._at + len(words)]) == words

    def is_at_any(self, *words: str) -> bool:
        """Tell whether one of these keywords or marks follows."""
        return self._words[min(self._at, len(self._words) - 1)] in words

    def take(self, *words: str) -> bool:
        """Take these keywords or marks if all of them follow, and otherwise stay."""
        if not self.is_at(*words):
            return False
        self._at += len(words)
        return True

    def expect(self, *words: str) -> None:
        """Take these keywords or marks, or fail if others follow."""
        for word in words:
            if not self.take(word):
                self.fail(f"{word} is expected")

    def listed(self, item: Callable[[], _T]) -> list[_T]:
        """Read one or more items, separated by commas."""
        items = [item()]
        while self.take(","):
            items.append(item())
        return items

    def word(self, what: str) -> str:
        """Read one keyword, or a name without back-ticks."""
        if self.peek().kind != "word":
            self.fail(f"{what} is expected")
        return self.advance().text

    def name(self, what: str) -> str:
        """Read one name, plain or in back-ticks."""
        token = self.peek()
        if token.kind == "name" and len(token.text) > 2:  # the back-ticks
            return read_name(self.advance())
        if token.kind != "word" or not _PLAIN_NAME.fullmatch(token.text):
            self.fail(f"{what} is expected")
        return self.advance().text

    def whole_number(self, what: str) -> int:
        """Read a number of at most nine digits."""
        if not _WHOLE.fullmatch(self.peek().text):
            self.fail(f"{what} is expected")
        return int(self.advance().text)

    def ensure_end(self) -> None:
        """Fail if anything follows."""
        if self.peek().kind != "end":
            self.fail("the text should end")

    def fail(self, problem: str, *, is_before: bool = False) -> NoReturn:
        """Raise the error that points at the next token, or at the one before it."""
        token = self._tokens[max(0, self._at - 1)] if is_before else self.peek()
        begin = self.text.rfind("\n", 0, token.start) + 1
        line = self.text.count("\n", 0, begin) + 1
        raise NotSqlError(problem, line, token.start - begin + 1, token.text)


def _cut_into_tokens(text: str) -> list[Token]:
    tokens, at = [], 0
    try:
        while True:
            token = next_token(text, at)
            tokens.append(token)
            if token.kind == "end":
                return tokens
            at = token.end
    except UsageError as error:  # something is not closed
        line, column = error.fields.get("line"), error.fields.get("column")
        known = isinstance(line, int) and isinstance(column, int)
        raise NotSqlError(
            "a quote or a comment is not closed",
            line if known else None,  # type: ignore[arg-type]  # what `known` says
            column if known else None,  # type: ignore[arg-type]
            "",
        ) from None
