"""The commit lock: one commit loop at a time per table, within this process (spec 1.12).

Assumes: all handles of a table in this process resolve its log to one path.
Provides: writers of this process queue up instead of racing; a store with visible partial writes is
    not
    read by one of them while another writes.
Does not provide: anything between processes. Exclusion there is the store's `put_if_absent`,
always.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from weakref import WeakValueDictionary

from optimist.core.logstore import LogStore
from optimist.core.options import EngineOptions

__all__ = ["commit_lock", "is_commit_lock_enabled"]


class _TableLock:
    __slots__ = ("__weakref__", "mutex")

    def __init__(self) -> None:
        self.mutex = threading.RLock()


_LOCKS: WeakValueDictionary[str, _TableLock] = WeakValueDictionary()
_LOCKS_GUARD = threading.Lock()


def is_commit_lock_enabled(options: EngineOptions, store: LogStore, log_path: str) -> bool:
    """The option if it is set, or else whether the store shows partial writes."""
    if options.commit_lock_enabled is not None:
        return options.commit_lock_enabled
    return store.is_partial_write_visible(log_path)


@contextmanager
def commit_lock(resolved_log_path: str) -> Iterator[None]:
    """Hold the lock of one table; waiting can be interrupted."""
    with _LOCKS_GUARD:
        lock = _LOCKS.setdefault(resolved_log_path, _TableLock())
    with lock.mutex:
        yield
