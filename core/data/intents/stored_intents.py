"""Intents in stores: a small object that the writes of one process share for some minutes.

A write that begins while the process has a fresh intent needs no request. Otherwise it creates one,
under a new name, so that a request that arrives late or twice changes nothing. Intents of writes
that have ended are removed many at a time, since they do little harm: what VACUUM spares for them
are files that no version names.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from dataclasses import dataclass

from optimist.core.data.storage.filesystem import filesystem_for, make_directories
from optimist.core.data.storage.new_file import new_file
from optimist.core.data.storage.stored_files import remove_files
from optimist.core.data.table_ref import TableRef
from optimist.core.errors import OptimistError
from optimist.core.forking import ForkSafeLock, renew_in_child
from optimist.core.runtime.clock import Clock

__all__ = ["StoredIntent", "begin_stored", "forget_ended"]

_SHARED_S = 600.0
"""How long other writes join an intent; VACUUM honours it for much longer."""
_REMOVED_AT_ONCE = 16


@dataclass(slots=True)
class _Shared:
    path: str
    table_id: str | None
    begun_s: float
    begun_ms: int
    num_writes: int = 0

    def is_fresh(self, table_id: str | None, clock: Clock) -> bool:
        """Whether a write may join: it is young, and was not removed with an older table.

        It is young by both clocks: one stands still while the machine is suspended, and the other
        can be set.
        """
        is_same = table_id is not None and table_id == self.table_id
        is_young = 0 <= clock.monotonic_s() - self.begun_s < _SHARED_S
        return is_same and is_young and 0 <= clock.now_ms() - self.begun_ms < _SHARED_S * 1000


class _OfTable:
    """The intents of this process for one table, by one way to its files."""

    def __init__(self) -> None:
        self.lock = ForkSafeLock()
        self.newest: _Shared | None = None
        self.ended: list[str] = []
        renew_in_child(self, _OfTable.forget)

    def forget(self) -> None:
        """In a forked child: they are the parent's."""
        self.newest = None
        self.ended = []

    def take_ended(self) -> list[str]:
        """The paths of those that no write needs, which are not used again; under the lock."""
        if self.newest is not None and not self.newest.num_writes:
            self.ended.append(self.newest.path)
            self.newest = None
        taken, self.ended = self.ended, []
        return taken


_TABLES: dict[tuple[object, ...], _OfTable] = {}
"""By path and place; credentials that are renewed must not begin an intent of their own."""


class StoredIntent:
    """The share of one write in an intent."""

    def __init__(self, table: TableRef, owner: _OfTable, shared: _Shared) -> None:
        self._table = table
        self._owner = owner
        self._shared = shared
        self._process = os.getpid()

    def end(self) -> None:
        """The write needs the intent no more: its files are committed, or gone."""
        owner, shared, taken = self._owner, self._shared, []
        if self._process != os.getpid():
            return  # the intent is the parent's
        with owner.lock:
            shared.num_writes -= 1
            if shared is not owner.newest and not shared.num_writes:
                owner.ended.append(shared.path)
            if len(owner.ended) >= _REMOVED_AT_ONCE:
                taken, owner.ended = owner.ended, []
        _remove(taken, self._table)


def begin_stored(
    table: TableRef, table_id: str | None, new_path: Callable[[], str]
) -> StoredIntent:
    """Join the process's intent for a table, or create one.

    Args:
        table: Where the table is.
        table_id: The id in its metadata. A table that was made anew at the place has another one,
            and the intents of the old one may be gone with its files. None of a new table.
        new_path: Gives the full path of another intent.

    Raises:
        StorageError: The store failed; no file may be written.
    """
    owner = _of(table)
    with owner.lock:
        clock, shared = table.clock, owner.newest
        if shared is None or not shared.is_fresh(table_id, clock):
            made = _Shared(new_path(), table_id, clock.monotonic_s(), clock.now_ms())
            _create(made.path, table)
            if shared is not None and not shared.num_writes:
                owner.ended.append(shared.path)
            owner.newest = shared = made
        shared.num_writes += 1
        return StoredIntent(table, owner, shared)


def forget_ended(table: TableRef, *, removes: bool = True) -> frozenset[str]:
    """The paths of the intents of this process that no write needs; none of them is used again.

    Args:
        table: The table.
        removes: Whether they are removed, as far as that works.
    """
    owner = _of(table)
    with owner.lock:
        taken = owner.take_ended()
    if not (removes and _remove(taken, table)):
        with owner.lock:
            owner.ended += taken
    return frozenset(taken)


def _of(table: TableRef) -> _OfTable:
    access = table.data_access()
    key = (table.table_path, None if access is None else access.place)
    return _TABLES.get(key) or _TABLES.setdefault(key, _OfTable())


def _create(path: str, table: TableRef) -> None:
    access = table.data_access()
    filesystem, inner = filesystem_for(path, access)
    make_directories(filesystem, [inner])
    policy = table.options.retry_policy
    file = new_file(path, filesystem, inner, access=access, clock=table.clock, policy=policy)
    try:
        file.sink.write(f"{socket.gethostname()} {os.getpid()}\n".encode())
        file.publish()
    except BaseException:
        file.discard()
        raise


def _remove(paths: list[str], table: TableRef) -> bool:
    """Remove intents; False if some may be there still, for VACUUM to remove when they are old."""
    try:
        remove_files(paths, table.data_access())
    except OptimistError:
        return False
    return True
