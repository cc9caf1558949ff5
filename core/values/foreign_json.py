"""Parses JSON that others wrote into plain values; a bad text is a `ValueError`, never worse.

Python's parser accepts more than JSON (`NaN`, `Infinity`), and deep nesting ends in a
`RecursionError`, here or wherever the value is later copied, printed or sent on. A table may have
been written by anyone, and must not be able to cause either.
"""

from __future__ import annotations

import json
from decimal import Decimal, InvalidOperation
from typing import Any

from optimist.core.values.field_types import LARGEST_LONG

__all__ = [
    "MAX_JSON_DEPTH",
    "NestedTooDeepError",
    "parse_exact_json",
    "parse_json",
    "parse_log_json",
]

MAX_JSON_DEPTH = 256
"""How deep lists and objects may be nested; each level of a table's schema takes three."""


class NestedTooDeepError(ValueError):
    """The lists and objects of a JSON text are nested deeper than `MAX_JSON_DEPTH`."""

    def __init__(self) -> None:
        super().__init__(f"it is nested deeper than {MAX_JSON_DEPTH} levels")


def parse_json(text: str | bytes) -> Any:
    """Return the value of a JSON text.

    Raises:
        ValueError: The text is not JSON in UTF-8, or is nested deeper than `MAX_JSON_DEPTH` (then a
            `NestedTooDeepError`).
    """
    return _parsed(_DECODER, text)


def parse_log_json(text: str | bytes) -> Any:
    """As `parse_json`, but whole numbers of 64 bits are integers however they are written.

    JSON has one kind of number, and some writers put `17.0` or `1.7e12` where the log has a count.
    """
    return _parsed(_LOG_DECODER, text)


def parse_exact_json(text: str) -> Any:
    """As `parse_json`, but numbers become exact decimals, and a key that comes twice is refused.

    `1e999999` is a small decimal but a huge whole number: look at `Decimal.adjusted` before you
    convert one. `NaN` and the infinities are accepted as floats, because some writers put them in.
    """
    return _parsed(_EXACT_DECODER, text)


def _parsed(decoder: json.JSONDecoder, text: str | bytes) -> Any:
    whole = text if isinstance(text, str) else text.decode("utf-8")
    try:
        value = decoder.decode(whole)
    except RecursionError:
        raise NestedTooDeepError from None
    # A text with few brackets can't be nested deeply, which spares most texts the walk.
    if whole.count("{") + whole.count("[") > MAX_JSON_DEPTH:
        _ensure_shallow(value)
    return value


def _ensure_shallow(value: object) -> None:
    level = [value]
    for _ in range(MAX_JSON_DEPTH):
        inside = (inner for outer in level for inner in _inside(outer))
        level = [inner for inner in inside if isinstance(inner, dict | list)]
        if not level:
            return
    raise NestedTooDeepError


def _inside(value: object) -> Any:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _decimal(text: str) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation:
        raise ValueError("a number has an impossible exponent") from None


def _whole_if_possible(text: str) -> int | float:
    value = float(text)
    if not value.is_integer() or abs(value) > LARGEST_LONG:
        return value
    number = Decimal(text)  # exact, which the float is only up to 53 bits
    whole = int(number)
    return whole if number == whole else value


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key occurs twice")
    return found


_DECODER = json.JSONDecoder(parse_constant=_no_constant)
_LOG_DECODER = json.JSONDecoder(parse_constant=_no_constant, parse_float=_whole_if_possible)
_EXACT_DECODER = json.JSONDecoder(
    parse_int=_decimal, parse_float=_decimal, object_pairs_hook=_without_repeats
)
