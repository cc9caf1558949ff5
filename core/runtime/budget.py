"""The time that one operation may lose in all its requests to a store that does not answer.

An operation (opening a table, listing it, committing) begins its budget with `within_budget`. The
context carries the budget, so that every retry below, in any store or arbiter, uses the same one,
and so do threads that read ahead. Only lost time counts: failed requests, and the pauses before
them. Time in which the store answers does not count, so to read a large table over a slow line
costs nothing.

The remaining budget limits the time of each request (`Budget.limit_s`). The SDKs' own time-outs are
cut to that limit (`try_limit_s`).

Timeline of a server that accepts connections and never answers, with the default of 120 s: the
first request is given up after 10 s, with a line in the log. The request is repeated with 20, 40
and 50 s, with a line in the log every 10 s. Then the operation ends in a `StorageError`.
"""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Concatenate, Generic, ParamSpec, Protocol, TypeVar

from optimist.core.errors import ConfigError, OptimistError, StorageError
from optimist.core.errors.kinds import STORE_BUDGET_SPENT
from optimist.core.forking import ForkSafeLock, keep_inherited, renew_in_child
from optimist.core.runtime.clock import Clock

__all__ = [
    "DEFAULT_BUDGET_S",
    "Budget",
    "PerTimeout",
    "current_budget",
    "is_budget_spent",
    "limited_to",
    "one_operation",
    "short_errors",
    "shortened",
    "try_limit_s",
    "within_budget",
]

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")
_Client = TypeVar("_Client")
_Item = TypeVar("_Item")
_Error = TypeVar("_Error", bound=OptimistError)

_LOG = logging.getLogger(__name__)

DEFAULT_BUDGET_S = 120.0
TELL_EVERY_S = 10.0
_FIRST_SHARE = 1 / 12  # of the budget, for the first request: 10 s by default
_LEAST_S = 1 / 8
"""The shortest time-out of a request; with less, healthy servers would be given up."""
_SMALL_BYTES = 1 << 20


class Budget:
    """The time that one operation may lose. Threads may share it.

    Args:
        clock: The clock that measures the time.
        total_s: The seconds that may be lost.
    """

    def __init__(self, clock: Clock, total_s: float) -> None:
        self.total_s = total_s
        self._clock = clock
        self._lock = ForkSafeLock()
        self._lost_s = 0.0
        self._lost_until_s = -math.inf
        self._logged_s = -math.inf
        self._reason: StorageError | None = None
        self._is_in_trouble = False
        self._over = threading.Event()
        self._log_thread: threading.Thread | None = None

    @property
    def left_s(self) -> float:
        """The seconds that may still be lost, down to 0."""
        with self._lock:
            return max(0.0, self.total_s - self._lost_s)

    @property
    def is_spent(self) -> bool:
        """Whether no time is left."""
        return self.left_s <= 0

    def now_s(self) -> float:
        """Return the time of the budget's own clock, which may not be the store's (see `lose`)."""
        return self._clock.monotonic_s()

    def limit_s(self, tries_before: int) -> float:
        """Return the time limit of a repeatable request, which doubles with each try.

        A lost packet then costs little, and a slow server still gets the time it needs.
        """
        return min(self.left_s, self.total_s * _FIRST_SHARE * 2.0**tries_before)

    def limit_to_create_s(self, size_bytes: int) -> float:
        """Return the time limit of a request that creates a file.

        At least half of the rest is kept to find out whether the file was created.
        """
        # A large upload takes long even if the server is healthy.
        share = _FIRST_SHARE if size_bytes <= _SMALL_BYTES else 1.0
        return min(self.left_s / 2, self.total_s * share)

    def ensure_left(self) -> None:
        """Refuse a request if the budget is spent.

        Call this before each request.

        Raises:
            StorageError: The budget is spent (kind `OPTIMIST_STORE_BUDGET_SPENT`). The request must
                not be made.
        """
        if self.is_spent:
            raise self._spent_error() from self._reason

    def lose(self, since_s: float, reason: StorageError | None = None) -> None:
        """Count the time since `since_s` as lost, and log the reason at most every 10 s.

        `since_s` comes from `now_s`. Time in which several requests failed in parallel is counted
        once.
        """
        now_s = self.now_s()
        with self._lock:
            self._lost_s += max(0.0, now_s - max(since_s, self._lost_until_s))
            self._lost_until_s = max(self._lost_until_s, now_s)
            if reason is None:
                return
            self._reason = reason
            self._is_in_trouble = True
            left_s = self.total_s - self._lost_s
            is_due = now_s - self._logged_s >= TELL_EVERY_S and left_s > 0
            if is_due:
                self._logged_s = now_s
        if is_due:
            _LOG.warning(
                "%s Trying again; %.0f s of %.0f s are left for that "
                "(optimist.storage.budgetSeconds).",
                reason,
                left_s,
                self.total_s,
            )
            self._ensure_log_thread()

    def gain(self) -> None:
        """Record that the store has answered."""
        self._is_in_trouble = False

    def close(self) -> None:
        """End the operation."""
        self._over.set()

    def _ensure_log_thread(self) -> None:
        """Start a thread, at the first failure, that logs every 10 s while no answer comes."""
        with self._lock:
            if self._log_thread is not None or self._over.is_set():
                return
            self._log_thread = threading.Thread(
                target=self._log_waiting, name="optimist-still-waiting", daemon=True
            )
        self._log_thread.start()

    def _log_waiting(self) -> None:
        waited_s = 0.0
        while not self._over.wait(TELL_EVERY_S) and not self.is_spent:
            waited_s = waited_s + TELL_EVERY_S if self._is_in_trouble else 0.0
            if waited_s:
                _LOG.warning("The store has not answered for %.0f s. %s", waited_s, self._reason)

    def _spent_error(self) -> StorageError:
        last = self._reason.args[0] if self._reason and self._reason.args else "no answer"
        return StorageError(
            f"The store did not answer for {self.total_s:.0f} s in all, the longest that one "
            "operation waits (optimist.storage.budgetSeconds), so the operation was given up. "
            f"Check that the store is up and reachable, and run the operation again. "
            f"Last failure: {last}",
            kind=STORE_BUDGET_SPENT,
            budget_s=self.total_s,
            retryable=True,
        )


