"""The number of rows in a data file, from its own footer."""

from __future__ import annotations

import pyarrow.parquet as pq

from optimist.core.data.storage.unreadable_files import read_surely
from optimist.core.plugins.data_access import DataAccess

__all__ = ["rows_by_footer"]


def rows_by_footer(path: str, access: DataAccess | None) -> int:
    """Return the number of rows of a file at a full path, deleted ones included.

    Raises:
        StorageError: The store can't deliver the file.
        Exception: One of `unreadable_files.UNREADABLE`: the file is gone, or damaged.
    """
    return read_surely(path, access, lambda source: int(pq.read_metadata(source).num_rows))
