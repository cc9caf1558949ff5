"""The columns of a Parquet file for which a dictionary of values is worth its place.

A dictionary of values that hardly repeat makes a file larger and slower to write, and readers gain
nothing by it. A sample of a file's first row group decides. It is taken from all over the group,
because values that come round again do not repeat among neighbours.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import pairwise
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
    unsure = [
        index
        for index, values in enumerate(rows.columns)
        if _is_plain(values.type) and _share_of_distinct(values[:_FIRST_LOOK]) >= _MAY_REPEAT
    ]
    sample = _sample(rows.select(unsure)) if unsure else rows.select([])
    useless = {
        item.name
        for item, values in zip(sample.schema, sample.columns, strict=True)
        if _share_of_distinct(values) > _REPEATS
    }
    if not useless:
        return True
    return [path for item in rows.schema if item.name not in useless for path in _leaf_paths(item)]


def _is_plain(data_type: pa.DataType) -> bool:
    """Tell whether Arrow counts the values of a type."""
    is_text = pa.types.is_string(data_type) or pa.types.is_binary(data_type)
    return bool(is_text or pa.types.is_primitive(data_type) or pa.types.is_decimal(data_type))


def _share_of_distinct(values: pa.ChunkedArray) -> float:
    return float(pc.count_distinct(values).as_py() / max(1, len(values)))


def _sample(rows: pa.Table) -> pa.Table:
    """Return rows from all over the given ones, without a copy of all."""
    batches = rows.to_batches()
    starts = np.cumsum([0, *(batch.num_rows for batch in batches)])
    numbers = _sample_places(rows.num_rows)
    firsts = np.searchsorted(numbers, starts).tolist()
    taken = [
        batch.take(pa.array(numbers[first:end] - start))
        for batch, start, (first, end) in zip(batches, starts, pairwise(firsts), strict=False)
    ]
    return pa.Table.from_batches(taken, rows.schema)


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
