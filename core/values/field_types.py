"""The protocol's types of the fields of actions, and which values fit them (spec 8.4).

A field of an action states its type once, in its annotation. Every value is checked against it,
whether it comes from a log or from a program, so that every reader can take what a writer puts into
the log: one whole number of 70 bits in a commit would stop all checkpoints after it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias, TypeGuard

from optimist.core.values.unicode_text import is_unicode

__all__ = [
    "LARGEST_LONG",
    "SMALLEST_LONG",
    "Count",
    "Int",
    "Long",
    "SmallCount",
    "TableFormat",
    "fitting",
]

Int: TypeAlias = int
"""A whole number of 32 bits."""
Long: TypeAlias = int
"""A whole number of 64 bits."""
SmallCount: TypeAlias = int
"""A whole number of 32 bits, not negative: the size of a deletion vector, or where it begins."""
TableFormat: TypeAlias = Mapping[str, object]
"""A mapping with a name under `provider` and texts under `options`."""
Count: TypeAlias = int
"""A whole number of 64 bits, not negative: bytes, or rows."""

LARGEST_LONG = (1 << 63) - 1
SMALLEST_LONG = -LARGEST_LONG - 1

_Fits: TypeAlias = Callable[[object], bool]


def fitting(annotation: str) -> _Fits:
    """Return the check of whether a non-null value fits a field, given the field's annotation.

    The check accepts JSON's lists and objects as well as the tuples and mappings of actions. It
    never accepts a boolean in place of a number, or a number with a fraction.
    """
    return _FITS[annotation.removesuffix(" | None")]


def _within(low: int, high: int) -> _Fits:
    def fits(value: object) -> bool:
        return type(value) is int and low <= value <= high

    return fits


def _text(value: object) -> bool:
    return isinstance(value, str) and (value.isascii() or is_unicode(value))


def _flag(value: object) -> bool:
    return isinstance(value, bool)


def _texts(value: object) -> bool:
    return isinstance(value, list | tuple) and all(_text(item) for item in value)


def _mapping(value: object) -> TypeGuard[Mapping[str, object]]:
    return isinstance(value, Mapping) and all(isinstance(key, str) for key in value)


def _texts_by_name(value: object) -> bool:
    return _mapping(value) and all(_text(item) for item in (*value, *value.values()))


def _nullable_texts_by_name(value: object) -> bool:
    return _mapping(value) and all(
        item is None or _text(item) for item in (*value, *value.values())
    )


def _format(value: object) -> bool:
    # A Parquet checkpoint has columns for just these two; other keys stay in JSON.
    if not _mapping(value):
        return False
    provider, options = value.get("provider"), value.get("options")
    is_named = provider is None or _text(provider)
    return is_named and (options is None or _nullable_texts_by_name(options))


def _vector(value: object) -> bool:
    # Its own fields are checked when it is made into a descriptor.
    return isinstance(value, dict) or hasattr(value, "path_or_inline_dv")


_FITS: Mapping[str, _Fits] = {
    "str": _text,
    "bool": _flag,
    "Int": _within(-(1 << 31), (1 << 31) - 1),
    "Long": _within(SMALLEST_LONG, LARGEST_LONG),
    "SmallCount": _within(0, (1 << 31) - 1),
    "Count": _within(0, LARGEST_LONG),
    "tuple[str, ...]": _texts,
    "Mapping[str, object]": _mapping,
    "Mapping[str, str]": _texts_by_name,
    "Mapping[str, str | None]": _nullable_texts_by_name,
    "TableFormat": _format,
    "DeletionVectorDescriptor": _vector,
}
