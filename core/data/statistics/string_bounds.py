"""Shortened bounds of text in statistics (spec 9.3).

Lengths are in UTF-16 units, as in the engines on the JVM, so that all engines cut alike. The order
is by code points, which is the order of UTF-8 bytes.
"""

from __future__ import annotations

__all__ = ["lower_bound", "upper_bound"]

_ASCII_TOP = "\x7f"
_TOP = "\U0010ffff"
_SUPPLEMENTARY = 0x10000


def lower_bound(text: str, prefix_length: int) -> str:
    """Return the first `prefix_length` UTF-16 units, or one more to keep a character whole."""
    units = 0
    for index, char in enumerate(text):
        if units >= prefix_length:
            return text[:index]
        units += _units_of_char(char)
    return text


def upper_bound(text: str, prefix_length: int) -> str | None:
    """Return a short text that no text with the same prefix exceeds, or the short text itself.

    Return None if that needs more than twice `prefix_length` units.
    """
    if _length_in_units(text) <= prefix_length:
        return text
    prefix = lower_bound(text, prefix_length)
    while len(prefix) < len(text):
        if _length_in_units(prefix) > 2 * prefix_length:
            return None
        dropped = text[len(prefix)]
        if dropped < _ASCII_TOP:
            return prefix + _ASCII_TOP
        if dropped != _TOP:
            return prefix + _TOP
        prefix += dropped
    return text if _length_in_units(text) <= 2 * prefix_length else None


def _units_of_char(char: str) -> int:
    return 2 if ord(char) >= _SUPPLEMENTARY else 1


def _length_in_units(text: str) -> int:
    return sum(map(_units_of_char, text))