_CURRENT: ContextVar[Budget | None] = ContextVar("optimist_budget", default=None)
_LIMIT: ContextVar[float] = ContextVar("optimist_try_limit_s", default=math.inf)


@contextmanager
def within_budget(clock: Clock, total_s: float = DEFAULT_BUDGET_S) -> Iterator[Budget]:
    """Begin an operation with a budget, or use the one of the current operation.

    Do not use this in a generator: the context would leak to the consumer of its items.

    Args:
        clock: The clock that measures the time.
        total_s: The seconds that may be lost.
    """
    outer = _CURRENT.get()
    if outer is not None:
        yield outer
        return
    budget = Budget(clock, total_s)
    token = _CURRENT.set(budget)
    try:
        yield budget
    finally:
        _CURRENT.reset(token)
        budget.close()


class _Limits(Protocol):
    """The one engine option that the budget needs."""

    @property
    def storage_budget_s(self) -> float: ...


class _Handle(Protocol):
    """An object whose methods run within a budget."""

    @property
    def clock(self) -> Clock: ...

    @property
    def options(self) -> _Limits: ...


_Owner = TypeVar("_Owner", bound=_Handle)


def one_operation(
    method: Callable[Concatenate[_Owner, _Arguments], _Result],
) -> Callable[Concatenate[_Owner, _Arguments], _Result]:
    """Decorate a method so that it runs within the budget set in its object's options.

    If a store fails, its error leaves the method without the frames below, which are a hundred
    lines of the store's client. The log at level DEBUG has them.
    """

    @wraps(method)
    def run(self: _Owner, /, *args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result:
        is_outermost = current_budget() is None
        try:
            with within_budget(self.clock, self.options.storage_budget_s):
                return method(self, *args, **kwargs)
        except (StorageError, ConfigError) as error:
            if not is_outermost:
                raise
            raise shortened(error, method.__name__) from None

    return run


def shortened(error: _Error, doing: str) -> _Error:
    """Return the error of a store without the frames below, which go to the log (level DEBUG).

    Args:
        error: The error that was caught. Raise the result `from None`.
        doing: The name of the operation.
    """
    _LOG.debug("The operation %s failed.", doing, exc_info=error)
    return error.with_traceback(None)


def short_errors(items: Iterator[_Item], doing: str) -> Iterator[_Item]:
    """Yield the items. An error of a store leaves the iterator as it leaves `one_operation`."""
    try:
        yield from items
    except (StorageError, ConfigError) as error:
        raise shortened(error, doing) from None


def current_budget() -> Budget | None:
    """Return the budget of the current operation, or None outside of one."""
    return _CURRENT.get()


def is_budget_spent() -> bool:
    """Tell whether there is a current operation that has spent its budget."""
    budget = _CURRENT.get()
    return budget is not None and budget.is_spent


@contextmanager
def limited_to(limit_s: float) -> Iterator[None]:
    """Limit `try_limit_s` to `limit_s` within this context."""
    token = _LIMIT.set(limit_s)
    try:
        yield
    finally:
        _LIMIT.reset(token)


def try_limit_s(most_s: float) -> float:
    """Return the time that the current request may wait for the server.

    Args:
        most_s: The configured time-out, which is the maximum.
    """
    return max(_LEAST_S, min(most_s, _LIMIT.get()))


class PerTimeout(Generic[_Client]):
    """Clients of an SDK that takes its time-out only at creation: one client per time-out.

    Time-outs below the configured one are rounded down to a power of two, so that there are only a
    few clients. A forked child makes its own clients.

    Args:
        make: Makes a client that waits the given number of seconds for an answer.
        most_s: The configured time-out; the first client is made at once, with this.
    """

    def __init__(self, make: Callable[[float], _Client], most_s: float) -> None:
        self._make = make
        self._most_s = most_s
        self._lock = ForkSafeLock()
        self._by_timeout = {most_s: make(most_s)}
        renew_in_child(self, PerTimeout._forget_clients)

    def get(self) -> _Client:
        """Return the client for the next request (see `try_limit_s`)."""
        timeout_s = try_limit_s(self._most_s)
        if timeout_s < self._most_s:
            timeout_s = max(_LEAST_S, 2.0 ** math.floor(math.log2(timeout_s)))
        with self._lock:
            client = self._by_timeout.get(timeout_s)
            if client is None:
                client = self._by_timeout[timeout_s] = self._make(timeout_s)
            return client

    def _forget_clients(self) -> None:
        keep_inherited(self._by_timeout)
        self._by_timeout = {}
