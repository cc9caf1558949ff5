"""Protects a forked child from its parent's locks, threads and connections.

`os.fork` copies the memory of the whole process but only one of its threads. In the child

- a lock that another thread held is never released, so whoever asks for it waits forever;
- a thread pool has no threads, so work given to it is never done;
- a connection is shared with the parent: both send on it, and each may get the other's answers;
- an advisory lock on an open file stays held until the child, too, has closed it.

multiprocessing's `fork`, gunicorn, Airflow and others fork processes that commit in threads. So
every lock of ours that outlives a call is a `ForkSafeLock`. Every client of a server is kept in a
`PerProcess` or forgotten through `renew_in_child`. All of them are renewed in the child before any
of its code runs. Locks that the forking thread holds are still held in the child.

A fork may happen while the state behind a lock is half changed. So a half-changed state may only
cost time: a cache lacks an entry, or a snapshot is loaded once more.

Inherited objects are kept and never closed. To close a connection would send on it, and to close a
SQLite file would drop the locks that the child has taken on it since.
"""

from __future__ import annotations

import _thread
import os
import threading
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary, WeakSet

__all__ = [
    "NO_FORK_MEANWHILE",
    "ForkSafeLock",
    "PerProcess",
    "closed_in_child",
    "keep_for_good",
    "keep_inherited",
    "renew_in_child",
]

_Owner = TypeVar("_Owner")
_Value = TypeVar("_Value")

_LOCKS: WeakSet[ForkSafeLock] = WeakSet()


class ForkSafeLock(_thread.RLock):  # type: ignore[misc]  # final only in typeshed
    """A mutex that is free in a forked child, unless the forking thread holds it.

    The holding thread may acquire it again. It is entered and left by the interpreter's own code:
    in a method of ours an interrupt could strike between the acquisition and the body, and the lock
    would stay locked for good.
    """

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__()
        _LOCKS.add(self)

    @property
    def is_held_here(self) -> bool:
        """Whether the calling thread holds the lock."""
        return bool(self._is_owned())  # type: ignore[attr-defined]  # of every RLock since 3.2

    def _renew(self) -> None:
        if not self.is_held_here:
            self._at_fork_reinit()  # type: ignore[attr-defined]  # as `threading` does itself


class PerProcess(Generic[_Value]):
    """A value that each process makes for itself when it first needs it.

    Args:
        make: Makes the value; called by one thread at a time.
    """

    def __init__(self, make: Callable[[], _Value]) -> None:
        self._make = make
        self._lock = ForkSafeLock()
        self._values: list[_Value] = []
        renew_in_child(self, PerProcess._forget)

    def get(self) -> _Value:
        """Return the value of this process, and make it if needed."""
        with self._lock:
            if not self._values:
                self._values.append(self._make())
            return self._values[0]

    @property
    def made(self) -> _Value | None:
        """The value if this process has made it, otherwise None."""
        return self._values[0] if self._values else None

    def _forget(self) -> None:
        keep_inherited(self._values)
        self._values = []


def renew_in_child(owner: _Owner, renew: Callable[[_Owner], None]) -> None:
    """Call `renew(owner)` in every forked child, for as long as the owner lives.

    Args:
        owner: The object to renew. Only a weak reference to it is kept.
        renew: Runs after the locks are renewed, while the child has only one thread. It must not
            block.
    """
    _RENEWALS[owner] = renew


def keep_inherited(value: object) -> None:
    """Keep a parent's object alive in a child, since its collection would close it."""
    _INHERITED.append(value)


def keep_for_good(value: Hashable) -> None:
    """Keep a value alive as long as this process and its forked children live.

    It is for values that a library's own fork handler drops in a child. fsspec empties its cache of
    file systems there, and the destructor of a client of hdfs-native waits for threads that the
    child does not have.
    """
    _KEPT.add(value)


@contextmanager
def closed_in_child(descriptor: int) -> Iterator[None]:
    """Close a forked child's copy of an open file at once, while this context lasts.

    It is for files that are locked, since a lock is released only when all copies are closed. A
    child forked by the thread in the context keeps its copy.
    """
    _OPEN_FILES[descriptor] = threading.get_ident()
    try:
        yield
    finally:
        _OPEN_FILES.pop(descriptor, None)


NO_FORK_MEANWHILE = ForkSafeLock()
"""A lock around calls into a library whose own locks a child would inherit, such as SQLite.

A fork waits until it is released, so the calls must be short.
"""


def _renew_everything() -> None:
    for lock in list(_LOCKS):
        lock._renew()
    here = threading.get_ident()
    for descriptor, thread in list(_OPEN_FILES.items()):
        if thread != here:
            del _OPEN_FILES[descriptor]
            with suppress(OSError):
                os.close(descriptor)
    for owner, renew in list(_RENEWALS.items()):
        renew(owner)


_RENEWALS: WeakKeyDictionary[Any, Callable[[Any], None]] = WeakKeyDictionary()
_OPEN_FILES: dict[int, int] = {}
_INHERITED: list[object] = []
_KEPT: set[Hashable] = set()


def _begin_fork() -> None:
    NO_FORK_MEANWHILE.__enter__()


def _end_fork() -> None:
    NO_FORK_MEANWHILE.__exit__(None, None, None)


# The child's functions run in the order of registration: first everything is renewed. Then
# NO_FORK_MEANWHILE is released, which the forking thread still holds there.
os.register_at_fork(before=_begin_fork, after_in_parent=_end_fork, after_in_child=_renew_everything)
os.register_at_fork(after_in_child=_end_fork)
