"""Reading constants as Spark does: typed literals, casts of literals, dates, timestamps, zones.

Every function answers None for a text whose meaning is not beyond doubt (forms that differ between
Spark's ANSI mode and the old one, years that Python can't hold, special words such as `today`).
"""

from __future__ import annotations

import datetime as dt
import math
import re
import struct
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from optimist.core.errors import UsageError
from optimist.core.predicates.tree import Literal, LiteralKind

__all__ = [
    "INT64_MAX",
    "INT64_MIN",
    "MAX_PRECISION",
    "cast_literal",
    "instant",
    "is_float32",
    "number_literal",
    "parse_date",
    "parse_timestamp",
    "round_to_float32",
    "session_zone",
]

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
MAX_PRECISION = 38

_INTEGER = re.compile(r"^[+-]?\d{1,38}$")
_NUMBER = re.compile(r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,4})?$")
_SPECIAL_FLOATS = {"nan": math.nan, "infinity": math.inf, "-infinity": -math.inf}
_DATE = re.compile(r"^(\d{4})(?:-(\d{1,2}))?(?:-(\d{1,2}))?$")
_TIMESTAMP = re.compile(
    r"^(\d{4})-(\d{1,2})-(\d{1,2})"
    r"(?:[ T](\d{1,2}):(\d{1,2}):(\d{1,2})(?:\.(\d{1,9}))?)?"
    r"\s?(Z|UTC|[+-]\d{2}:\d{2})?$"
)
_OFFSET = re.compile(r"^(?:UTC|GMT)?([+-])(\d{1,2})(?::?(\d{2}))?$")
_INTEGER_RANGES = {"byte": 7, "short": 15, "integer": 31, "long": 63}


def parse_date(text: str) -> dt.date | None:
    """`yyyy-[m]m-[d]d`, or the first of a year or month."""
    match = _DATE.match(text.strip(" "))
    if match is None:
        return None
    year, month, day = (int(part or 1) for part in match.groups())
    try:
        return dt.date(year, month, day)
    except ValueError:
        return None


def parse_timestamp(text: str) -> dt.datetime | None:
    """A date with or without time; aware (UTC) if the text names a zone, naive if not.

    More than six digits of a second are cut off, as Spark does.
    """
    match = _TIMESTAMP.match(text.strip(" "))
    if match is None:
        return None
    *parts, fraction, zone = match.groups()
    year, month, day, hour, minute, second = (int(part or 0) for part in parts)
    micros = int((fraction or "0").ljust(6, "0")[:6])
    try:
        value = dt.datetime(year, month, day, hour, minute, second, micros)
        return value if zone is None else instant(value, session_zone(zone))
    except (ValueError, OverflowError):
        return None


def instant(value: dt.datetime, zone: dt.tzinfo) -> dt.datetime:
    """The instant of a wall-clock time in a zone, in UTC.

    A time in a gap moves forward by the gap; of a time that comes twice, the first is meant.
    """
    aware = value.replace(tzinfo=zone) if value.tzinfo is None else value
    return aware.astimezone(dt.timezone.utc)


@lru_cache(maxsize=256)
def session_zone(name: str) -> dt.tzinfo:
    """The zone of a region name (`Europe/Berlin`), of `Z`, or of an offset (`+01:00`, `GMT+1`).

    Raises:
        UsageError: There is no such zone (kind `OPTIMIST_UNKNOWN_TIME_ZONE`).
    """
    if name in ("Z", "UTC", "Etc/UTC", "GMT"):
        return dt.timezone.utc
    match = _OFFSET.match(name)
    if match:
        sign, hours, minutes = match.groups()
        delta = dt.timedelta(hours=int(hours), minutes=int(minutes or 0))
        return dt.timezone(delta if sign == "+" else -delta)
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise UsageError(
            f"There is no time zone {name!r}.", kind="OPTIMIST_UNKNOWN_TIME_ZONE", zone=name
        ) from None


def round_to_float32(value: float) -> float:
    """The nearest number that a float column can hold."""
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def is_float32(value: float) -> bool:
    """Whether a float column can hold the number exactly."""
    return math.isnan(value) or round_to_float32(value) == value


def number_literal(text: str) -> Literal | None:
    """A number without suffix: integer, decimal (with a point), or double (with an exponent)."""
    if not _NUMBER.match(text):
        return None
    if "e" in text.lower():
        return Literal(float(text), "double")
    if _INTEGER.match(text) and INT64_MIN <= int(text) <= INT64_MAX:
        return Literal(int(text), "integer")
    return _decimal(text)


def cast_literal(literal: Literal, target: str) -> Literal | None:
    """The constant that `CAST(literal AS target)` is, if it loses nothing; else None.

    `target` is one of Delta's type names, `decimal` without its parameters.
    """
    if literal.value is None:
        return literal
    if isinstance(literal.value, str):
        return _cast_text(literal.value, target)
    if target in _INTEGER_RANGES:
        return _cast_to_integer(literal, _INTEGER_RANGES[target])
    if target in ("float", "double"):
        return _cast_to_float(literal, "float" if target == "float" else "double")
    if target == "decimal" and literal.kind in ("integer", "decimal"):
        return _decimal(str(literal.value))
    return literal if literal.kind == target else None


def _cast_text(text: str, target: str) -> Literal | None:
    stripped = text.strip(" ")
    if target == "string":
        return Literal(text, "string")
    if target in _INTEGER_RANGES:
        if not _INTEGER.match(stripped):
            return None
        return _cast_to_integer(Literal(int(stripped), "integer"), _INTEGER_RANGES[target])
    if target in ("float", "double"):
        value = _float(stripped)
        return None if value is None else _cast_to_float(Literal(value, "double"), target)
    if target == "decimal":
        return _decimal(stripped)
    if target == "boolean":
        known = {"true": True, "false": False}.get(stripped.lower())
        return None if known is None else Literal(known, "boolean")
    return _cast_text_to_time(stripped, target)


def _cast_text_to_time(text: str, target: str) -> Literal | None:
    if target == "date":
        date = parse_date(text)
        return None if date is None else Literal(date, "date")
    if target not in ("timestamp", "timestamp_ntz"):
        return None
    value = parse_timestamp(text)
    if value is None or (target == "timestamp_ntz" and value.tzinfo is not None):
        return None
    return Literal(value, "timestamp" if target == "timestamp" else "timestamp_ntz")


def _cast_to_integer(literal: Literal, bits: int) -> Literal | None:
    value = literal.value
    if literal.kind != "integer" or not isinstance(value, int):
        return None
    return literal if -(2**bits) <= value < 2**bits else None


def _cast_to_float(literal: Literal, target: str) -> Literal | None:
    value = literal.value
    if literal.kind not in ("integer", "decimal", "float", "double"):
        return None
    assert isinstance(value, (int, float, Decimal))
    kind: LiteralKind = "float" if target == "float" else "double"
    try:
        number = float(value)
    except OverflowError:
        return None
    return Literal(round_to_float32(number) if kind == "float" else number, kind)


def _float(text: str) -> float | None:
    if _NUMBER.match(text):
        return float(text)
    return _SPECIAL_FLOATS.get(text.lower())


def _decimal(text: str) -> Literal | None:
    if not _NUMBER.match(text):
        return None
    try:
        value = Decimal(text)
    except InvalidOperation:
        return None
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    scale = max(0, -exponent)
    if max(len(digits) + max(0, exponent), scale) > MAX_PRECISION:
        return None
    # Without a positive exponent, so that the text of the value shows its scale.
    return Literal(Decimal(f"{value:f}"), "decimal")
