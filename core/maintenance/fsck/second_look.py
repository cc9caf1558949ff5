"""A second look at files of the log: writers and cleanups work while a table is checked."""

from __future__ import annotations

from optimist.core.plugins.logstore import FileStatus, LogStore

__all__ = ["is_there", "is_young", "status_now"]

_AT_WORK_MS = 10 * 60 * 1000
"""How long a writer may take between two files that belong together, such as checkpoint parts."""


def status_now(store: LogStore, path: str) -> FileStatus | None:
    """Return a file of the log as it is now, or None if it does not exist."""
    if store.finds_cheaply:
        return store.find(path)
    first = next(iter(store.list_from(path)), None)
    return first if first is not None and first.path == path else None


def is_there(store: LogStore, path: str) -> bool:
    """Return whether a file of the log exists now."""
    return status_now(store, path) is not None


def is_young(status: FileStatus, now_ms: int) -> bool:
    """Return whether the writer of a listed file may still be at work."""
    return status.modified_ms > now_ms - _AT_WORK_MS
