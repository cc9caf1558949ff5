"""Data files with dates in a calendar that is no longer used.

Spark 2, and later versions on request, counted days before 15 October 1582 by the Julian calendar,
and times before 1900 by the local clocks of that time. The footer identifies such files. Spark's
own reader converts their values. This engine refuses a file when it meets such a value, and does
not use the footer's bounds of such columns.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.errors import TableError
from optimist.core.errors.foreign_text import shown
from optimist.core.values.arrow_lists import is_list

__all__ = ["LegacyCalendar"]

_FIRST_SAFE_DAY = dt.date(1582, 10, 15)
_FIRST_SAFE_TIME = dt.datetime(1900, 1, 1)
_VERSION = b"org.apache.spark.version"


@dataclass(frozen=True, slots=True)
class LegacyCalendar:
    """The values of a file that may be in the old calendar.

    Attributes:
        dates_and_times: Dates, and timestamps that are stored as such.
        int96: Timestamps of the old physical type INT96, which Arrow reads as timestamps without a
            zone.
    """

    dates_and_times: bool
    int96: bool

    @classmethod
    def of(cls, footer: Mapping[bytes, bytes] | None) -> LegacyCalendar | None:
        """Read a footer's key-value metadata, or return None if all values use today's calendar.

        A file that names no version of Spark was written by an engine that never did this.
        """
        entries = footer or {}
        version = entries.get(_VERSION, b"9")
        calendar = cls(
            version < b"3.0.0" or b"org.apache.spark.legacyDateTime" in entries,
            version < b"3.1.0" or b"org.apache.spark.legacyINT96" in entries,
        )
        return calendar if calendar.dates_and_times or calendar.int96 else None

    def rebases(self, value: object) -> bool:
        """Return whether a stored date or time may mean another one in today's calendar.

        If the lowest value of a column is safe, all are.
        """
        if not self.dates_and_times or not isinstance(value, dt.date):
            return False
        if isinstance(value, dt.datetime):
            return value.replace(tzinfo=None) < _FIRST_SAFE_TIME
        return value < _FIRST_SAFE_DAY

    def ensure_not_met(self, batch: pa.RecordBatch, path: str) -> None:
        """Refuse values whose meaning differs between the calendars.

        Args:
            batch: Columns as stored.
            path: The file, for the error.

        Raises:
            TableError: The batch has such a value (kind `OPTIMIST_LEGACY_CALENDAR`, fields `path`
                and `column`).
        """
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            if self._has_affected_values(column):
                raise TableError(
                    f"The column {shown(name)} of {shown(path)} has dates before 1582 or times "
                    "before 1900 in the old calendar of Spark 2. Read the table with Spark on the "
                    "native plane, which converts them, or rewrite the file there.",
                    kind="OPTIMIST_LEGACY_CALENDAR",
                    path=path,
                    column=name,
                )

    def _has_affected_values(self, column: pa.Array) -> bool:
        kind = column.type
        if pa.types.is_struct(kind):
            return any(map(self._has_affected_values, column.flatten()))
        if pa.types.is_map(kind):
            return self._has_affected_values(column.keys) or self._has_affected_values(column.items)
        if is_list(kind):
            return self._has_affected_values(column.flatten())
        if pa.types.is_date(kind):
            return self.dates_and_times and _has_older(column, _FIRST_SAFE_DAY)
        if not pa.types.is_timestamp(kind):
            return False
        if kind.tz is None:
            return self.int96 and _has_older(column, _FIRST_SAFE_TIME)
        first = _FIRST_SAFE_TIME.replace(tzinfo=dt.timezone.utc)
        return self.dates_and_times and _has_older(column, first)


def _has_older(column: pa.Array, first: dt.date) -> bool:
    return bool(pc.any(pc.less(column, pa.scalar(first, column.type)), min_count=0).as_py())
