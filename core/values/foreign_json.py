"""A parser for JSON that others wrote: a bad text raises a `ValueError`, never worse.

Python's parser accepts more than JSON (`NaN`, `Infinity`). Deep nesting ends in a `RecursionError`,
here or wherever the value is later copied, printed or sent on. Anyone may have written a table, and
it must not be able to cause either.
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
"""The deepest allowed nesting of lists and objects. Each level of a table's schema takes three."""


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
    return _parse(_DECODER, text)


def parse_log_json(text: str | bytes) -> Any:
    """Parse like `parse_json`, but return whole numbers of 64 bits as integers.

    JSON has one kind of number, and some writers write `17.0` or `1.7e12` where the log has a
    count.
    """
    return _parse(_LOG_DECODER, text)


def parse_exact_json(text: str) -> Any:
    """Parse like `parse_json`, but with exact decimals, and refuse repeated keys.

    `1e999999` is a small decimal but a huge whole number: check `Decimal.adjusted` before you
    convert one. `NaN` and the infinities become floats, because some writers use them.
    """
    return _parse(_EXACT_DECODER, text)


def _parse(decoder: json.JSONDecoder, text: str | bytes) -> Any:
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
        inside = (inner for outer in level for inner in _inner_values(outer))
        level = [inner for inner in inside if isinstance(inner, dict | list)]
        if not level:
            return
    raise NestedTooDeepError


def _inner_values(value: object) -> Any:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _parse_decimal(text: str) -> Decimal:
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


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")


def _refuse_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key occurs twice")
    return found


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)
_LOG_DECODER = json.JSONDecoder(parse_constant=_refuse_constant, parse_float=_whole_if_possible)
_EXACT_DECODER = json.JSONDecoder(
    parse_int=_parse_decimal, parse_float=_parse_decimal, object_pairs_hook=_refuse_repeats
)
