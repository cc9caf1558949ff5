"""A bounded cache of the columns of a checkpoint's row groups."""

from __future__ import annotations

from collections import OrderedDict
from typing import TypeAlias

import pyarrow as pa

from optimist.core.forking import ForkSafeLock

__all__ = ["ColumnCache", "ColumnKey"]

ColumnKey: TypeAlias = tuple[str, int, str]
"""The path of a file, the number of a row group, and the name of a column."""


class ColumnCache:
    """Columns by recency of use, of a bounded size in all. Threads may share it.

    Args:
        max_bytes: The most bytes to keep.
    """

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self._columns: OrderedDict[ColumnKey, pa.Array] = OrderedDict()
        self._num_bytes = 0
        self._lock = ForkSafeLock()

    @property
    def num_bytes(self) -> int:
        """The bytes that are kept."""
        return self._num_bytes

    def get(self, key: ColumnKey) -> pa.Array | None:
        """Return the column, if it is kept."""
        with self._lock:
            found = self._columns.get(key)
            if found is not None:
                self._columns.move_to_end(key)
            return found

    def put(self, key: ColumnKey, column: pa.Array) -> None:
        """Keep a column, and drop those that nobody has used for the longest time."""
        size = column.nbytes
        with self._lock:
            if key in self._columns or size > self.max_bytes:
                return
            self._columns[key] = column
            self._num_bytes += size
            while self._num_bytes > self.max_bytes:
                _, dropped = self._columns.popitem(last=False)
                self._num_bytes -= dropped.nbytes
