"""The values of one key in a column of maps, such as the files' values for a partition column."""

from __future__ import annotations

from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["values_of_key"]

_Maps = TypeVar("_Maps", pa.MapArray, pa.ChunkedArray)


def values_of_key(maps: _Maps, key: str) -> pa.StringArray | pa.ChunkedArray:
    """Return the first value that each map of texts has for a key, and null where it has none."""
    if isinstance(maps, pa.ChunkedArray):
        found = [values_of_key(chunk, key) for chunk in maps.chunks]
        return pa.chunked_array(found, pa.string())
    values = _of_equal_keys(maps, key)
    if values is None:
        values = pc.map_lookup(maps, pa.scalar(key, maps.type.key_type), "first")
    return values if values.type == pa.string() else values.cast(pa.string())


def _of_equal_keys(maps: pa.MapArray, key: str) -> pa.Array | None:
    """Return the same if all maps have the same keys in the same order, else None.

    Nearly all tables are such, and Arrow's own search through each map takes many times as long.
    """
    count = len(maps)
    if not count or maps.null_count:
        return None
    offsets = maps.offsets
    begin, end = offsets[0].as_py(), offsets[-1].as_py()
    width = (end - begin) // count
    sizes = pc.subtract(offsets[1:], offsets[:-1])
    if not pc.all(pc.equal(sizes, width)).as_py():
        return None
    keys, items = (each.slice(begin, end - begin) for each in (maps.keys, maps.items))
    if keys.null_count:  # as in a forged file
        return None
    repeats = pc.equal(keys.slice(width), keys.slice(0, max(len(keys) - width, 0)))
    if not pc.all(repeats, min_count=0).as_py():
        return None
    names = keys.slice(0, width).to_pylist()
    if key not in names:
        return pa.nulls(count, items.type)
    if width == 1:
        return items
    steps = pc.cumulative_sum(pa.repeat(pa.scalar(width, pa.int64()), count))
    return items.take(pc.add(steps, names.index(key) - width))
