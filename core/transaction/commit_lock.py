"""The commit lock: one commit loop at a time per table (spec 1.12).

Assumes: all handles of a table in this process resolve its log to one path. With a lease, all
processes do.
Provides: writers of this process queue up instead of racing. No writer reads a store with visible
partial writes while another writes. With a lease, that holds between processes. Without one, the
processes of one machine take turns where the store supports it (`LogStore.take_turns`).
Does not provide: exclusion. Only the store's `put_if_absent` excludes others, because a lease can
lapse while its holder sleeps.

With a lease:

1. Take the lock of this process, so that only one of its threads asks for the lease.
2. Take the lease, waiting no longer than the retry budget. Only from here on is there anything to
   give back.
3. Renew the lease before every attempt but the first, which follows at once.
4. Right before each put, make sure that the lease still holds: a lapsed one raises, and nothing is
   written.
5. Give the lease back. Its keeper compares the owner, so a lease that has gone to another writer
   meanwhile is left alone. The commit may have landed, so a failure to give back the lease, or a
   turn, is only logged.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from weakref import WeakValueDictionary

from optimist.core.data.table_ref import TableRef
from optimist.core.errors import StorageError
from optimist.core.forking import ForkSafeLock
from optimist.core.options.engine import EngineOptions
from optimist.core.plugins.lease import Lease, LeaseGrant
from optimist.core.plugins.logstore import LogStore
from optimist.core.plugins.table_place import place_of
from optimist.core.runtime.clock import Clock
from optimist.core.runtime.retry import pause_s
from optimist.core.secrets import without_secrets

__all__ = [
    "NO_LOCK",
    "CommitGuard",
    "commit_lock",
    "is_commit_lock_enabled",
    "is_commit_lock_held_here",
    "lock_commit_if_enabled",
]

_LOG = logging.getLogger(__name__)


class CommitGuard:
    """The lock as a commit loop sees it. Without a lease it can't be lost."""

    def renew(self) -> None:
        """Hold the lock for another attempt.

        Raises:
            LeaseLapsedError: The lease is lost.
        """

    def ensure_held(self) -> None:
        """Make sure that the lock is still held, right before each put.

        Raises:
            LeaseLapsedError: The lease is lost; the put must not be made.
        """


NO_LOCK = CommitGuard()


class _LeaseGuard(CommitGuard):
    def __init__(self, lease: Lease, grant: LeaseGrant, ttl_s: float) -> None:
        self._lease = lease
        self._ttl_s = ttl_s
        self._is_fresh = True
        self.grant = grant

    def renew(self) -> None:
        if not self._is_fresh:
            self.grant = self._lease.renew(self.grant, ttl_s=self._ttl_s)
        self._is_fresh = False

    def ensure_held(self) -> None:
        self._lease.ensure_held(self.grant)


class _TableLock:
    """The lock of this process, and the guard of the thread that holds it."""

    __slots__ = ("__weakref__", "guard", "mutex")

    def __init__(self) -> None:
        self.mutex = ForkSafeLock()
        self.guard: CommitGuard = NO_LOCK


_LONGEST_WAIT_S = 10.0
"""How long to wait for a turn. Then writers race: the process that has it may be stopped."""

# Weak, so that a table's lock goes when the last thread that uses it is done.
_LOCKS: WeakValueDictionary[str, _TableLock] = WeakValueDictionary()
_LOCKS_GUARD = ForkSafeLock()


def is_commit_lock_enabled(options: EngineOptions, store: LogStore, log_path: str) -> bool:
    """Return whether commits take the lock: by the option, else if partial writes are visible."""
    if options.commit_lock_enabled is not None:
        return options.commit_lock_enabled
    return store.is_partial_write_visible(log_path)


def is_commit_lock_held_here(table: TableRef) -> bool:
    """Return whether the calling thread holds the table's commit lock."""
    with _LOCKS_GUARD:
        lock = _LOCKS.get(place_of(table.log_path, table.store))
    return lock is not None and lock.mutex.is_held_here


