"""Time zones by name or offset, and the instant of a wall-clock time in one."""

from __future__ import annotations

import datetime as dt
import re
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from optimist.core.errors import UsageError
from optimist.core.errors.foreign_text import quoted

__all__ = ["instant", "parse_zone", "session_zone"]

_UTC = frozenset({"Z", "UTC", "GMT", "ETC/UTC"})
_SHORT_IDS = {
    "EST": "-05:00",
    "HST": "-10:00",
    "MST": "-07:00",
    "ACT": "Australia/Darwin",
    "AET": "Australia/Sydney",
    "AGT": "America/Argentina/Buenos_Aires",
    "ART": "Africa/Cairo",
    "AST": "America/Anchorage",
    "BET": "America/Sao_Paulo",
    "BST": "Asia/Dhaka",
    "CAT": "Africa/Harare",
    "CNT": "America/St_Johns",
    "CST": "America/Chicago",
    "CTT": "Asia/Shanghai",
    "EAT": "Africa/Addis_Ababa",
    "ECT": "Europe/Paris",
    "IET": "America/Indiana/Indianapolis",
    "IST": "Asia/Kolkata",
    "JST": "Asia/Tokyo",
    "MIT": "Pacific/Apia",
    "NET": "Asia/Yerevan",
    "NST": "Pacific/Auckland",
    "PLT": "Asia/Karachi",
    "PNT": "America/Phoenix",
    "PRT": "America/Puerto_Rico",
    "PST": "America/Los_Angeles",
    "SST": "Pacific/Guadalcanal",
    "VST": "Asia/Ho_Chi_Minh",
}
"""Java's `ZoneId.SHORT_IDS`. Spark accepts them as a session's zone, and in the text of a time."""
_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])([0-9]{1,2})(?::?([0-9]{2}))?")
_LARGEST_OFFSET = dt.timedelta(hours=18)
"""As in Java, and so in Spark."""


def parse_zone(text: str) -> dt.tzinfo:
    """Return the time zone for a region, `Z`, an offset (`+01:00`, `GMT+1`) or Java's short ids.

    Raises:
        ValueError: The zone does not exist.
    """
    if text.upper() in _UTC:
        return dt.timezone.utc
    text = _SHORT_IDS.get(text, text)
    match = _OFFSET.fullmatch(text)
    if match is None:
        return _region_zone(text)
    sign, hours, minutes = match.groups()
    offset = dt.timedelta(hours=int(hours), minutes=int(minutes or 0))
    if offset > _LARGEST_OFFSET or int(minutes or 0) > 59:
        raise ValueError("no such offset")
    return dt.timezone(offset if sign == "+" else -offset)


@lru_cache(maxsize=256)
def session_zone(name: str) -> dt.tzinfo:
    """Return the time zone that a session or a caller names (see `parse_zone`).

    Raises:
        UsageError: The zone does not exist (kind `OPTIMIST_UNKNOWN_TIME_ZONE`).
    """
    try:
        return parse_zone(name)
    except ValueError:
        raise UsageError(
            f"The time zone {quoted(name)} does not exist. Use a name such as Europe/Berlin, or an "
            "offset such as +02:00.",
            kind="OPTIMIST_UNKNOWN_TIME_ZONE",
            zone=name,
        ) from None


def instant(value: dt.datetime, zone: dt.tzinfo) -> dt.datetime:
    """Return the UTC instant of a wall-clock time in a zone.

    A time that the clocks skip moves forward by the gap. A time that comes twice means the first.
    """
    aware = value.replace(tzinfo=zone) if value.tzinfo is None else value
    return aware.astimezone(dt.timezone.utc)


def _region_zone(name: str) -> dt.tzinfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, OSError):  # the latter for the name of a directory
        raise ValueError("no such region") from None
