"""Bounds as wide as all that their writers may have meant (spec 9.5).

A bound in the log is text, and need not be exact for the type that it is read as. What may lie
beyond the text is taken to lie there: a file too many costs time, and one too few is a wrong
answer. Bounds of decimals stay as they are written; the constant that they are compared with is
moved instead (`column_skipping.py`), and so it is for times that were cut to milliseconds.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.predicates.resolution import ResolvedColumn
from optimist.core.schema.types import DecimalType
from optimist.core.values.decimals import largest
from optimist.core.values.field_types import LARGEST_LONG, SMALLEST_LONG

__all__ = ["credible_decimals", "widened"]

Array: TypeAlias = Any

_LONG_DIGITS = 19
_UNREADABLE = "\ufffd"
_TOP = "\U0010ffff" * 32
"""Above every text that goes on in the same way, but for one that no query will ever name."""
_LAST_ODD_OFFSET = dt.datetime(1972, 1, 8, tzinfo=dt.timezone.utc)
_MINUTE = pa.scalar(60_000_000, pa.duration("us"))


def widened(low: Array, high: Array, column: ResolvedColumn) -> tuple[Array, Array]:
    """The least and the greatest value that the bounds of a column can mean, file by file.

    Args:
        low: Lower bounds in the column's own type, null where unknown.
        high: Upper bounds.
        column: The column.
    """
    if column.was_float:
        return _of_floats(low, high)
    if pa.types.is_string(low.type):
        return _of_texts(low, high)
    if str(column.data_type) == "timestamp":
        return _of_old_instants(low, high)
    return low, high


def credible_decimals(values: Array, data_type: DecimalType) -> Array:
    """Bounds of decimals, without those that can't be true or may have been cut off.

    delta-rs writes them as doubles, which may round beyond the type's largest number. It writes
    those of whole numbers as 64-bit integers, cut off at the ends of their range; a column with
    places behind the point may have had none when they were written.
    """
    limit = largest(data_type.precision, data_type.scale)
    is_credible = pc.and_(
        pc.greater_equal(values, pa.scalar(limit.copy_negate(), values.type)),
        pc.less_equal(values, pa.scalar(limit, values.type)),
    )
    if data_type.precision - data_type.scale >= _LONG_DIGITS:
        ends = pa.array([Decimal(SMALLEST_LONG), Decimal(LARGEST_LONG)], values.type)
        is_credible = pc.and_not(is_credible, pc.is_in(values, value_set=ends))
    return pc.if_else(is_credible, values, pa.scalar(None, values.type))


def _of_floats(low: Array, high: Array) -> tuple[Array, Array]:
    """Of a double that was a float: Spark writes 0.7 for the float nearest to it, which is less."""
    as_floats = (values.cast(pa.float32(), safe=False).cast(pa.float64()) for values in (low, high))
    least, greatest = as_floats
    return _chosen(pc.less, least, low), _chosen(pc.greater, greatest, high)


def _chosen(compare: Any, candidate: Array, value: Array) -> Array:
    # Not the lesser by `min_element_wise`, which passes over NaN.
    return pc.if_else(compare(candidate, value), candidate, value)


def _of_texts(low: Array, high: Array) -> tuple[Array, Array]:
    """Texts up to the first U+FFFD, which stands for whatever their writer could not write.

    Spark puts it for bytes that are no UTF-8. Some writers end shortened texts with it, and take it
    for the last character; those that take two UTF-16 units follow it.
    """
    if _has_unreadable(low):
        low = pc.replace_substring_regex(low, pattern=f"(?s){_UNREADABLE}.*$", replacement="")
    if _has_unreadable(high):
        high = pc.replace_substring_regex(high, pattern=f"(?s){_UNREADABLE}.*$", replacement=_TOP)
    return low, high


def _has_unreadable(texts: Array) -> bool:
    return bool(pc.any(pc.match_substring(texts, _UNREADABLE), min_count=0).as_py())


def _of_old_instants(low: Array, high: Array) -> tuple[Array, Array]:
    """Instants of a time when clocks were off by seconds, which early writers cut off an offset."""
    last = pa.scalar(_LAST_ODD_OFFSET, low.type)
    return (
        pc.if_else(pc.less(low, last), pc.subtract(low, _MINUTE), low),
        pc.if_else(pc.less(high, last), pc.add(high, _MINUTE), high),
    )
