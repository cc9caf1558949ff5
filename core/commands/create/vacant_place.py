"""The check that a path is free for a new table."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from optimist.core.data.intents.intents import INTENTS, intents_directory, new_intent_path
from optimist.core.data.storage.listed_files import is_on_disk
from optimist.core.data.storage.stored_files import names_in
from optimist.core.data.table_ref import TableRef
from optimist.core.errors import ConfigError, LogFileNotFoundError, UsageError
from optimist.core.errors.foreign_text import shown
from optimist.core.log.names import log_path_of
from optimist.core.paths import join, name_of, strip_file_scheme

__all__ = [
    "ensure_vacant",
    "has_only_intents",
    "is_left_empty",
    "leave",
    "not_vacant",
    "occupied",
]

_LOG = name_of(log_path_of("table"))


def ensure_vacant(table: TableRef, *, but_for: Collection[str] = ()) -> None:
    """Refuse a path with files that would lie in the new table without being part of it.

    A `_delta_log` without commits is accepted, with all files beside it: a failed write left it.

    Args:
        table: The table to make.
        but_for: Names that are accepted: an earlier attempt to make this table may have left them.

    Raises:
        UsageError: The path has other files (kind `DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION`).
        StorageError: The path can't be listed.
    """
    names = _names_at(table)
    if _LOG in names:
        return
    names = [name for name in names if name not in (INTENTS, *but_for)]
    if names:
        raise not_vacant(table, f"{shown(names[0])}, among others" if names[1:] else names[0])


def is_left_empty(table: TableRef) -> bool:
    """Return whether no file is left of a failed attempt to make a table.

    Directories without files, which a disk keeps, are removed.
    """
    if is_on_disk(table.table_path):
        _remove_directories_without_files(Path(strip_file_scheme(table.table_path)))
    return not _names_at(table)


def has_only_intents(table: TableRef) -> bool:
    """Return whether nothing is at the path but files that say that a write is about to begin."""
    return _names_at(table) == [INTENTS]


@contextmanager
def occupied(table: TableRef) -> Iterator[None]:
    """Keep a file at the path meanwhile: for a table of its own, a catalog wants an empty place.

    Raises:
        StorageError: The file can't be written.
    """
    path = new_intent_path(table)
    table.store.ensure_directory(intents_directory(table))
    table.store.put_overwrite(path, b"\n")
    try:
        yield
    finally:
        table.store.delete(path)
        is_left_empty(table)  # removes the directory


def leave(table: TableRef) -> None:
    """Remove the directory of a path on a disk, unless somebody has put something there."""
    if is_on_disk(table.table_path):
        with suppress(OSError):
            Path(strip_file_scheme(table.table_path)).rmdir()


def not_vacant(table: TableRef, found: str) -> UsageError:
    """Return the error for a path that is not free."""
    return UsageError(
        f"The location {table.table_path} of the new table is not empty: it has {found}. Nothing "
        "was written. Remove what is there, or choose another location.",
        kind="DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION",
        path=table.table_path,
    )


def _remove_directories_without_files(place: Path) -> None:
    """Remove the directories in a place without files: writers announce theirs by a file first."""
    if any(files for _, _, files in os.walk(place)):
        return
    for folder, _, _ in os.walk(place, topdown=False):
        if Path(folder) != place:
            with suppress(OSError):  # somebody has put a file there meanwhile
                Path(folder).rmdir()


def _names_at(table: TableRef) -> list[str]:
    """Return the names of files and directories at the path, as far as they can be listed."""
    try:
        return names_in(table.table_path, table.data_access())
    except ConfigError:
        return _names_of_files(table)  # no driver for data files; the log's store can list


def _names_of_files(table: TableRef) -> list[str]:
    try:
        return [status.name for status in table.store.list_from(join(table.table_path, ""))]
    except LogFileNotFoundError:
        return []
