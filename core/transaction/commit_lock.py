"""The commit lock: one commit loop at a time per table (spec 1.12, design sections 3 and 4).

Assumes: all handles of a table in this process resolve its log to one path; with a lease, so do all
processes.
Provides: writers of this process queue up instead of racing; a store with visible partial writes is
not read by one of them while another writes. With a lease, the same between processes.
Does not provide: exclusion. That is the store's `put_if_absent`, always; a lease can lapse while
its holder sleeps.

With a lease:

1. Take the lock of this process, so that of all its threads one asks for the lease.
2. Take the lease, waiting within the retry budget. Only from here on is anything given back.
3. Renew it before every attempt but the first, which follows at once.
4. Right before each put, make sure that it holds still: one that lapsed raises, and nothing is
   written.
5. Give it back. The keeper compares the owner, so a lease that another has by now is left alone.
   The commit may have landed, so a failure here is logged and no more.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from weakref import WeakValueDictionary

from optimist.core.clock import Clock
from optimist.core.errors import StorageError
from optimist.core.lease import Lease, LeaseGrant
from optimist.core.logstore import LogStore
from optimist.core.options import EngineOptions
from optimist.core.transaction.backoff import pause_s

__all__ = ["NO_LOCK", "CommitGuard", "commit_lock", "is_commit_lock_enabled"]

_LOG = logging.getLogger(__name__)


class CommitGuard:
    """What a commit loop asks while it holds the lock; without a lease every answer is yes."""

    def renew(self) -> None:
        """Hold the lock for another attempt.

        Raises:
            LeaseLapsedError: It is lost.
        """

    def ensure_held(self) -> None:
        """Call it right before a put.

        Raises:
            LeaseLapsedError: It is lost; the put must not be made.
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
    __slots__ = ("__weakref__", "guard", "mutex")

    def __init__(self) -> None:
        self.mutex = threading.RLock()
        self.guard: CommitGuard | None = None


_LOCKS: WeakValueDictionary[str, _TableLock] = WeakValueDictionary()
_LOCKS_GUARD = threading.Lock()


def is_commit_lock_enabled(options: EngineOptions, store: LogStore, log_path: str) -> bool:
    """The option if it is set, or else whether the store shows partial writes."""
    if options.commit_lock_enabled is not None:
        return options.commit_lock_enabled
    return store.is_partial_write_visible(log_path)


@contextmanager
def commit_lock(
    resolved_log_path: str,
    *,
    lease: Lease | None = None,
    options: EngineOptions,
    clock: Clock,
) -> Iterator[CommitGuard]:
    """Hold the lock of one table; waiting can be interrupted.

    Args:
        resolved_log_path: What the lock is called: one text for all spellings of the path.
        lease: Held besides, if given.
        options: How long to wait for the lease, and how long to hold it.
        clock: For the waits.

    Raises:
        StorageError: The lease was held by others for all of the retry budget (kind
            `OPTIMIST_COMMIT_LOCK_BUSY`), or its keeper failed. Nothing was committed.
    """
    with _LOCKS_GUARD:
        lock = _LOCKS.setdefault(resolved_log_path, _TableLock())
    with lock.mutex:
        if lease is None or lock.guard is not None:  # a thread that comes again has it already
            yield lock.guard or NO_LOCK
            return
        guard = _acquire(lease, resolved_log_path, options, clock)
        lock.guard = guard
        try:
            yield guard
        finally:
            lock.guard = None
            _release(lease, guard)


def _acquire(lease: Lease, name: str, options: EngineOptions, clock: Clock) -> _LeaseGuard:
    policy, ttl_s = options.retry_policy, options.commit_lock_lease_s
    start_s = clock.monotonic_s()
    retry = 0
    while True:
        grant = lease.try_acquire(name, ttl_s=ttl_s)
        if grant is not None:
            return _LeaseGuard(lease, grant, ttl_s)
        waited_s = clock.monotonic_s() - start_s
        if waited_s >= policy.budget_s:
            raise _busy(name, waited_s)
        retry += 1
        clock.sleep(min(pause_s(retry, policy, clock), policy.budget_s - waited_s))


def _release(lease: Lease, guard: _LeaseGuard) -> None:
    try:
        lease.release(guard.grant)
    except Exception:  # noqa: BLE001 - the commit may have landed, and a lease lapses by itself
        _LOG.warning(
            "The lease on %s could not be given back; it lapses by itself.",
            guard.grant.name,
            exc_info=True,
        )


def _busy(name: str, waited_s: float) -> StorageError:
    return StorageError(
        f"Other writers held the commit lock of {name} for all of {waited_s:.0f} s. Nothing was "
        "committed: run it again when fewer are at work, or raise "
        "optimist.commit.retry.budgetSeconds.",
        kind="OPTIMIST_COMMIT_LOCK_BUSY",
        name=name,
        elapsed_ms=round(waited_s * 1000),
        retryable=True,
    )
