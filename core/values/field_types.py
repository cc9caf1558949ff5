"""The types of the fields of actions, and the values that fit them (spec 8.4).

A field of an action states its type once, in its annotation. Every value is checked against it,
whether it comes from a log or from a program. So every reader can take each value that a writer
puts into the log: one whole number of 70 bits in a commit would stop all checkpoints after it.
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
"""A whole number of 32 bits, not negative: the size of a deletion vector, or its offset in a file.
"""
TableFormat: TypeAlias = Mapping[str, object]
"""A mapping with a name under `provider` and texts under `options`."""
Count: TypeAlias = int
"""A whole number of 64 bits, not negative: bytes, or rows."""

LARGEST_LONG = (1 << 63) - 1
SMALLEST_LONG = -LARGEST_LONG - 1

_Fits: TypeAlias = Callable[[object], bool]


def fitting(annotation: str) -> _Fits:
    """Return the check whether a non-null value fits a field with this annotation.

    The check accepts JSON's lists and objects as well as the tuples and mappings of actions. It
    never accepts a boolean in place of a number, or a number with a fraction.
    """
    return _FITS[annotation.removesuffix(" | None")]


def _range_check(low: int, high: int) -> _Fits:
    def fits(value: object) -> bool:
        return type(value) is int and low <= value <= high

    return fits


def _is_text(value: object) -> bool:
    return isinstance(value, str) and (value.isascii() or is_unicode(value))


def _is_flag(value: object) -> bool:
    return isinstance(value, bool)


def _is_texts(value: object) -> bool:
    return isinstance(value, list | tuple) and all(_is_text(item) for item in value)


def _is_mapping(value: object) -> TypeGuard[Mapping[str, object]]:
    return isinstance(value, Mapping) and all(isinstance(key, str) for key in value)


def _is_texts_by_name(value: object) -> bool:
    return _is_mapping(value) and all(_is_text(item) for item in (*value, *value.values()))


def _is_nullable_texts_by_name(value: object) -> bool:
    if type(value) is not dict and not isinstance(value, Mapping):
        return False
    for key, item in value.items():  # each file of a log has some, so no generator
        if not _is_text(key) or not (item is None or _is_text(item)):
            return False
    return True


def _is_format(value: object) -> bool:
    # A Parquet checkpoint has columns for just these two; other keys stay in JSON.
    if not _is_mapping(value):
        return False
    provider, options = value.get("provider"), value.get("options")
    is_named = provider is None or _is_text(provider)
    return is_named and (options is None or _is_nullable_texts_by_name(options))


def _is_vector(value: object) -> bool:
    # The descriptor that is made from it checks its own fields.
    return isinstance(value, dict) or hasattr(value, "path_or_inline_dv")


_FITS: Mapping[str, _Fits] = {
    "str": _is_text,
    "bool": _is_flag,
    "Int": _range_check(-(1 << 31), (1 << 31) - 1),
    "Long": _range_check(SMALLEST_LONG, LARGEST_LONG),
    "SmallCount": _range_check(0, (1 << 31) - 1),
    "Count": _range_check(0, LARGEST_LONG),
    "tuple[str, ...]": _is_texts,
    "Mapping[str, object]": _is_mapping,
    "Mapping[str, str]": _is_texts_by_name,
    "Mapping[str, str | None]": _is_nullable_texts_by_name,
    "TableFormat": _is_format,
    "DeletionVectorDescriptor": _is_vector,
}
