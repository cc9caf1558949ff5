"""The statistics of a data file whose rows are going to be deleted by a vector (spec 10.10).

Bounds stay bounds when rows go, but are no longer known to be met; `tightBounds` false says so. A
count of nulls is then only understood where it means that all values are null, or none.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal

from optimist.core.values.foreign_json import parse_exact_json
from optimist.core.values.unicode_text import is_unicode

__all__ = ["loosen_bounds"]


def loosen_bounds(text: str | None, *, num_rows: int, num_live: int) -> str:
    """`add.stats` with wide bounds; numbers keep every digit.

    Args:
        text: The statistics as they are; absent or damaged ones become a row count alone.
        num_rows: The rows of the file, deleted ones included.
        num_live: The rows that were live when the statistics were made, if their bounds are tight.
    """
    stats = _parsed(text)
    if stats.get("tightBounds") is not False and num_live and "nullCount" in stats:
        stats["nullCount"] = _widened(stats["nullCount"], num_live, num_rows)
    return _text({**stats, "numRecords": Decimal(num_rows), "tightBounds": False})


def _parsed(text: str | None) -> dict[str, object]:
    try:
        found = parse_exact_json(text or "{}")
    except ValueError:
        return {}
    return dict(found) if isinstance(found, dict) else {}


def _widened(counts: object, num_live: int, num_rows: int) -> object:
    """Counts of a value that was null in all live rows say so of all rows, whatever these are."""
    if isinstance(counts, Mapping):
        return {name: _widened(count, num_live, num_rows) for name, count in counts.items()}
    is_all = isinstance(counts, Decimal) and counts == num_live
    return Decimal(num_rows) if is_all else counts


def _text(value: object) -> str:
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{_text(key)}:{_text(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_text, value)) + "]"
    if isinstance(value, Decimal):
        return str(value)
    # Half a character, which JSON can spell, can be written in no other way.
    return json.dumps(value, ensure_ascii=isinstance(value, str) and not is_unicode(value))
