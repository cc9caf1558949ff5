"""Sizes as people read them."""

from __future__ import annotations

__all__ = ["bytes_text"]

_UNITS = ("bytes", "kB", "MB", "GB", "TB", "PB", "EB")
_STEP = 1_000


def bytes_text(size: int) -> str:
    """Return a size with a decimal unit, such as `1.2 GB`."""
    value, unit = float(size), 0
    while abs(value) >= _STEP and unit < len(_UNITS) - 1:
        value, unit = value / _STEP, unit + 1
    digits = 0 if not unit or abs(value) >= 100 else 1
    return f"{value:.{digits}f} {_UNITS[unit]}"
