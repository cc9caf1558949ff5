"""The time by a service's own clock, which its answers over HTTP tell in their header `Date`."""

from __future__ import annotations

from datetime import timezone
from email.utils import parsedate_to_datetime

__all__ = ["ms_of_date"]


def ms_of_date(text: object) -> int | None:
    """Return the time in a header `Date` in epoch milliseconds; None if it is none.

    The header has whole seconds.
    """
    if not isinstance(text, str):
        return None
    try:
        moment = parsedate_to_datetime(text)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=timezone.utc)
        return int(moment.timestamp()) * 1000
    except (ValueError, OverflowError):
        return None
