"""Shortened bounds of text in statistics (spec 9.3).

Lengths are UTF-16 units, as in the engines on the JVM, so that all engines cut alike. Order is by
code points, which is the order of UTF-8 bytes.
"""

from __future__ import annotations

__all__ = ["lower_bound", "upper_bound"]

_ASCII_TOP = "\x7f"
_TOP = "\U0010ffff"
_SUPPLEMENTARY = 0x10000


def lower_bound(text: str, prefix_length: int) -> str:
    """The first `prefix_length` UTF-16 units of the text, or one more to keep a character whole."""
    units = 0
    for index, char in enumerate(text):
        if units >= prefix_length:
            return text[:index]
        units += _units(char)
    return text


def upper_bound(text: str, prefix_length: int) -> str | None:
    """The text itself if it is short, else a short text that no text with its prefix exceeds.

    None if that would take more than twice `prefix_length` units.
    """
    if _length(text) <= prefix_length:
        return text
    prefix = lower_bound(text, prefix_length)
    while len(prefix) < len(text):
        if _length(prefix) > 2 * prefix_length:
            return None
        dropped = text[len(prefix)]
        if dropped < _ASCII_TOP:
            return prefix + _ASCII_TOP
        if dropped != _TOP:
            return prefix + _TOP
        prefix += dropped
    return text if _length(text) <= 2 * prefix_length else None


def _units(char: str) -> int:
    return 2 if ord(char) >= _SUPPLEMENTARY else 1


def _length(text: str) -> int:
    return sum(map(_units, text))
