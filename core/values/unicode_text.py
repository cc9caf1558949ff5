"""The check that a text fits UTF-8, as logs, data files and predicates require.

Python strings can also hold one half of a surrogate pair, for example from JSON that was cut.
"""

from __future__ import annotations

from optimist.core.errors import UsageError

__all__ = ["ensure_unicode", "is_unicode"]


def is_unicode(text: str) -> bool:
    """Return whether the text holds only whole characters, and no half of a surrogate pair."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def ensure_unicode(text: str) -> None:
    """Refuse a text that holds half a character.

    Raises:
        UsageError: The text holds one (kind `OPTIMIST_INVALID_TEXT`, field `text`).
    """
    try:
        text.encode()
    except UnicodeEncodeError as error:
        around = text[max(0, error.start - 20) : error.end + 20]
        raise UsageError(
            f"The text ...{around!a}... holds {text[error.start]!a}, which is half a character (an "
            "unpaired surrogate), so a table can't hold it. Nothing was done. Correct the text at "
            "its source.",
            kind="OPTIMIST_INVALID_TEXT",
            text=ascii(around),
        ) from None
