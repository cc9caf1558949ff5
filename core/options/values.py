"""Parsers of option values. An error names the key and the broken rule, never the value.

The value may be a secret that was meant for another key. So a parser's `ValueError` says how a
value must be, as a phrase that begins with "must", and quotes nothing. The `ConfigError` made from
it has no cause either, because reports show causes too.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import TypeVar
from urllib.parse import urlsplit

from optimist.core.errors import ConfigError
from optimist.core.values.field_types import LARGEST_LONG

__all__ = [
    "at_least",
    "blank_as",
    "invalid_option",
    "one_of",
    "parse_bool",
    "parse_bytes",
    "parse_option",
    "parse_positive",
    "parse_ratio",
    "parse_seconds",
    "parse_url",
    "parse_whole",
    "parse_whole_seconds",
]

_Value = TypeVar("_Value")
_Default = TypeVar("_Default")

_BYTES = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40, "p": 1 << 50}
_WHOLE = re.compile(r"[+-]?[0-9]{1,19}")


def parse_option(
    options: Mapping[str, str], name: str, parse: Callable[[str], _Value], *, key: str | None = None
) -> _Value:
    """Parse one option's value, without the blanks around it.

    The value itself is neither an argument nor a local variable here: crash reports show both.

    Args:
        options: The mapping that holds the option.
        name: The option's name in `options`.
        parse: The parser. Raises a `ValueError` that says how the value must be.
        key: The key as the user wrote it, for messages. Needed if `name` is only a part of it.

    Raises:
        ConfigError: The value does not parse (kind `OPTIMIST_INVALID_OPTION`).
    """
    if not isinstance(options[name], str):
        raise invalid_option(key or name, f"must be text, not {type(options[name]).__name__}")
    try:
        return parse(options[name].strip())
    except ValueError as error:
        rule = str(error)
    raise invalid_option(key or name, rule)  # after the handler, so that the error has no context


def invalid_option(key: str, rule: str) -> ConfigError:
    """Return the error for a value that does not parse.

    Args:
        key: The option's key.
        rule: The rule for the value, for example `must be true or false`.
    """
    return ConfigError(
        f"The value of {key} does not parse: it {rule}.", kind="OPTIMIST_INVALID_OPTION", key=key
    )


def parse_bool(text: str) -> bool:
    """Parse `true` or `false`, in upper or lower case."""
    folded = text.strip().lower()
    if folded not in ("true", "false"):
        raise ValueError("must be true or false")
    return folded == "true"


def parse_whole(text: str) -> int:
    """Parse a whole number that fits in 64 bits."""
    if not _WHOLE.fullmatch(text) or abs(int(text)) > LARGEST_LONG:
        raise ValueError("must be a whole number that fits in 64 bits")
    return int(text)


def at_least(minimum: int) -> Callable[[str], int]:
    """Return a parser of whole numbers that refuses numbers below `minimum`."""

    def parse(text: str) -> int:
        try:
            value = parse_whole(text)
        except ValueError:
            value = minimum - 1
        if value < minimum:
            raise ValueError(f"must be a whole number, at least {minimum}")
        return value

    return parse


def parse_seconds(text: str) -> float:
    """Parse a number of seconds, zero or more."""
    value = _parse_float(text)
    if not math.isfinite(value) or value < 0:
        raise ValueError("must be a number of seconds, not negative")
    return value


def parse_whole_seconds(text: str) -> int:
    """Parse a number of seconds, zero or more, and drop its fraction."""
    return int(parse_seconds(text))


def parse_bytes(text: str) -> int:
    """Parse a number of bytes, at least one, as Spark writes it: `1000`, `64k`, `1 MB`, `10g`."""
    folded = text.lower().replace(" ", "")
    digits = folded.rstrip("bkmgtp")
    unit = folded[len(digits) :].removesuffix("b") if len(folded) > len(digits) else ""
    if unit not in _BYTES:
        raise ValueError("must be a number of bytes, such as 1000, 64k or 10g")
    value = at_least(1)(digits) * _BYTES[unit]
    if value > LARGEST_LONG:
        raise ValueError("must be a number of bytes that fits in 64 bits")
    return value


def parse_ratio(text: str) -> float:
    """Parse a number from 0 to 1."""
    value = _parse_float(text)
    if not 0 <= value <= 1:
        raise ValueError("must be a number from 0 to 1")
    return value


def parse_positive(text: str) -> float:
    """Parse a number greater than zero."""
    value = _parse_float(text)
    if not math.isfinite(value) or value <= 0:
        raise ValueError("must be a number greater than zero")
    return value


def one_of(*allowed: str) -> Callable[[str], str]:
    """Return a parser that accepts only these words in any case, and gives them in lower case."""

    def parse(text: str) -> str:
        folded = text.lower()
        if folded not in allowed:
            raise ValueError(f"must be one of {', '.join(allowed)}")
        return folded

    return parse


def blank_as(
    default: _Default, parse: Callable[[str], _Value]
) -> Callable[[str], _Value | _Default]:
    """Return a parser that gives `default` for an empty value, and calls `parse` for others."""
    return lambda text: parse(text) if text else default


def parse_url(text: str) -> str:
    """Parse the URL of a server, cut trailing slashes, and refuse a URL with credentials."""
    try:
        parts = urlsplit(text)
        is_plain = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:  # its text quotes the URL
        is_plain = False
    if not is_plain or "@" in parts.netloc or parts.query or parts.fragment:
        raise ValueError("must be a URL such as http://127.0.0.1:9000, without credentials")
    return text.rstrip("/")


def _parse_float(text: str) -> float:
    try:
        return float(text)
    except ValueError:  # its text quotes the value
        return math.nan
