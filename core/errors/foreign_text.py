"""Safe display of text that others wrote: short, on one line, without control characters.

Whoever can write into a table's folder chooses the paths, the names and the values there. If errors
showed them as they are, a megabyte of text would flood the log file, a line end would forge a line
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
    """Return a foreign value in quotes, cut to `limit` characters, on one line.

    Control characters are escaped. A longer text is cut in the middle, because the end of a path
    says most.
    """
    text = shown(value, limit)
    mark = '"' if "'" in text and '"' not in text else "'"
    return f"{mark}{text}{mark}"


def shown(value: object, limit: int = FOREIGN_LIMIT) -> str:
    """Return a foreign value like `quoted`, but without the quotes."""
    # Mask secrets before cutting the text: half a URL would not be recognised as a URL.
    text = without_secrets(bounded(_as_text(value), _MAX_MASKED_LENGTH))
    return on_one_line(bounded(text, limit))


def listed(values: Iterable[object]) -> str:
    """Return foreign values as one text, each as `shown` gives it, and only the first of many."""
    items = list(values)
    texts = [shown(item) for item in items[:_MAX_LISTED]]
    more = len(items) - len(texts)
    return ", ".join([*texts, f"and {more} more"] if more else texts)


def bounded(text: str, limit: int) -> str:
    """Return the text, cut in the middle (`...`) if it is longer than `limit` characters."""
    if len(text) <= limit:
        return text
    end = limit // 3
    return f"{text[: limit - end - 3]}...{text[len(text) - end :]}"


def on_one_line(text: str) -> str:
    """Escape the invisible characters of a text: line ends, terminal codes, bidi marks."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else _escape(each) for each in text)


def bounded_value(value: object) -> object:
    """Return a value for the fields of an error: long texts and tuples are cut."""
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
        # `repr` alone would write it in full, however deep or long it is.
        return _REPR.repr(dict(value) if isinstance(value, Mapping) else value)
    return str(value)


def _escape(character: str) -> str:
    return repr(character)[1:-1]
