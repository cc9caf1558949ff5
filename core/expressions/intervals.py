"""Constants of intervals: `INTERVAL 1 DAY`, `INTERVAL '1-2' YEAR TO MONTH`, `INTERVAL '1 day'`.

Spark reads amounts and units together, so a wrong amount is an error of grammar.
"""

from __future__ import annotations

import re

from optimist.core.expressions.cursor import Cursor
from optimist.core.expressions.tokens import read_text
from optimist.core.expressions.tree import Interval

__all__ = ["is_at_interval", "read_interval"]

_MONTHS = r"(?:year|month)s?"
_TIMES = r"(?:week|day|hour|minute|second|millisecond|microsecond)s?"
_UNIT = re.compile(f"{_MONTHS}|{_TIMES}|nanoseconds?", re.IGNORECASE | re.ASCII)
_SIGN = r"[+-]?\s*"


def _amount_pattern(unit: str) -> str:
    return rf"{_SIGN}[0-9]+\s+{unit}"


_FRACTION = rf"{_SIGN}(?:[0-9]+\.[0-9]{{0,9}}|\.[0-9]{{1,9}})\s+seconds?"
_TEXT = re.compile(
    rf"(?:interval\s+)?(?:{_amount_pattern(_MONTHS)}(?:\s+{_amount_pattern(_MONTHS)})*"
    rf"|(?:{_amount_pattern(_TIMES)}|{_FRACTION})(?:\s+(?:{_amount_pattern(_TIMES)}|{_FRACTION}))*)",
    re.IGNORECASE | re.ASCII,
)
"""An interval has either months or times, since months have no common length."""
_PART = re.compile(r"([+-]?)\s*([0-9.]+)\s+([a-z]+?)s?(?![a-z])", re.IGNORECASE)
_MANY_DIGITS = 10
"""The most characters of an amount whose length is known here."""
_IN_MONTHS = {"year": 12, "month": 1}
_DAY_US = 86_400_000_000
_IN_MICROS = {
    "week": 7 * _DAY_US,
    "day": _DAY_US,
    "hour": 3_600_000_000,
    "minute": 60_000_000,
    "second": 1_000_000,
    "millisecond": 1_000,
    "microsecond": 1,
}
_DAYS, _TWO, _SECONDS = r"[0-9]+", r"[0-9]{1,2}", r"[0-9]{1,2}(?:\.[0-9]{1,9})?"
_SPANS = {
    ("YEAR", "MONTH"): "[0-9]+-[0-9]+",
    ("DAY", "HOUR"): f"{_DAYS} {_TWO}",
    ("DAY", "MINUTE"): f"{_DAYS} {_TWO}:{_TWO}",
    ("DAY", "SECOND"): f"{_DAYS} {_TWO}:{_TWO}:{_SECONDS}",
    ("HOUR", "MINUTE"): f"{_DAYS}:{_TWO}",
    ("HOUR", "SECOND"): f"{_DAYS}:{_TWO}:{_SECONDS}",
    ("MINUTE", "SECOND"): f"{_DAYS}:{_SECONDS}",
}
"""The form of the text in `INTERVAL '1 2' DAY TO HOUR` and similar constants."""


def is_at_interval(cursor: Cursor) -> bool:
    """Tell whether a constant follows, and not a column named INTERVAL, as in `interval - 1`."""
    if not cursor.is_at("INTERVAL") or not _is_amount(cursor, 1):
        return False
    is_signed = cursor.peek(1).text in ("+", "-")
    return not is_signed or _UNIT.fullmatch(cursor.peek(3).text) is not None


def read_interval(cursor: Cursor) -> Interval:
    """Read the constant that follows.

    Raises:
        NotSqlError: It is not an interval in Spark.
    """
    start = cursor.advance().start
    amounts: list[str] = []
    while not amounts or _is_amount(cursor, 0):
        mark = cursor.mark()
        amount, is_text = _read_amount(cursor)
        if amounts and not _UNIT.fullmatch(cursor.peek().text):
            cursor.reset(mark)  # `INTERVAL 1 DAY + 2`
            break
        if not amounts and is_text and not _UNIT.fullmatch(cursor.peek().text):
            amounts.append(amount)  # the text has the units: INTERVAL '1 day'
            break
        unit = cursor.word("the unit of an interval")
        if not amounts and is_text and cursor.is_at("TO"):
            _read_span_end(cursor, amount, unit.upper())
            return Interval(start=start, end=cursor.last_end)
        if re.search(r"[^\W\d_]", amount):
            cursor.fail("the amount of an interval is a number", is_before=True)
        amounts.append(f"{amount} {unit}")
    text = " ".join(amounts).strip()
    if not _TEXT.fullmatch(text):
        cursor.fail("this is not an interval", is_before=True)
    return _measured(text, start, cursor.last_end)


def _measured(text: str, start: int, end: int) -> Interval:
    """Return the interval of a valid text such as `1 day -2 hours`, with its length."""
    parts = [(sign + digits, unit.lower()) for sign, digits, unit in _PART.findall(text)]
    if not all("." not in amount and len(amount) <= _MANY_DIGITS for amount, _ in parts):
        return Interval(start=start, end=end)
    if parts[0][1] in _IN_MONTHS:
        months = sum(int(amount) * _IN_MONTHS[unit] for amount, unit in parts)
        return Interval(months, start=start, end=end)
    micros = sum(int(amount) * _IN_MICROS[unit] for amount, unit in parts)
    is_of_days = all(unit in ("week", "day") for _, unit in parts)
    return Interval(None, micros, is_of_days, start=start, end=end)


def _is_amount(cursor: Cursor, distance: int) -> bool:
    is_signed = cursor.peek(distance).text in ("+", "-")
    return cursor.peek(distance + is_signed).kind in ("number", "text")


def _read_amount(cursor: Cursor) -> tuple[str, bool]:
    """Read the signed amount before a unit, and tell whether it is a text."""
    sign = cursor.advance().text if cursor.is_at_any("+", "-") else ""
    token = cursor.advance()
    if token.kind == "number":
        return sign + token.text, False
    text = read_text(token)
    if sign != "-":
        return text, True
    return text[1:] if text.startswith("-") else f"-{text}", True


def _read_span_end(cursor: Cursor, text: str, begin: str) -> None:
    cursor.expect("TO")
    end = cursor.word("the unit of an interval").upper()
    form = _SPANS.get((begin, end))
    if form is None:
        cursor.fail(f"an interval from {begin} can't end there", is_before=True)
    if not re.fullmatch(rf"\s*[+-]?{form}\s*", text, re.ASCII):
        cursor.fail("this is not an interval", is_before=True)
