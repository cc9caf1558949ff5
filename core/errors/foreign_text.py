"""Shows text that others wrote in errors and warnings: short, on one line, without tricks.

Whoever can write into a table's folder chooses the paths, the names and the values there. If they
were shown as they are, a megabyte of text would flood the log file, a line end would forge a line
in it, and an escape sequence would control the terminal that shows it. So messages show such text
through `quoted` or `shown`, and `OptimistError` passes every message through `on_one_line`.
"""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Mapping

from optimist.core.secrets import without_secrets

__all__ = [
    "FOREIGN_LIMIT",
    "bounded",
    "bounded_value",
    "listed",
    "on_one_line",
    "quoted",
    "shown",
]

FOREIGN_LIMIT = 200
"""How many characters of one foreign text a message shows."""

_MAX_MASKED_LENGTH = 65_536
_MAX_LISTED = 50
_MAX_FIELD_LENGTH = 16_384
_MAX_FIELD_ITEMS = 1_000
_MAX_SHOWN_BITS = 600  # of a whole number: 180 digits, far fewer than Python refuses to print

_REPR = reprlib.Repr()
_REPR.maxstring = _REPR.maxother = _REPR.maxlong = 60


def quoted(value: object, limit: int = FOREIGN_LIMIT) -> str:
    """A foreign value in quotes: at most `limit` characters, with control characters escaped.

    A longer text is cut in the middle, since the end of a path says most.
    """
    text = shown(value, limit)
    mark = '"' if "'" in text and '"' not in text else "'"
    return f"{mark}{text}{mark}"


def shown(value: object, limit: int = FOREIGN_LIMIT) -> str:
    """As `quoted` but without the quotes, for sentences that already say what the text is."""
    # Mask secrets before cutting the text: half a URL would not be recognised as a URL.
    text = without_secrets(bounded(_as_text(value), _MAX_MASKED_LENGTH))
    return on_one_line(bounded(text, limit))


def listed(values: Iterable[object]) -> str:
    """Foreign values in a row, each as `shown` gives it; of very many, only the first."""
    items = list(values)
    texts = [shown(item) for item in items[:_MAX_LISTED]]
    more = len(items) - len(texts)
    return ", ".join([*texts, f"and {more} more"] if more else texts)


def bounded(text: str, limit: int) -> str:
    """The text, cut in the middle (`...`) if it is longer than `limit` characters."""
    if len(text) <= limit:
        return text
    end = limit // 3
    return f"{text[: limit - end - 3]}...{text[len(text) - end :]}"


def on_one_line(text: str) -> str:
    """The text with invisible characters escaped: line ends, terminal codes, bidi marks."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else _escaped(each) for each in text)


def bounded_value(value: object) -> object:
    """A value for the fields of an error: unchanged, except that long texts and tuples are cut."""
    if isinstance(value, str):
        return bounded(value, _MAX_FIELD_LENGTH)
    if type(value) is tuple:
        return tuple(map(bounded_value, value[:_MAX_FIELD_ITEMS]))
    return value


def _as_text(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, int) and value.bit_length() > _MAX_SHOWN_BITS:
        return f"a whole number of {value.bit_length()} bits"
    if isinstance(value, Mapping | list | tuple | bytes | set | frozenset):
        # `repr` alone would spell it in full, as deep or as long as its writer liked.
        return _REPR.repr(dict(value) if isinstance(value, Mapping) else value)
    return str(value)


def _escaped(character: str) -> str:
    return repr(character)[1:-1]
