"""Numbers as people read them: with units, thousands and few digits."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from optimist.core.errors.size_text import bytes_text

__all__ = ["bytes_text", "count_text", "number_text", "plural", "share_text", "time_text"]

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def count_text(count: int | None) -> str:
    """Return a count with commas, or `unknown`."""
    return "unknown" if count is None else f"{count:,}"


def number_text(value: float) -> str:
    """Return a number with at most one digit after the point."""
    return f"{value:,.1f}".removesuffix(".0")


def share_text(part: int, whole: int) -> str:
    """Return a part as a percentage, or a dash if there is no whole."""
    if not whole:
        return "-"
    share = 100 * part / whole
    if part and share < 1:
        return "below 1 %"
    if part < whole and share > 99:
        return "above 99 %"
    return f"{share:.0f} %"


def plural(count: int, noun: str, many: str | None = None) -> str:
    """Return a count with its noun, such as `1 file` and `2 files`."""
    return f"{count:,} {noun if count == 1 else many or noun + 's'}"


def time_text(time_ms: int) -> str:
    """Return epoch milliseconds as a minute in UTC, or as a number beyond the calendar."""
    try:
        moment = _EPOCH + timedelta(milliseconds=time_ms)
    except OverflowError:
        return f"{time_ms} ms"
    return moment.strftime("%Y-%m-%d %H:%M UTC")
