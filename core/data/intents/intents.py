"""Intents: writers tell VACUUM that they are writing files which no version names yet (spec 10.12).

An intent is a small file in `_optimist_intents` below the table, made before the first data file of
a write, and needed until its commit. VACUUM spares files that no version names if they are not
older than an intent that is alive. Times are those that the store gives to both files, so no
writer's clock counts.

| where | how | stale when |
|---|---|---|
| local disk | a file per write, see `local_intents` | its lock is free: its process is dead |
| stores | shared by writes of a process, see `stored_intents` | it is older than its name says |

The name is the number of hours after which an intent is stale where nothing else tells, and a UUID.
Names that begin with `_` are hidden to readers and to VACUUM, this engine's and others'.
"""

from __future__ import annotations

import re
from typing import Protocol

from optimist.core.data.intents.local_intents import LocalIntent
from optimist.core.data.intents.stored_intents import begin_stored
from optimist.core.data.storage.listed_files import is_on_disk
from optimist.core.data.storage.storage_errors import storage_errors
from optimist.core.data.table_ref import TableRef
from optimist.core.paths import join, strip_file_scheme

__all__ = ["INTENTS", "Intent", "begin_intent", "hours_of", "intents_directory"]

_NAME = re.compile(r"([1-9][0-9]{0,4})h-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
INTENTS = "_optimist_intents"
"""The name of the directory."""


class Intent(Protocol):
    """An intent, or the share of one write in it."""

    def end(self) -> None:
        """The files of the write are committed, or gone; does not raise."""


def intents_directory(table: TableRef) -> str:
    """The full path of the directory that holds a table's intents."""
    return join(table.table_path, INTENTS)


def begin_intent(table: TableRef, table_id: str | None) -> Intent | None:
    """Tell of a write that is about to make its first file; None where that is switched off.

    Args:
        table: Where the table is.
        table_id: The id in its metadata; None of a new one.

    Raises:
        StorageError: The store or the file system failed; no file may be written.
        TableError: A symbolic link leads out of the table.
    """
    if not table.options.intents_enabled:
        return None

    def new_path() -> str:
        name = f"{table.options.intents_hours}h-{table.clock.new_uuid()}"
        return join(intents_directory(table), name)

    path = new_path()
    with storage_errors("written", path):
        if not is_on_disk(table.table_path):
            return begin_stored(table, table_id, new_path)
        table.data_paths.ensure_not_led_out(path)
        return LocalIntent(strip_file_scheme(path))


def hours_of(name: str) -> int | None:
    """After how many hours an intent is stale, by its name; None if it is none."""
    match = _NAME.fullmatch(name)
    return None if match is None else int(match.group(1))
