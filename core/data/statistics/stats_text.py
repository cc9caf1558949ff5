"""`add.stats` of a few files as values. For all files, `skipping/statistics.py` has columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from optimist.core.protocol.actions import AddFile, RemoveFile
from optimist.core.values.field_types import LARGEST_LONG
from optimist.core.values.foreign_json import parse_json

__all__ = ["num_live_rows", "num_live_rows_in", "num_rows", "stats_of"]


def stats_of(text: str | None) -> Mapping[str, Any]:
    """Return the parsed statistics, or nothing if they are absent or damaged."""
    try:
        parsed = parse_json(text or "{}")
    except ValueError:
        return {}
    return parsed if isinstance(parsed, dict) else {}


def num_rows(stats: str | None) -> int | None:
    """Return `numRecords`, the rows of the file, deleted ones included, or None if unknown."""
    value = stats_of(stats).get("numRecords")
    return value if type(value) is int and 0 <= value <= LARGEST_LONG else None


def num_live_rows(file: AddFile | RemoveFile) -> int | None:
    """Return the rows of the file without deleted ones, or None if unknown."""
    rows = num_rows(file.stats)
    deleted = file.deletion_vector.cardinality if file.deletion_vector else 0
    return rows - deleted if rows is not None and 0 <= deleted <= rows else None


def num_live_rows_in(files: Sequence[AddFile | RemoveFile]) -> int | None:
    """Return the number of live rows in all the files, or None if one is unknown."""
    total = 0
    for file in files:
        count = num_live_rows(file)
        if count is None:
            return None
        total += count
    return total