@contextmanager
def lock_commit_if_enabled(table: TableRef) -> Iterator[CommitGuard]:
    """Hold the table's commit lock, or none where it is not enabled."""
    options, store = table.options, table.store
    if not is_commit_lock_enabled(options, store, table.log_path):
        yield NO_LOCK
        return
    name = place_of(table.log_path, store)
    with commit_lock(
        name, lease=table.lease, store=store, options=options, clock=table.clock
    ) as guard:
        yield guard


@contextmanager
def commit_lock(
    resolved_log_path: str,
    *,
    lease: Lease | None = None,
    store: LogStore | None = None,
    options: EngineOptions,
    clock: Clock,
) -> Iterator[CommitGuard]:
    """Hold the lock of one table. Waiting can be interrupted.

    Args:
        resolved_log_path: The name of the lock: one text for all spellings of the log's path.
        lease: Held as well, if given.
        store: Without a lease, lets the processes of this machine take turns where it can.
        options: How long to wait for the lease, and how long to hold it.
        clock: For the waits.

    Raises:
        StorageError: The lease was held by others for all of the retry budget (kind
            `OPTIMIST_COMMIT_LOCK_BUSY`), or its keeper failed. Nothing was committed.
    """
    with _LOCKS_GUARD:
        lock = _LOCKS.setdefault(resolved_log_path, _TableLock())
    # The mutex tells it, and not what an interrupted holder may have left behind.
    is_held_already = lock.mutex.is_held_here
    with lock.mutex:
        if is_held_already:
            yield lock.guard
            return
        if lease is None:
            lock.guard = NO_LOCK
            with _hold_turn(store, resolved_log_path, options):
                yield NO_LOCK
            return
        guard = lock.guard = _acquire_lease(lease, resolved_log_path, options, clock)
        try:
            yield guard
        finally:
            _release_lease(lease, guard)


@contextmanager
def _hold_turn(store: LogStore | None, log_path: str, options: EngineOptions) -> Iterator[None]:
    if store is None:
        yield
        return
    timeout_s = min(_LONGEST_WAIT_S, options.retry_policy.budget_s)
    turn = store.take_turns(log_path, timeout_s=timeout_s)
    turn.__enter__()
    try:
        yield
    finally:
        _end_turn(turn, log_path)


def _end_turn(turn: AbstractContextManager[None], log_path: str) -> None:
    try:
        turn.__exit__(None, None, None)
    except Exception:  # noqa: BLE001 - the commit may have landed, and a turn decides nothing
        _LOG.warning(
            "The turn at %s could not be released.", without_secrets(log_path), exc_info=True
        )


def _acquire_lease(lease: Lease, name: str, options: EngineOptions, clock: Clock) -> _LeaseGuard:
    policy, ttl_s = options.retry_policy, options.commit_lock_lease_s
    start_s = clock.monotonic_s()
    retry = 0
    while True:
        grant = lease.try_acquire(name, ttl_s=ttl_s)
        if grant is not None:
            return _LeaseGuard(lease, grant, ttl_s)
        waited_s = clock.monotonic_s() - start_s
        if waited_s >= policy.budget_s:
            raise _lock_is_busy(name, waited_s)
        retry += 1
        clock.sleep(min(pause_s(retry, policy, clock), policy.budget_s - waited_s))


def _release_lease(lease: Lease, guard: _LeaseGuard) -> None:
    try:
        lease.release(guard.grant)
    except Exception:  # noqa: BLE001 - the commit may have landed, and a lease lapses by itself
        _LOG.warning(
            "The lease on %s could not be released; it expires by itself.",
            without_secrets(guard.grant.name),
            exc_info=True,
        )


def _lock_is_busy(name: str, waited_s: float) -> StorageError:
    return StorageError(
        f"Other writers held the commit lock {name} for the {waited_s:.0f} s that this commit "
        "could wait. Nothing was committed. Run the operation again when fewer writers are active, "
        "or raise optimist.commit.retry.budgetSeconds.",
        kind="OPTIMIST_COMMIT_LOCK_BUSY",
        name=name,
        elapsed_ms=round(waited_s * 1000),
        retryable=True,
    )
