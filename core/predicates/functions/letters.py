"""Letters whose upper and lower case are the same in Java and in Arrow."""

from __future__ import annotations

import pyarrow.compute as pc

from optimist.core.errors import UsageError
from optimist.core.errors.foreign_text import quoted
from optimist.core.predicates.functions.value import Array

__all__ = ["SAFE_RANGES", "ensure_letters"]

SAFE_RANGES = (
    (0x00, 0x7F),
    (0xA0, 0xB4),
    (0xB6, 0xDE),
    (0xE0, 0x12F),
    (0x132, 0x148),
    (0x14A, 0x17E),
    (0x391, 0x3A1),
    (0x3A4, 0x3A9),
    (0x3AC, 0x3AF),
    (0x3B1, 0x3C1),
    (0x3C3, 0x3CE),
    (0x400, 0x45F),
    (0x5D0, 0x5EA),
    (0x620, 0x64A),
    (0x2010, 0x203A),
    (0x20A0, 0x20BF),
    (0x3040, 0x30FF),
    (0x4E00, 0x9FFF),
    (0xAC00, 0xD7A3),
    (0x1F300, 0x1F64F),
)
"""Ranges of code points. Letters that become several letters, or that depend on others, are not in
them, nor are letters that only newer versions of Unicode have."""
_CLASS = "".join(rf"\x{{{low:X}}}-\x{{{high:X}}}" for low, high in SAFE_RANGES)
_OTHER = f"[^{_CLASS}]"


def ensure_letters(values: Array, text: str) -> None:
    """Refuse texts with letters whose case only Spark changes for certain."""
    if pc.any(pc.match_substring_regex(values, _OTHER), min_count=0).as_py():
        raise UsageError(
            f"The expression {quoted(text)} meets letters whose case only Spark changes. Nothing "
            "was changed. Use optimist.spark, or leave out such rows.",
            kind="OPTIMIST_NEEDS_SPARK",
            value=text,
        )
