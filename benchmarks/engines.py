"""The engines under comparison, each behind the same few calls, made to do the same work.

Each has a module of its own, loaded when it is asked for: a process that measures the memory of one
engine must not hold the other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from locations import Location

__all__ = ["CHECKPOINT_INTERVAL", "ENGINES", "FEW_BELOW", "OURS", "THEIRS", "Engine", "load_engine"]

OURS, THEIRS = "optimist", "deltalake"
ENGINES = (OURS, THEIRS)

CHECKPOINT_INTERVAL = "10"
"""The same for all tables: with deltalake's own default, 100, appends would grow slower along the
log, and the benchmark would measure that."""

FEW_BELOW = 100_000_000
"""About 1 % of the files of `big_log.py` begin with a smaller `flight_id`."""


@dataclass(frozen=True, slots=True)
class Engine:
    """What one engine does for each measurement.

    Attributes:
        create: Make a table at the location with the rows as its first commit.
        append: Append rows to the table at the location, as a job that knows only the path does.
        appender: Return an append to the location that keeps the table open from call to call.
        open_table: Open the table without its files; returns the version.
        list_files: Open the table and list the full paths of its live files as Python's texts;
            return their number.
        find: Open a table of `big_log.ensure_even_log`, and ask for the files of one partition;
            return their number.
        append_row: Append one row to such a table, as a job that knows only the path does; return
            the version.
        planner: Open the table and plan a query, as a service that keeps it open does; return a
            call that plans another query, one that needs about 1 % of the files, and returns their
            number.
    """

    create: Callable[[Location, pa.Table], object]
    append: Callable[[Location, pa.Table], object]
    appender: Callable[[Location], Callable[[pa.Table], object]]
    open_table: Callable[[str], int]
    list_files: Callable[[str], int]
    find: Callable[[str], int]
    append_row: Callable[[str], int]
    planner: Callable[[str], Callable[[], int]]


def load_engine(name: str) -> Engine:
    """One of `ENGINES`; loads its library."""
    found = import_module(f"engine_{name}").ENGINE
    assert isinstance(found, Engine)
    return found
