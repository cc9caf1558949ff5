"""How many threads read data files at a time."""

from __future__ import annotations

from optimist.core.data.storage.listed_files import is_on_disk
from optimist.core.runtime.processors import count_processors

__all__ = ["reader_threads"]

_MOST = 8


def reader_threads(table_path: str) -> int:
    """Return how many threads read files of a table.

    A reader of a store mostly waits. On a disk of this machine, more threads than processors take
    more memory and save no time.
    """
    return max(2, min(_MOST, count_processors())) if is_on_disk(table_path) else _MOST
