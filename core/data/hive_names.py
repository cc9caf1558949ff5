"""Partition values in the names of directories, as Hive writes them (spec 10.2)."""

from __future__ import annotations

import re

__all__ = ["HIVE_NULL", "escape_hive", "unescape_hive"]

HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"
"""The text for null, and for the empty string, in a directory's name."""

_UNSAFE = re.compile("[\x00-\x1f\x7f\"#%'*/:=?\\\\{\\[\\]^]")
_ESCAPE = re.compile("%([0-9A-Fa-f]{2})")


def escape_hive(text: str) -> str:
    """Return a column's name or value in the form for a directory's name."""
    return _UNSAFE.sub(lambda match: f"%{ord(match.group()):02X}", text)


def unescape_hive(text: str) -> str | None:
    """Return the value of a directory's name, or None for the directory of null."""
    if text == HIVE_NULL:
        return None
    return _ESCAPE.sub(lambda match: chr(int(match.group(1), 16)), text)
