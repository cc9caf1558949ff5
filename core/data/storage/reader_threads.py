"""How many threads read data files at a time."""

from __future__ import annotations

import os

from optimist.core.data.storage.listed_files import is_on_disk

__all__ = ["reader_threads"]

_MOST = 8


def reader_threads(table_path: str) -> int:
    """Return how many threads read files of a table.

    A reader of a store mostly waits. On a disk of this machine, more threads than cores take more
    memory and save no time.
    """
    return max(2, min(_MOST, os.cpu_count() or 1)) if is_on_disk(table_path) else _MOST
