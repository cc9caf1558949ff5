"""The columns of a Parquet file for which a dictionary of values is worth its place.

A dictionary of values that hardly repeat makes a file larger and slower to write, and readers gain
nothing by it. A sample of a file's first row group decides. It is taken from all over the group,
because values that come round again do not repeat among neighbours.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["columns_with_dictionary"]

_FIRST_LOOK = 1 << 10
_MAY_REPEAT = 0.9
_SAMPLE = 1 << 12
_REPEATS = 0.992
"""The share of different values in a sample, at most, if a dictionary is worth it.

For 8 bytes a value, Arrow's writer gives up a dictionary of more than 131,072 values. Rows with so
many have 0.984 in a sample of a large group.
"""
_SEED = 2026


def columns_with_dictionary(rows: pa.Table) -> bool | list[str]:
    """Return the Parquet columns that get a dictionary, as pyarrow's writer takes them.

    Args:
        rows: The first row group of the file.
    """
    places: np.ndarray | None = None
    useless: set[str] = set()
    for item, values in zip(rows.schema, rows.columns, strict=True):
        if not _is_plain(item.type) or _share_of_distinct(values[:_FIRST_LOOK]) < _MAY_REPEAT:
            continue
        places = _sample_places(rows.num_rows) if places is None else places
        if _share_of_distinct(_taken(values, places)) > _REPEATS:
            useless.add(item.name)
    if not useless:
        return True
    return [path for item in rows.schema if item.name not in useless for path in _leaf_paths(item)]


def _is_plain(data_type: pa.DataType) -> bool:
    """Tell whether Arrow counts the values of a type."""
    is_text = pa.types.is_string(data_type) or pa.types.is_binary(data_type)
    return bool(is_text or pa.types.is_primitive(data_type) or pa.types.is_decimal(data_type))


def _share_of_distinct(values: pa.ChunkedArray) -> float:
    return float(pc.count_distinct(values).as_py() / max(1, len(values)))


def _taken(values: pa.ChunkedArray, places: np.ndarray) -> pa.ChunkedArray:
    """Return the values at some places in rising order, without a copy of all values."""
    taken, start = [], 0
    for chunk in values.chunks:
        first, end = np.searchsorted(places, (start, start + len(chunk)))
        taken.append(chunk.take(pa.array(places[first:end] - start)))
        start += len(chunk)
    return pa.chunked_array(taken, values.type)


def _sample_places(count: int) -> np.ndarray:
    """Return places all over some rows, always the same ones for as many rows.

    Each is at random within an equal part of the rows, so no two are the same. Values that repeat
    side by side would be missed, but those are found by the first look.
    """
    if count <= _SAMPLE:
        return np.arange(count)
    places = (np.arange(_SAMPLE) + _random_parts()) * (count / _SAMPLE)
    found: np.ndarray = np.minimum(places.astype(np.int64), count - 1)
    return found


@cache
def _random_parts() -> Any:
    return np.random.default_rng(_SEED).random(_SAMPLE)


def _leaf_paths(item: pa.Field, parents: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield the names of Parquet's columns for a field."""
    path, kind = (*parents, item.name), item.type
    if pa.types.is_struct(kind):
        for inner in kind:
            yield from _leaf_paths(inner, path)
    elif pa.types.is_map(kind):
        for name, inner in (("key", kind.key_field), ("value", kind.item_field)):
            yield from _leaf_paths(inner.with_name(name), (*path, "key_value"))
    elif pa.types.is_list(kind):
        yield from _leaf_paths(kind.value_field.with_name("element"), (*path, "list"))
    else:
        yield ".".join(path)
