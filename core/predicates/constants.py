"""Constants as Spark reads them: typed literals, casts of literals, dates, timestamps, zones.

Every function returns None for a text of uncertain meaning: forms that Spark reads differently with
and without ANSI mode, years that Python can't hold, words such as `today`.
"""

from __future__ import annotations

import datetime as dt
import math
import re
import struct
from decimal import Decimal, InvalidOperation
from typing import Literal as OneOf

import pyarrow as pa

from optimist.core.predicates.tree import Literal, LiteralKind
from optimist.core.values.field_types import LARGEST_LONG, SMALLEST_LONG
from optimist.core.values.time_zones import instant, parse_zone

__all__ = [
    "MAX_PRECISION",
    "cast_literal",
    "date_of_days",
    "date_of_text",
    "is_float32",
    "number_literal",
    "round_to_float32",
    "time_of_micros",
    "timestamp_of_text",
]

MAX_PRECISION = 38

_EPOCH = dt.datetime(1970, 1, 1)
# Spark reads only ASCII digits, not those of other scripts.
_INTEGER = re.compile(r"^[+-]?\d{1,38}$", re.ASCII)
_NUMBER = re.compile(r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,4})?$", re.ASCII)
_SPECIAL_FLOATS = {"nan": math.nan, "infinity": math.inf, "-infinity": -math.inf}
_DATE = re.compile(r"^(\d{4})(?:-(\d{1,2}))?(?:-(\d{1,2}))?$", re.ASCII)
_TIMESTAMP = re.compile(
    r"^(\d{4})-(\d{1,2})-(\d{1,2})"
    r"(?:[ T](\d{1,2}):(\d{1,2}):(\d{1,2})(?:\.(\d{1,9}))?\s?(Z|UTC|[+-]\d{2}:\d{2})?)?$",
    re.ASCII,
)
_INTEGER_RANGES = {"byte": 7, "short": 15, "integer": 31, "long": 63}


def date_of_text(text: str) -> dt.date | None:
    """Parse `yyyy-[m]m-[d]d`, where a missing day or month means the first."""
    match = _DATE.match(text.strip(" "))
    if match is None:
        return None
    year, month, day = (int(part or 1) for part in match.groups())
    try:
        return dt.date(year, month, day)
    except ValueError:
        return None


def timestamp_of_text(text: str) -> dt.datetime | None:
    """Parse a date with or without time. The result is aware (UTC) if the text names a zone.

    A zone needs a time before it: Spark does not accept `2024-01-01Z`. Digits of a second beyond
    the sixth are cut off, as Spark does.
    """
    match = _TIMESTAMP.match(text.strip(" "))
    if match is None:
        return None
    *parts, fraction, zone = match.groups()
    year, month, day, hour, minute, second = (int(part or 0) for part in parts)
    micros = int((fraction or "0").ljust(6, "0")[:6])
    try:
        value = dt.datetime(year, month, day, hour, minute, second, micros)
        return value if zone is None else instant(value, parse_zone(zone))
    except (ValueError, OverflowError):
        return None


def round_to_float32(value: float) -> float:
    """Return the nearest number that a float column can hold."""
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def is_float32(value: float) -> bool:
    """Return whether a float column can hold the number exactly."""
    return math.isnan(value) or round_to_float32(value) == value


def date_of_days(days: int) -> Literal | None:
    """Return the date of a day, counted from 1970-01-01, or None for years beyond Python's."""
    try:
        return Literal((_EPOCH + dt.timedelta(days=days)).date(), "date")
    except OverflowError:
        return None


def time_of_micros(micros: int, kind: OneOf["timestamp", "timestamp_ntz"]) -> Literal | None:
    """Return the time of microseconds since 1970, or None for years beyond Python's."""
    try:
        value = _EPOCH + dt.timedelta(microseconds=micros)
    except OverflowError:
        return None
    return Literal(value.replace(tzinfo=dt.timezone.utc) if kind == "timestamp" else value, kind)


def number_literal(text: str) -> Literal | None:
    """Parse a number without suffix.

    With an exponent it is a double. Else with a point, or beyond 64 bits, it is a decimal, and
    otherwise an integer.
    """
    if not _NUMBER.match(text):
        return None
    if "e" in text.lower():
        return Literal(float(text), "double")
    if _INTEGER.match(text) and SMALLEST_LONG <= int(text) <= LARGEST_LONG:
        return Literal(int(text), "integer")
    return _parse_decimal(text)


def cast_literal(literal: Literal, target: str) -> Literal | None:
    """Return the constant that `CAST(literal AS target)` gives, or None if in doubt.

    `target` is one of Delta's type names. For a decimal it has no parameters.
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
        return _parse_decimal(str(literal.value))
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
        return _cast_text_to_float(stripped, target)
    if target == "decimal":
        return _parse_decimal(stripped)
    if target == "boolean":
        known = {"true": True, "false": False}.get(stripped.lower())
        return None if known is None else Literal(known, "boolean")
    return _cast_text_to_time(stripped, target)


def _cast_text_to_time(text: str, target: str) -> Literal | None:
    if target == "date":
        date = date_of_text(text)
        return None if date is None else Literal(date, "date")
    if target not in ("timestamp", "timestamp_ntz"):
        return None
    value = timestamp_of_text(text)
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
    if not isinstance(value, (int, float, Decimal)) or isinstance(value, bool):
        return None
    if target == "float" and not isinstance(value, float):
        return _cast_text_to_float(str(value), target)
    try:
        number = float(value)
    except OverflowError:
        return None
    if target == "float":
        return Literal(round_to_float32(number), "float")
    return Literal(number, "double")


def _cast_text_to_float(text: str, target: str) -> Literal | None:
    kind: LiteralKind = "float" if target == "float" else "double"
    if not _NUMBER.match(text):
        special = _SPECIAL_FLOATS.get(text.lower())
        return None if special is None else Literal(special, kind)
    if kind == "double":
        return Literal(float(text), kind)
    # By way of a double, the number would be rounded twice.
    return Literal(pa.scalar(text.strip().lstrip("+")).cast(pa.float32()).as_py(), kind)


def _parse_decimal(text: str) -> Literal | None:
    if not _NUMBER.match(text):
        return None
    try:
        value = Decimal(text)
    except InvalidOperation:
        return None
    _, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):  # NaN or infinite
        return None
    scale = max(0, -exponent)
    if max(len(digits) + max(0, exponent), scale) > MAX_PRECISION:
        return None
    # Avoid a positive exponent, so that the text of the value shows its scale.
    return Literal(Decimal(f"{value:f}"), "decimal")
