"""The statistics of a data file whose rows a vector is about to delete (spec 10.10).

Bounds stay bounds when rows go, but may no longer equal a row's value. `tightBounds` false records
that. A count of nulls then has a meaning only if all values are null, or none.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal

from optimist.core.values.foreign_json import parse_exact_json
from optimist.core.values.unicode_text import is_unicode

__all__ = ["loosen_bounds"]


def loosen_bounds(text: str | None, *, num_rows: int, num_live: int) -> str:
    """Return `add.stats` with wide bounds. Numbers keep every digit.

    Args:
        text: The present statistics. Absent or damaged ones become a row count alone.
        num_rows: The rows of the file, deleted ones included.
        num_live: The rows that were live when the statistics were made, if their bounds are tight.
    """
    stats = _parse_stats(text)
    if stats.get("tightBounds") is not False and num_live and "nullCount" in stats:
        stats["nullCount"] = _widen_null_counts(stats["nullCount"], num_live, num_rows)
    return _to_json_text({**stats, "numRecords": Decimal(num_rows), "tightBounds": False})


def _parse_stats(text: str | None) -> dict[str, object]:
    try:
        found = parse_exact_json(text or "{}")
    except ValueError:
        return {}
    return dict(found) if isinstance(found, dict) else {}


def _widen_null_counts(counts: object, num_live: int, num_rows: int) -> object:
    """Raise a count to all rows if all live rows were null, whatever the others hold."""
    if isinstance(counts, Mapping):
        return {
            name: _widen_null_counts(count, num_live, num_rows) for name, count in counts.items()
        }
    is_all = isinstance(counts, Decimal) and counts == num_live
    return Decimal(num_rows) if is_all else counts


def _to_json_text(value: object) -> str:
    if isinstance(value, Mapping):
        return (
            "{"
            + ",".join(f"{_to_json_text(key)}:{_to_json_text(item)}" for key, item in value.items())
            + "}"
        )
    if isinstance(value, list):
        return "[" + ",".join(map(_to_json_text, value)) + "]"
    if isinstance(value, Decimal):
        return str(value)
    # Half a character, which JSON can hold, has no other form.
    return json.dumps(value, ensure_ascii=isinstance(value, str) and not is_unicode(value))
