"""Cuts a statement into tokens as Spark's lexer does: words, quoted names, texts, marks.

Tokens are made one at a time, each in a time proportional to its length, so the cost of a text is
proportional to its size. Whitespace and comments are not tokens: `--` up to the line's end, and `/*
*/`, which nests. A hint (`/*+ */`) is a token, since it has a meaning. Within a comment it does not
begin another comment.
"""

from __future__ import annotations

import re
from functools import partial
from typing import Literal, NamedTuple, TypeAlias

from optimist.core.expressions.syntax_errors import syntax_error

__all__ = ["Token", "next_token", "read_name", "read_text", "skip_blanks"]

TokenKind: TypeAlias = Literal["word", "name", "text", "number", "marker", "mark", "hint", "end"]


class Token(NamedTuple):
    """A piece of a statement.

    Attributes:
        kind: A `word` is a keyword or a name; a `name` is in back-ticks; a `text` is in single or
            double quotes; a `marker` is a parameter, `?`, or `:x` if a `Reader` finds one; a `mark`
            is any sign; the `end` has no text.
        text: The token as it is written.
        start: The index of its start.
        end: The first index behind it, where the next token may begin.
    """

    kind: TokenKind
    text: str
    start: int
    end: int


# Spark knows fewer blanks than Python.
_BLANK = "[ \\t-\\r\\u00a0\\u1680\\u2000-\\u200a\\u2028\\u202f\\u205f\\u3000]"
_BLANKS = re.compile(rf"{_BLANK}+|--[^\r\n\\]*(?:\\\n?[^\r\n\\]*)*")
_BRACKETS = re.compile(r"/\*(?!\+)|\*/")
# Each alternative begins with a character that no other begins with, or is tried before those that
# do. No repetition can match the same run in two ways, so nothing is tried twice.
_TOKEN = re.compile(
    r"""
      (?P<text>[rR]'[^']*'|[rR]"[^"]*"
        |'[^'\\]*(?:(?:\\.|'')[^'\\]*)*'|"[^"\\]*(?:(?:\\.|"")[^"\\]*)*")
    | (?P<name>`[^`]*(?:``[^`]*)*`)
    | (?P<marker>\?)
    | (?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?:[bB][dD]|[lLsSyYfFdD])?(?!\w))
    | (?P<word>\w+)
    | (?P<mark>::|\*/|<=>|<>|!=|<=|>=|==|\|\||->|=>|.)
    """,
    re.VERBOSE | re.DOTALL,
)
_UNCLOSED = {"'": "text in quotes", '"': "text in quotes", "`": "name in back-ticks"}
_ESCAPE = re.compile(
    r"\\(?:u(?P<short>[0-9a-fA-F]{4})|U(?P<long>[0-9a-fA-F]{8})|(?P<octal>[01][0-7]{2})|(?P<one>.))"
    r"|(?P<doubled>''|\"\")",
    re.DOTALL,
)
_HALF = re.compile("[\ud800-\udfff]")
_ESCAPED = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a"}
_KEPT_ESCAPES = "%_"  # patterns of LIKE keep their backslash


def skip_blanks(text: str, start: int) -> int:
    """Return the index of the next token, at or after an index.

    Raises:
        UsageError: A comment is not closed (kind `PARSE_SYNTAX_ERROR`).
    """
    while True:
        if blank := _BLANKS.match(text, start):
            start = blank.end()
        elif text.startswith("/*", start) and not text.startswith("/*+", start):
            start = _after_comment(text, start)
        else:
            return start


def next_token(text: str, start: int) -> Token:
    """Read the first token at or after an index.

    Raises:
        UsageError: A comment, a hint, a text or a name is not closed (kind `PARSE_SYNTAX_ERROR`).
    """
    start = skip_blanks(text, start)
    if text.startswith("/*+", start):
        end = text.find("*/", start)
        if end < 0:
            raise syntax_error(text, start, "the hint is not closed")
        return Token("hint", text[start : end + 2], start, end + 2)
    match = _TOKEN.match(text, start)
    if match is None:
        return Token("end", "", len(text), len(text))
    kind, raw = match.lastgroup, match.group()
    if raw in _UNCLOSED:
        raise syntax_error(text, start, f"the {_UNCLOSED[raw]} is not closed")
    return Token(kind, raw, start, match.end())  # type: ignore[arg-type]  # the groups' names


def read_name(token: Token) -> str:
    """Return the name in a word, or in a name with back-ticks."""
    return token.text[1:-1].replace("``", "`") if token.kind == "name" else token.text


def read_text(token: Token) -> str:
    r"""Return the value of a text in quotes, with its escapes read as in Spark.

    `\%` and `\_` keep their backslash, and a text that begins with `r` has no escapes.
    """
    if token.text[0] in "rR":
        return token.text[2:-1]
    value = _ESCAPE.sub(partial(_unescape, token.text[0]), token.text[1:-1])
    if not _HALF.search(value):
        return value
    # Halves of a character that are escaped separately are one character in Java.
    return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def _after_comment(text: str, start: int) -> int:
    depth = 0
    for bracket in _BRACKETS.finditer(text, start):
        depth += 1 if bracket.group() == "/*" else -1
        if depth == 0:
            return bracket.end()
    raise syntax_error(text, start, "the comment is not closed")


def _unescape(quote: str, match: re.Match[str]) -> str:
    if doubled := match["doubled"]:
        return quote if doubled[0] == quote else doubled
    if code := match["short"] or match["long"]:
        point = int(code, 16)
        return chr(point) if point <= 0x10FFFF else match.group()
    if match["octal"]:
        return chr(int(match["octal"], 8))
    one = match["one"]
    return match.group() if one in _KEPT_ESCAPES else _ESCAPED.get(one, one)
