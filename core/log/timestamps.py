"""Timestamps in users' spelling, and the `@` syntax of paths (spec 5.7)."""

from __future__ import annotations

import re
from datetime import date, datetime, time, timedelta, timezone
from typing import TypeAlias

from optimist.core.errors import UsageError
from optimist.core.errors.argument_types import whole_number, wrong_type
from optimist.core.errors.foreign_text import quoted
from optimist.core.values.time_zones import parse_zone

__all__ = ["Timestamp", "epoch_ms", "format_timestamp", "optional_epoch_ms", "parse_timestamp"]

Timestamp: TypeAlias = "str | int | date"
"""A time as callers give it: text, epoch milliseconds, a `datetime`, or a day, which is its start.

Without a zone it is in UTC.
"""

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MILLISECOND = timedelta(milliseconds=1)
_A_TIME = "a time: text, a datetime, or epoch milliseconds"
_TIMESTAMP = re.compile(
    r"(?P<year>[0-9]{4})(?:-(?P<month>[0-9]{1,2})(?:-(?P<day>[0-9]{1,2})"
    r"(?:[T ]+(?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{1,2})"
    r"(?::(?P<second>[0-9]{1,2})(?:\.(?P<fraction>[0-9]{1,9}))?)?"
    r"\s*(?P<zone>\S.*)?)?)?)?"
)


def epoch_ms(given: Timestamp, argument: str = "timestamp") -> int:
    """Return the epoch milliseconds of a time in any form that callers have for it.

    Args:
        given: The time.
        argument: The name of the caller's argument, for the error.

    Raises:
        ArgumentTypeError: It is no time (kind `OPTIMIST_INVALID_ARGUMENT_TYPE`).
        UsageError: The text is not a timestamp (kind `DELTA_TIMESTAMP_INVALID`).
    """
    if isinstance(given, str):
        return parse_timestamp(given)
    if isinstance(given, datetime):
        return _ms_of(given, argument)
    if isinstance(given, date):
        return _ms_of(datetime.combine(given, time()), argument)
    if isinstance(given, bool) or not hasattr(given, "__index__"):
        raise wrong_type(argument, given, _A_TIME)
    return whole_number(given, argument)


def optional_epoch_ms(given: Timestamp | None, argument: str) -> int | None:
    """Return the epoch milliseconds of a time, or None without one (see `epoch_ms`)."""
    return None if given is None else epoch_ms(given, argument)


def _ms_of(moment: datetime, argument: str) -> int:
    zoned = moment if moment.tzinfo is not None else moment.replace(tzinfo=timezone.utc)
    try:
        return int((zoned - _EPOCH) // _MILLISECOND)
    except (TypeError, ValueError):  # "not a time", the null of pandas, is a datetime to Python
        raise wrong_type(argument, moment, _A_TIME) from None


def parse_timestamp(text: str) -> int:
    """Return the epoch milliseconds of a timestamp in ISO's or Spark's spelling.

    It accepts `2026`, `2026-11`, `2026-11-20`, `2026-11-20 10:00`, `2026-11-20T10:00:00.123456Z`,
    `2026-11-20 10:00:00 +01:00` and `2026-11-20 10:00:00 Europe/Berlin`. A text without a zone is
    in UTC. Digits below a millisecond are cut off.

    Raises:
        UsageError: The text is not a timestamp (kind `DELTA_TIMESTAMP_INVALID`).
    """
    match = _TIMESTAMP.fullmatch(text.strip())
    if match is None:
        raise _invalid_timestamp(text)
    parts = match.groupdict()
    try:
        moment = datetime(
            int(parts["year"]),
            int(parts["month"] or 1),
            int(parts["day"] or 1),
            int(parts["hour"] or 0),
            int(parts["minute"] or 0),
            int(parts["second"] or 0),
            int((parts["fraction"] or "0").ljust(6, "0")[:6]),
            tzinfo=parse_zone((parts["zone"] or "Z").strip()),
        )
        return (moment - _EPOCH) // _MILLISECOND
    except (ValueError, OverflowError):
        raise _invalid_timestamp(text) from None


def format_timestamp(timestamp_ms: int) -> str:
    """Return epoch milliseconds as text in UTC, or as a number beyond the calendar."""
    try:
        moment = _EPOCH + timedelta(milliseconds=timestamp_ms)
    except OverflowError:
        return f"{timestamp_ms} ms"
    return moment.isoformat(sep=" ", timespec="milliseconds").replace("+00:00", "Z")


def _invalid_timestamp(text: str) -> UsageError:
    return UsageError(
        f"{quoted(text)} is not a timestamp. Write it as '2026-11-20', '2026-11-20 10:00:00' or "
        "'2026-11-20T10:00:00.000Z'. A time without a zone is in UTC.",
        kind="DELTA_TIMESTAMP_INVALID",
        timestamp=text,
    )
