"""Casts of Arrow values to another type, as Spark's store assignment (ANSI) has them.

A number that does not fit is an error. What Spark cuts off without an error, such as the fraction
of a number that is stored as an integer, is an error here, too. Only the rounding of integers and
decimals to floating point is left as it is there.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["store_cast"]

_LONG_DIGITS = 20  # of an unsigned one, too
_ISO_DATE = r"^\d{4}-\d{2}-\d{2}$"


def store_cast(values: Any, target: pa.DataType) -> Any:
    """Cast an array, or a chunked one, to another type without parts.

    Args:
        values: The values, in a plain layout.
        target: The Arrow type of the column.

    Raises:
        pyarrow.ArrowInvalid: A value does not fit.
        pyarrow.ArrowNotImplementedError: There is no such cast.
    """
    source = values.type
    if pa.types.is_integer(source) and pa.types.is_floating(target):
        return values.cast(target, safe=False)  # rounds to the nearest, as Java does
    if pa.types.is_integer(source) and pa.types.is_decimal(target):
        # Arrow requires room for the largest integer, even if all values fit.
        wide = pa.decimal256(_LONG_DIGITS + target.scale, target.scale)
        return values.cast(wide).cast(target)
    if pa.types.is_decimal(source) and pa.types.is_floating(target):
        return values.cast(pa.string()).cast(target)  # Arrow's own cast is off by one bit at times
    if _is_text(source) and pa.types.is_date(target):
        return _dates_of(values).cast(target)
    return values.cast(target)


def _dates_of(texts: Any) -> Any:
    """Return dates of the form `2026-11-28`, of which there is one reading only."""
    plain = texts.cast(pa.string())
    if pc.any(pc.invert(pc.match_substring_regex(plain, _ISO_DATE))).as_py():
        raise pa.ArrowInvalid("a text is not a date of the form 2026-11-28")
    return plain.cast(pa.date32())


def _is_text(source: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(source)
        or pa.types.is_large_string(source)
        or pa.types.is_string_view(source)
    )
