"""Bounds as wide as their writers may have meant them (spec 9.5).

A bound in the log is text, and may be inexact for the type that readers give it. If a value may lie
beyond the text, the bound is moved there: one file too many costs time, and one too few is a wrong
answer. Bounds of decimals stay as written. Instead, the constant that is compared with them is
moved (`column_skipping.py`). The same goes for times that were cut to milliseconds.
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

__all__ = ["credible_decimals", "widened", "widened_over_files"]

Array: TypeAlias = Any

_LONG_DIGITS = 19
_UNREADABLE = "\ufffd"
_TOP = "\U0010ffff" * 32
"""A text above every text with the same beginning, except texts that no query will ever name."""
_LAST_ODD_OFFSET = dt.datetime(1972, 1, 8, tzinfo=dt.timezone.utc)
_MINUTE_US = 60_000_000


def widened(low: Array, high: Array, column: ResolvedColumn) -> tuple[Array, Array]:
    """Return the least and the greatest value that the bounds of a column can mean, per file.

    Args:
        low: Lower bounds in the column's own type, null where unknown.
        high: Upper bounds.
        column: The column.
    """
    if column.was_float:
        return _widen_floats(low, high)
    if pa.types.is_string(low.type):
        return _widen_texts(low, high)
    if str(column.data_type) == "timestamp":
        return _widen_old_instants(low, high)
    return low, high


def widened_over_files(
    lows: tuple[Array, Array], highs: tuple[Array, Array], column: ResolvedColumn
) -> tuple[Array, Array]:
    """Return bounds that no file's own widened bounds exceed, for groups of files.

    The bound that is widened furthest need not be the least or the greatest one as written.

    Args:
        lows: The least and the greatest of the files' lower bounds, per group; null where unknown.
        highs: The same of their upper bounds.
        column: The column.
    """
    data_type, kind = column.data_type, lows[0].type
    unknown = pa.nulls(len(lows[0]), kind)
    if pa.types.is_string(kind):
        return _least_text(*lows), _greatest_text(highs[1])
    if pa.types.is_floating(kind):  # a footer does not count NaN, the greatest value
        low = _widen_floats(lows[0], lows[0])[0] if column.was_float else lows[0]
        return low, unknown
    if isinstance(data_type, DecimalType):
        if data_type.precision - data_type.scale >= _LONG_DIGITS:
            return unknown, unknown
        low, top_low, bottom_high, high = (
            credible_decimals(each, data_type) for each in (*lows, *highs)
        )
        return _where_known(low, top_low), _where_known(high, bottom_high)
    if str(data_type) == "timestamp":
        low = _widen_old_instants(lows[0], lows[0])[0]
        return low, pc.add(highs[1], pa.scalar(_MINUTE_US, pa.duration("us")))
    return lows[0], highs[1]


def _where_known(values: Array, others: Array) -> Array:
    return pc.if_else(pc.is_valid(others), values, pa.scalar(None, values.type))


def _least_text(lows: Array, top_lows: Array) -> Array:
    """Return the least text that one of the lower bounds can mean.

    A bound between the least and the greatest one may be cut at a U+FFFD in it (see `_widen_texts`)
    and then be less than the least one. So any beginning counts that, with a U+FFFD after it, is no
    more than the greatest one.
    """
    pairs = zip(lows.to_pylist(), top_lows.to_pylist(), strict=True)
    return pa.array([_cut_low(low, top) for low, top in pairs], pa.string())


def _cut_low(low: str | None, top: str | None) -> str | None:
    if low is None or top is None:
        return None
    for at, (least, greatest) in enumerate(zip(low, top, strict=False)):
        if greatest >= _UNREADABLE:
            return low[:at]
        if least != greatest:  # then `least` is less, whatever follows it
            return low[: at + 1]
    return low


def _greatest_text(highs: Array) -> Array:
    """Return the greatest text that one of the upper bounds can mean (see `_least_text`)."""
    return pc.replace_substring_regex(
        highs, pattern=f"(?s)[{_UNREADABLE}-\U0010ffff].*$", replacement=_TOP
    )


def credible_decimals(values: Array, data_type: DecimalType) -> Array:
    """Return bounds of decimals without those that can't be true or may have been cut off.

    delta-rs writes them as doubles, which may round beyond the type's largest number. It writes
    those of whole numbers as 64-bit integers, cut off at the ends of their range. A column that now
    has a scale may have had none when they were written.
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


def _widen_floats(low: Array, high: Array) -> tuple[Array, Array]:
    """Widen bounds of a double that was a float, as Spark writes 0.7 for a smaller float."""
    as_floats = (values.cast(pa.float32(), safe=False).cast(pa.float64()) for values in (low, high))
    least, greatest = as_floats
    return _choose_values(pc.less, least, low), _choose_values(pc.greater, greatest, high)


def _choose_values(compare: Any, candidate: Array, value: Array) -> Array:
    # `min_element_wise` would ignore NaN.
    return pc.if_else(compare(candidate, value), candidate, value)


def _widen_texts(low: Array, high: Array) -> tuple[Array, Array]:
    """Cut texts at the first U+FFFD, which stands for bytes that their writer could not write.

    Spark writes it for bytes that are not UTF-8. Some writers end shortened texts with it, because
    they take it for the last character. Characters of two UTF-16 units sort after it.
    """
    if _has_unreadable(low):
        low = pc.replace_substring_regex(low, pattern=f"(?s){_UNREADABLE}.*$", replacement="")
    if _has_unreadable(high):
        high = pc.replace_substring_regex(high, pattern=f"(?s){_UNREADABLE}.*$", replacement=_TOP)
    return low, high


def _has_unreadable(texts: Array) -> bool:
    return bool(pc.any(pc.match_substring(texts, _UNREADABLE), min_count=0).as_py())


def _widen_old_instants(low: Array, high: Array) -> tuple[Array, Array]:
    """Widen instants from when clocks were off by seconds, which early writers cut."""
    last = pa.scalar(_LAST_ODD_OFFSET, low.type)
    minute = pa.scalar(_MINUTE_US, pa.duration("us"))
    return (
        pc.if_else(pc.less(low, last), pc.subtract(low, minute), low),
        pc.if_else(pc.less(high, last), pc.add(high, minute), high),
    )
