"""Texts that Spark never reads as dates or timestamps.

Others may be valid.
"""

from __future__ import annotations

import calendar
import re

__all__ = ["may_be_value_of"]

_WORDS = frozenset(("epoch", "now", "today", "tomorrow", "yesterday"))
_DAY = re.compile(
    r"[+-]?(?P<year>[0-9]{4,7})(?:-(?P<month>[0-9]{1,2})(?:-(?P<day>[0-9]{1,2})(?P<rest>.*))?)?",
    re.DOTALL,
)
_BEHIND_A_DATE = re.compile(r"(?:[ T].*)?", re.DOTALL)
_TIME = re.compile(r"(?:[ T](?:[0-9].*)?)?", re.DOTALL)
_TIME_ALONE = re.compile(r"T?[0-9]{1,2}:.*", re.DOTALL)
_TIMESTAMPS = ("TIMESTAMP", "TIMESTAMP_LTZ", "TIMESTAMP_NTZ")


def may_be_value_of(type_name: str, text: str) -> bool:
    """Tell whether Spark may accept a typed constant of this text."""
    bare = text.strip()
    if type_name not in ("DATE", *_TIMESTAMPS) or bare.partition(" ")[0].lower() in _WORDS:
        return True
    match = _DAY.fullmatch(bare)
    if match is None:
        return type_name in _TIMESTAMPS and _TIME_ALONE.fullmatch(bare) is not None
    behind = _BEHIND_A_DATE if type_name == "DATE" else _TIME
    if not behind.fullmatch(match["rest"] or ""):
        return False
    year, month, day = (int(match[part] or 1) for part in ("year", "month", "day"))
    if not 1 <= month <= 12:  # months
        return False
    # The calendar repeats every 400 years, and the module knows years of four digits.
    return 1 <= day <= calendar.monthrange(2000 + year % 400, month)[1]
