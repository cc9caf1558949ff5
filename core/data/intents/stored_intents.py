"""Intents in stores: a small object that the writes of one process share for some minutes.

A write that begins while the process has a fresh intent needs no request. Otherwise it creates one,
under a new name, so that a request that arrives late or twice changes nothing. Intents of ended
writes are removed many at a time, because they do little harm: VACUUM only keeps some more files
that no version names.
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
"""How long other writes may join an intent. VACUUM honours it for much longer."""
_REMOVED_AT_ONCE = 16


@dataclass(slots=True)
class _Shared:
    path: str
    table_id: str | None
    begun_s: float
    begun_ms: int
    num_writes: int = 0

    def is_fresh(self, table_id: str | None, clock: Clock) -> bool:
        """Return whether a write may join: it is young, and belongs to the same table.

        It must be young by both clocks: one stands still while the machine is suspended, and the
        other can be set.
        """
        is_same = table_id is not None and table_id == self.table_id
        is_young = 0 <= clock.monotonic_s() - self.begun_s < _SHARED_S
        return is_same and is_young and 0 <= clock.now_ms() - self.begun_ms < _SHARED_S * 1000


class _TableIntents:
    """The intents of this process for one table, by one access to its files."""

    def __init__(self) -> None:
        self.lock = ForkSafeLock()
        self.newest: _Shared | None = None
        self.ended: list[str] = []
        renew_in_child(self, _TableIntents.forget)

    def forget(self) -> None:
        """Forget the parent's intents in a forked child."""
        self.newest = None
        self.ended = []

    def take_ended(self) -> list[str]:
        """Remove and return the paths of intents that no write needs. The caller holds the lock."""
        if self.newest is not None and not self.newest.num_writes:
            self.ended.append(self.newest.path)
            self.newest = None
        taken, self.ended = self.ended, []
        return taken


_TABLES: dict[tuple[object, ...], _TableIntents] = {}
"""By path and store. A renewal of credentials must not begin a new intent."""


class StoredIntent:
    """The share of one write in an intent."""

    def __init__(self, table: TableRef, owner: _TableIntents, shared: _Shared) -> None:
        self._table = table
        self._owner = owner
        self._shared = shared
        self._process = os.getpid()

    def end(self) -> None:
        """End the write's use of the intent: its files are committed, or gone."""
        owner, shared, taken = self._owner, self._shared, []
        if self._process != os.getpid():
            return  # the intent is the parent's
        with owner.lock:
            shared.num_writes -= 1
            if shared is not owner.newest and not shared.num_writes:
                owner.ended.append(shared.path)
            if len(owner.ended) >= _REMOVED_AT_ONCE:
                taken, owner.ended = owner.ended, []
        _try_remove(taken, self._table)


def begin_stored(
    table: TableRef, table_id: str | None, new_path: Callable[[], str]
) -> StoredIntent:
    """Join the process's intent for a table, or create one.

    Args:
        table: The table.
        table_id: The id in its metadata. A table that was made anew at the path has another one,
            and the intents of the old one may be gone with its files. None for a new table.
        new_path: Returns the full path for a new intent.

    Raises:
        StorageError: The store failed. No file may be written.
    """
    owner = _intents_of(table)
    with owner.lock:
        clock, shared = table.clock, owner.newest
        if shared is None or not shared.is_fresh(table_id, clock):
            made = _Shared(new_path(), table_id, clock.monotonic_s(), clock.now_ms())
            _create_intent(made.path, table)
            if shared is not None and not shared.num_writes:
                owner.ended.append(shared.path)
            owner.newest = shared = made
        shared.num_writes += 1
        return StoredIntent(table, owner, shared)


def forget_ended(table: TableRef, *, removes: bool = True) -> frozenset[str]:
    """Return the paths of this process's intents that no write needs, and forget them.

    Args:
        table: The table.
        removes: Whether to try to remove them.
    """
    owner = _intents_of(table)
    with owner.lock:
        taken = owner.take_ended()
    if not (removes and _try_remove(taken, table)):
        with owner.lock:
            owner.ended += taken
    return frozenset(taken)


def _intents_of(table: TableRef) -> _TableIntents:
    access = table.data_access()
    key = (table.table_path, None if access is None else access.store_key)
    return _TABLES.get(key) or _TABLES.setdefault(key, _TableIntents())


def _create_intent(path: str, table: TableRef) -> None:
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


def _try_remove(paths: list[str], table: TableRef) -> bool:
    """Remove intents, and return False if some may still exist, for VACUUM to remove later."""
    try:
        remove_files(paths, table.data_access())
    except OptimistError:
        return False
    return True
