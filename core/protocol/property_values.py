"""Texts of table properties: read as Delta's Java parsers do, stored in one spelling.

These parsers skip no blanks around a flag, a number or a name, and know no number beyond 32 bits if
the property is an `Int`. Other engines may still not understand a text that they accept: those want
`name` and not `NAME`, `interval 7 days` and not `7 DAYS`. So this module writes users' texts in the
standard spelling.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from optimist.core.errors.foreign_text import quoted
from optimist.core.values.field_types import LARGEST_LONG, SMALLEST_LONG

__all__ = [
    "CODEC",
    "COLUMN_LIST",
    "FLAG",
    "FORMAT_VERSION",
    "INTERVAL",
    "LONG",
    "MAPPING_MODE",
    "SIGNED_LONG",
    "TEXT",
    "ValueKind",
    "one_of",
    "parse_flag",
    "parse_interval_ms",
    "whole",
]

_LARGEST_INT = 2**31 - 1
_LONGEST_NUMBER = 40
_NO_INTERVAL = "must be an interval such as 'interval 30 days'"
_UNITS_US = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60 * 1_000_000,
    "hour": 3600 * 1_000_000,
    "day": 24 * 3600 * 1_000_000,
    "week": 7 * 24 * 3600 * 1_000_000,
}
_CODECS = ("brotli", "gzip", "lz4", "lz4_raw", "lzo", "none", "snappy", "uncompressed", "zstd")
_MAX_INTERVAL_LENGTH = 200
_TRIMMED_BY_JAVA = "".join(map(chr, range(0x21)))
_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]+")
_INTERVAL_PART = re.compile(
    r"([+-]?)\s*(?:([0-9]+)(?:(\.)([0-9]{0,9}))?|(\.)([0-9]{1,9}))\s+([a-z]+)(?:\s+|$)", re.ASCII
)


def _keep_spelling(text: str) -> str:
    return text


@dataclass(frozen=True, slots=True)
class ValueKind:
    """How the texts of a property are read and written.

    Attributes:
        parse: Turns a text into the value. Raises a `ValueError` that says what the text must be.
        spell: Returns the text to store for a text that parses. It may refuse a text that is only
            read.
    """

    parse: Callable[[str], Any]
    spell: Callable[[str], str] = _keep_spelling


def parse_flag(text: str) -> bool:
    """Parse `true` or `false`, in upper or lower case."""
    if text.lower() not in ("true", "false"):
        raise ValueError("must be true or false")
    return text.lower() == "true"


def parse_interval_ms(text: str) -> int:
    """Parse an SQL interval such as `interval 30 days` or `1 week 12 hours` into milliseconds.

    As in Spark, only seconds may have a fraction, and no part may have quotes.

    Raises:
        ValueError: The text is not an interval, is negative, exceeds 64 bits in microseconds, or
            counts months or years, whose length varies.
    """
    total_us = sum(number for number, _ in _parse_parts_us(text))
    if not 0 <= total_us <= LARGEST_LONG:
        raise ValueError("must not be negative, and its microseconds must fit in 64 bits")
    return total_us // 1000


def whole(minimum: int, maximum: int = _LARGEST_INT) -> ValueKind:
    """Return the kind of whole numbers within bounds."""

    def parse(text: str) -> int:
        if not _WHOLE_NUMBER.fullmatch(text) or len(text) > _LONGEST_NUMBER:
            raise ValueError("must be a whole number")
        number = int(text)
        if not minimum <= number <= maximum:
            raise ValueError(f"must be a whole number from {minimum} to {maximum}")
        return number

    return ValueKind(parse, lambda text: str(parse(text)))


def one_of(*allowed: str, any_case: bool = True) -> ValueKind:
    """Return the kind of these names, which are spelled in lower case."""

    def parse(text: str) -> str:
        name = text.lower() if any_case else text
        if name not in allowed:
            raise ValueError(f"must be one of {', '.join(allowed)}")
        return name

    return ValueKind(parse, parse)


def _split_names(text: str) -> tuple[str, ...]:
    """Split names at commas, except commas between back-ticks, which belong to the name."""
    parts = re.findall(r"(?:`(?:[^`]|``)*`|[^,])+", text)
    return tuple(part.strip() for part in parts if part.strip())


def _parse_format_version(text: str) -> str:
    if not re.fullmatch(r"1\.0\.0|2\.[0-9]+\.[0-9]+", text):
        raise ValueError("must be 1.0.0 or 2.x.y")
    return text


def _spell_codec(text: str) -> str:
    if text.lower() not in _CODECS:
        raise ValueError(f"must be one of {', '.join(_CODECS)}")
    return text.lower()


def _spell_interval(text: str) -> str:
    """Return the interval as one number of one unit, the only form that some engines read."""
    parts = _parse_parts_us(text)
    total_us = sum(number for number, _ in parts)
    units = [unit for _, unit in parts[:1]] if len(parts) == 1 else []
    units += sorted(_UNITS_US, key=lambda unit: -_UNITS_US[unit])
    unit = next(unit for unit in units if total_us % _UNITS_US[unit] == 0)
    number = total_us // _UNITS_US[unit]
    return f"interval {number} {unit}{'' if number == 1 else 's'}"


def _parse_parts_us(text: str) -> list[tuple[int, str]]:
    """Return the microseconds and the unit of each part of an interval."""
    if len(text) > _MAX_INTERVAL_LENGTH:
        raise ValueError(_NO_INTERVAL)
    rest = text.strip(_TRIMMED_BY_JAVA).lower().removeprefix("interval ").lstrip(_TRIMMED_BY_JAVA)
    parts: list[tuple[int, str]] = []
    while rest or not parts:
        match = _INTERVAL_PART.match(rest)
        if match is None:
            raise ValueError(_NO_INTERVAL)
        parts.append(_parse_part_us(match))
        rest = rest[match.end() :]
    return parts


def _parse_part_us(match: re.Match[str]) -> tuple[int, str]:
    sign, whole_text, point, fraction, bare_point, bare_fraction, written = match.groups()
    unit = written.removesuffix("s")
    if unit in ("month", "year"):
        raise ValueError(
            "must use weeks, days or hours, since months and years have no fixed length"
        )
    if unit not in _UNITS_US:
        raise ValueError(f"must not use {quoted(written)}, which is not a unit of time")
    if (point or bare_point) and unit != "second":
        raise ValueError("must have whole numbers, except for seconds")
    nanoseconds = int((fraction or bare_fraction or "").ljust(9, "0"))
    number_us = int(whole_text or 0) * _UNITS_US[unit] + nanoseconds // 1000
    return (-number_us if sign == "-" else number_us), unit


_MODES = one_of("none", "name", "id")


def _parse_logged_mode(text: str) -> str:
    """Parse a mode of column mapping, which an old version stored with blanks around it."""
    return str(_MODES.parse(text.strip()))


FLAG = ValueKind(parse_flag, str.lower)
LONG = whole(0, LARGEST_LONG)
SIGNED_LONG = whole(SMALLEST_LONG, LARGEST_LONG)
INTERVAL = ValueKind(parse_interval_ms, _spell_interval)
TEXT = ValueKind(str)
CODEC = ValueKind(str, _spell_codec)
"""Read as any text, because another engine may know more codecs. Users may set those of Parquet."""
MAPPING_MODE = ValueKind(_parse_logged_mode, _MODES.spell)
"""Read with blanks around it, though no other engine does, so that such a table can be repaired."""
COLUMN_LIST = ValueKind(_split_names)
FORMAT_VERSION = ValueKind(_parse_format_version)
