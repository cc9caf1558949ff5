"""Errors that point into the text of a statement."""

from __future__ import annotations

import re

from optimist.core.errors import UsageError
from optimist.core.errors.foreign_text import shown

__all__ = ["syntax_error"]

_BEFORE, _AFTER = 50, 30
_WORD = re.compile(r"\w+|\S|$")


def syntax_error(text: str, index: int, problem: str) -> UsageError:
    """Return the error for a statement that can't be parsed.

    Args:
        text: The whole statement.
        index: The index of the problem in the statement.
        problem: The problem, as part of a sentence.

    Returns:
        An error of the kind `PARSE_SYNTAX_ERROR`, as Spark's parser names it. Its fields are `line`
        and `column`, counted from 1; `fragment`, the line around the problem with a caret below it;
        `word`, the text at the problem; and `start` and `stop`, the indexes of its first and last
        character in the statement, counted from 0. At the statement's end there is no word.
    """
    begin = max(text.rfind("\n", 0, index), text.rfind("\r", 0, index)) + 1
    line, column = text.count("\n", 0, begin) + 1, index - begin + 1
    before, after = text[max(begin, index - _BEFORE) : index], text[index : index + _AFTER]
    after = after.splitlines()[0] if after.strip() else ""
    word = _WORD.search(text, index)
    start, stop = word.span() if word else (index, index)
    return UsageError(
        f"The statement can't be parsed (line {line}, column {column}): {problem}, at the mark ^ "
        f"in {shown(before)}^{shown(after)}. Nothing was run. Correct the SQL, and put unusual "
        "names in back-ticks.",
        kind="PARSE_SYNTAX_ERROR",
        line=line,
        column=column,
        fragment=f"{before}{after}\n{' ' * len(before)}^",
        word=text[start:stop],
        start=start,
        stop=stop - 1,
    )
