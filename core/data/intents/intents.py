"""Intents: writers tell VACUUM about files that no version names yet (spec 10.12).

An intent is a small file in `_optimist_intents` below the table. A write makes it before its first
data file, and needs it until its commit. If a file that no version names is at least as young as a
live intent, VACUUM keeps it. Both times are those of the store, so no writer's clock counts.

| where | how | stale when |
|---|---|---|
| local disk | a file per write, see `local_intents` | its lock is free: its process is dead |
| stores | shared by writes of a process, see `stored_intents` | it is older than its name says |

The name is a number of hours and a UUID. After these hours an intent is stale, if nothing else
shows it. Names that begin with `_` are hidden to readers and to VACUUM, this engine's and others'.
"""

from __future__ import annotations

import re
from functools import partial
from typing import Protocol

from optimist.core.data.intents.local_intents import LocalIntent
from optimist.core.data.intents.stored_intents import begin_stored
from optimist.core.data.storage.listed_files import is_on_disk
from optimist.core.data.storage.storage_errors import storage_errors
from optimist.core.data.table_ref import TableRef
from optimist.core.paths import join, strip_file_scheme

__all__ = [
    "INTENTS",
    "Intent",
    "begin_intent",
    "hours_of",
    "intents_directory",
    "new_intent_path",
]

_NAME = re.compile(r"([1-9][0-9]{0,4})h-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
INTENTS = "_optimist_intents"
"""The name of the directory."""


class Intent(Protocol):
    """An intent, or the share of one write in it."""

    def end(self) -> None:
        """End the intent: the files of the write are committed, or gone. It does not raise."""


def intents_directory(table: TableRef) -> str:
    """Return the full path of the directory that holds a table's intents."""
    return join(table.table_path, INTENTS)


def new_intent_path(table: TableRef) -> str:
    """Return the full path of an intent that nobody else has."""
    name = f"{table.options.intents_hours}h-{table.clock.new_uuid()}"
    return join(intents_directory(table), name)


def begin_intent(table: TableRef, table_id: str | None) -> Intent | None:
    """Announce a write before its first file, or return None if intents are switched off.

    Args:
        table: The table.
        table_id: The id in its metadata. None for a new table.

    Raises:
        StorageError: The store or the file system failed. No file may be written.
        TableError: A symbolic link leads out of the table.
    """
    if not table.options.intents_enabled:
        return None

    path = new_intent_path(table)
    with storage_errors("written", path):
        if not is_on_disk(table.table_path):
            return begin_stored(table, table_id, partial(new_intent_path, table))
        table.data_paths.ensure_not_led_out(path)
        return LocalIntent(strip_file_scheme(path))


def hours_of(name: str) -> int | None:
    """Return the hours after which an intent is stale, by its name, or None for other names."""
    match = _NAME.fullmatch(name)
    return None if match is None else int(match.group(1))
