"""A place in the tokens of one text that is an expression or a type as a whole."""

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
    """The text is not what Spark's grammar allows there; whoever asked says whose text it is.

    Attributes:
        problem: What is wrong, as the rest of a sentence.
        line: Where, counted from 1; None if it is nowhere in particular.
        column: Where in the line, counted from 1.
        is_near: What stands there.
    """

    def __init__(self, problem: str, line: int | None, column: int | None, is_near: str) -> None:
        super().__init__(f"{problem} at {is_near!r}" if is_near else problem)
        self.problem, self.line, self.column, self.is_near = problem, line, column, is_near


class Cursor:
    """Goes through the tokens of a text, once and forward."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._tokens = _tokens(text)
        self._words = [item.text.upper() if item.kind in _WORDS else "" for item in self._tokens]
        self._at = 0

    def peek(self, distance: int = 0) -> Token:
        """The next token, or the one so many behind it."""
        return self._tokens[min(self._at + distance, len(self._tokens) - 1)]

    def advance(self) -> Token:
        """Go past the next token."""
        token = self.peek()
        self._at += 1
        return token

    def mark(self) -> int:
        """The place, for `reset`."""
        return self._at

    def reset(self, mark: int) -> None:
        """Go back to a place."""
        self._at = mark

    @property
    def last_end(self) -> int:
        """Where the token ends that was taken last."""
        return self._tokens[self._at - 1].end if self._at else 0

    def is_at(self, *words: str) -> bool:
        """Whether these keywords or marks follow; keywords are given in capitals."""
        if self._words[min(self._at, len(self._words) - 1)] != words[0]:
            return False
        return tuple(self._words[self._at : self._at + len(words)]) == words

    def is_at_any(self, *words: str) -> bool:
        """Whether one of these keywords or marks follows."""
        return self._words[min(self._at, len(self._words) - 1)] in words

    def take(self, *words: str) -> bool:
        """Go past these keywords or marks if all of them follow; else stay."""
        if not self.is_at(*words):
            return False
        self._at += len(words)
        return True

    def expect(self, *words: str) -> None:
        """Go past these keywords or marks; it is an error if others follow."""
        for word in words:
            if not self.take(word):
                self.fail(f"{word} is expected")

    def listed(self, item: Callable[[], _T]) -> list[_T]:
        """One or more items, separated by commas."""
        items = [item()]
        while self.take(","):
            items.append(item())
        return items

    def word(self, what: str) -> str:
        """One keyword, or name without back-ticks."""
        if self.peek().kind != "word":
            self.fail(f"{what} is expected")
        return self.advance().text

    def name(self, what: str) -> str:
        """One name, plain or in back-ticks."""
        token = self.peek()
        if token.kind == "name" and len(token.text) > 2:  # the back-ticks
            return read_name(self.advance())
        if token.kind != "word" or not _PLAIN_NAME.fullmatch(token.text):
            self.fail(f"{what} is expected")
        return self.advance().text

    def whole_number(self, what: str) -> int:
        """A number of at most nine digits, without anything else."""
        if not _WHOLE.fullmatch(self.peek().text):
            self.fail(f"{what} is expected")
        return int(self.advance().text)

    def ensure_end(self) -> None:
        """It is an error if anything follows."""
        if self.peek().kind != "end":
            self.fail("the text should end")

    def fail(self, problem: str, *, is_before: bool = False) -> NoReturn:
        """Raise the error that points at the next token, or at the one before it."""
        token = self._tokens[max(0, self._at - 1)] if is_before else self.peek()
        begin = self.text.rfind("\n", 0, token.start) + 1
        line = self.text.count("\n", 0, begin) + 1
        raise NotSqlError(problem, line, token.start - begin + 1, token.text)


def _tokens(text: str) -> list[Token]:
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
