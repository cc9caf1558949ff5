"""The first word of a statement: a cheap test for statements of Spark."""

from __future__ import annotations

import re

from optimist.core.errors import UsageError
from optimist.core.expressions.tokens import skip_blanks

__all__ = ["begin_of"]


def begin_of(text: str, first_words: re.Pattern[str]) -> int | None:
    """Return the position of the first word, or None if the statement begins otherwise.

    Args:
        text: The statement.
        first_words: Matches the first words of those that are wanted.
    """
    try:
        start = skip_blanks(text, 0)
    except UsageError:
        return None  # a comment that nobody closes: Spark may say so
    return start if first_words.match(text, start) else None
