"""Parsed columns of a checkpoint, converted back to the log's JSON form (spec 5.8).

A writer may write `stats_parsed` instead of `stats`, and `partitionValues_parsed` instead of
`partitionValues`. The rest of the engine knows one form, so this module converts the struct to
text, leaf by leaf: one pass over each column, and no cost per row.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["filled_maps", "partition_value_maps", "statistics_texts", "without_times"]

Array: TypeAlias = Any

_CONTROL = "[\x00-\x1f]"


def statistics_texts(stats: pa.StructArray) -> pa.StringArray:
    """Return each row of `stats_parsed` as the JSON text of `stats`, and null for null.

    Times keep their microseconds, so that bounds stay tight. Leaves of a type that statistics can't
    hold (binary, arrays, maps) are left out, which only makes them unknown.
    """
    return _render_object(stats)


def without_times(stats: pa.StructArray) -> pa.StructArray:
    """Return `stats_parsed` with null for each date and time, at any depth."""
    columns = [
        without_times(column)
        if pa.types.is_struct(column.type)
        else pa.nulls(len(column), column.type)
        if pa.types.is_temporal(column.type)
        else column
        for column in stats.flatten()
    ]
    return pa.StructArray.from_arrays(columns, fields=list(stats.type), mask=stats.is_null())


def partition_value_maps(values: pa.StructArray) -> pa.MapArray:
    """Return each row of `partitionValues_parsed` as the map `partitionValues` of the log.

    Keys are the physical names. A null value stays null (spec 10.2).
    """
    count, width = len(values), values.type.num_fields
    columns = [_partition_texts(column) for column in values.flatten()]
    # The entries go row by row, and the columns one after the other.
    entry = _count_up(count * width)
    row = pc.divide(entry, max(width, 1))
    column = pc.subtract(entry, pc.multiply(row, width))
    keys = pa.array([field.name for field in values.type], pa.string()).take(column)
    items = pa.concat_arrays([pa.array([], pa.string()), *columns])
    items = items.take(pc.add(pc.multiply(column, count), row))
    offsets = pc.multiply(_count_up(count + 1), width).cast(pa.int32())
    return pa.MapArray.from_arrays(offsets, keys, items)


def filled_maps(maps: pa.MapArray, others: pa.MapArray) -> pa.MapArray:
    """Return each row's map, or the other one if it is null or empty."""
    ends = maps.offsets
    is_filled = pc.and_(pc.greater(pc.subtract(ends[1:], ends[:-1]), 0), maps.is_valid())
    rows = _count_up(len(maps))
    both = pa.concat_arrays([maps.cast(others.type), others])
    return both.take(pc.if_else(is_filled, rows, pc.add(rows, len(maps))))


def _count_up(length: int) -> pa.Int64Array:
    ones = pa.repeat(pa.scalar(1, pa.int64()), length)
    return pc.subtract(pc.cumulative_sum(ones), 1)


def _to_json(array: Array) -> Array | None:
    """Return JSON text per row, null for null, or None for a type without JSON."""
    for is_type, render in _RENDERERS:
        if is_type(array.type):
            return render(array)
    return None


def _render_object(array: pa.StructArray) -> Array:
    entries = [pa.repeat(pa.scalar(""), len(array))]
    for field, child in zip(array.type, array.flatten(), strict=True):
        texts = _to_json(child)
        if texts is not None:
            key = f",{json.dumps(field.name, ensure_ascii=False)}:"
            entries.append(pc.fill_null(pc.binary_join_element_wise(key, texts, ""), ""))
    inner = pc.utf8_ltrim(pc.binary_join_element_wise(*entries, ""), ",")
    return _where_valid(array, pc.binary_join_element_wise("{", inner, "}", ""))


def _where_valid(array: Array, texts: Array) -> Array:
    if not array.null_count:
        return texts
    return pc.if_else(array.is_valid(), texts, pa.scalar(None, texts.type))


def _enclose_in_quotes(texts: Array) -> Array:
    return pc.binary_join_element_wise('"', texts, '"', "")


def _render_string(array: Array) -> Array:
    texts = array.cast(pa.string())
    texts = pc.replace_substring(texts, "\\", "\\\\")
    texts = pc.replace_substring(texts, '"', '\\"')
    if pc.any(pc.match_substring_regex(texts, _CONTROL), min_count=0).as_py():
        for code in range(0x20):
            texts = pc.replace_substring(texts, chr(code), f"\\u{code:04x}")
    return _enclose_in_quotes(texts)


def _render_float(array: Array) -> Array:
    texts = _number_text(array)
    # JSON has no infinities and no NaN, so the log has them as text (spec 9.1).
    return pc.if_else(pc.is_finite(array), texts, _enclose_in_quotes(texts))


def _number_text(array: Array) -> Array:
    texts = array.cast(pa.float64()).cast(pa.string())
    if pc.all(pc.is_finite(array), min_count=0).as_py():
        return texts
    texts = pc.replace_substring_regex(texts, "^-?nan$", "NaN")
    return pc.replace_substring_regex(texts, "inf$", "Infinity")


def _render_time(array: Array) -> Array:
    texts = pc.replace_substring(_wall_clock_text(array), " ", "T")
    return _enclose_in_quotes(
        pc.binary_join_element_wise(texts, "Z", "") if array.type.tz else texts
    )


def _wall_clock_text(array: Array) -> Array:
    """Render times as `2026-01-01 10:00:00.123456`, in UTC."""
    return array.cast(pa.timestamp("us"), safe=False).cast(pa.string())


def _render_plain(array: Array) -> Array:
    return array.cast(pa.string())


def _render_date(array: Array) -> Array:
    return _enclose_in_quotes(_render_plain(array))


def _is_text(kind: pa.DataType) -> bool:
    return kind in (pa.string(), pa.large_string())


_RENDERERS: tuple[tuple[Callable[[pa.DataType], bool], Callable[[Array], Array]], ...] = (
    (pa.types.is_struct, _render_object),
    (_is_text, _render_string),
    (pa.types.is_integer, _render_plain),
    (pa.types.is_boolean, _render_plain),
    (pa.types.is_floating, _render_float),
    (pa.types.is_decimal, _render_plain),
    (pa.types.is_date, _render_date),
    (pa.types.is_timestamp, _render_time),
)


def _partition_texts(array: Array) -> Array:
    if pa.types.is_floating(array.type):
        return _number_text(array)
    if not pa.types.is_timestamp(array.type):
        return _render_plain(array)
    texts = _wall_clock_text(array)
    if array.type.tz is None:
        return texts
    return pc.binary_join_element_wise(pc.replace_substring(texts, " ", "T"), "Z", "")
