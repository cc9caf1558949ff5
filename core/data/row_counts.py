"""How many rows a data file has, by its own footer."""

from __future__ import annotations

import pyarrow.parquet as pq

from optimist.core.data.filesystem import filesystem_for, open_to_read
from optimist.core.plugins.data_access import DataAccess

__all__ = ["rows_by_footer"]


def rows_by_footer(path: str, access: DataAccess | None) -> int:
    """The rows of a file at a full path, deleted ones included.

    Raises:
        Exception: One of `parquet_reader.UNREADABLE`: the file is gone, or can't be read.
    """
    filesystem, inner = filesystem_for(path, access)
    with open_to_read(filesystem, inner) as source:
        return int(pq.read_metadata(source).num_rows)
