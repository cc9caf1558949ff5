"""The cache of a checkpoint's columns."""

import pyarrow as pa

from optimist.core.log.column_cache import ColumnCache


def test_the_cache_keeps_the_latest_columns_within_its_size():
    cache = ColumnCache(100)
    for number in range(5):
        cache.put(("file", number, "size"), pa.array(range(5), pa.int64()))
    assert cache.num_bytes <= 100
    assert cache.get(("file", 0, "size")) is None
    assert cache.get(("file", 4, "size")).to_pylist() == list(range(5))
