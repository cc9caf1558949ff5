"""Data files with dates of a calendar that is not in use any more.

Spark 2, and later versions on request, counted days before 15 October 1582 by the Julian calendar,
and times before 1900 by the local clocks of then. The footer tells such files. Spark's own reader
converts them; here they are refused as soon as such a value is met.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.errors import TableError

__all__ = ["ensure_no_legacy_values", "is_of_legacy_calendar"]

_FIRST_SAFE_DAY = dt.date(1582, 10, 15)
_FIRST_SAFE_TIME = dt.datetime(1900, 1, 1, tzinfo=dt.timezone.utc)
_VERSION = b"org.apache.spark.version"
_LEGACY = (b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96")


def is_of_legacy_calendar(footer: Mapping[bytes, bytes] | None) -> bool:
    """Whether old dates in a file need converting, by its footer's key-value metadata.

    A file that does not name Spark's version is of an engine that never did this.
    """
    entries = footer or {}
    version = entries.get(_VERSION)
    is_old = version is not None and version < b"3.0.0"
    return is_old or any(key in entries for key in _LEGACY)


def ensure_no_legacy_values(batch: pa.RecordBatch, path: str) -> None:
    """Refuse values whose meaning differs between the calendars.

    Raises:
        TableError: There is one (kind `OPTIMIST_LEGACY_CALENDAR`, fields `path` and `column`).
    """
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if _has_legacy_value(column):
            raise TableError(
                f"The column {name} of {path} has dates before 1582 or times before 1900 in the "
                "calendar of Spark 2. Read the table with Spark on the native plane, which "
                "converts them, or write the file anew there.",
                kind="OPTIMIST_LEGACY_CALENDAR",
                path=path,
                column=name,
            )


def _has_legacy_value(column: pa.Array) -> bool:
    kind = column.type
    if pa.types.is_struct(kind):
        return any(map(_has_legacy_value, column.flatten()))
    if pa.types.is_map(kind):
        return _has_legacy_value(column.keys) or _has_legacy_value(column.items)
    if pa.types.is_list(kind):
        return _has_legacy_value(column.flatten())
    if pa.types.is_date(kind):
        first = pa.scalar(_FIRST_SAFE_DAY, kind)
    elif pa.types.is_timestamp(kind) and kind.tz is not None:
        first = pa.scalar(_FIRST_SAFE_TIME, kind)
    else:
        return False
    return bool(pc.any(pc.less(column, first), min_count=0).as_py())
