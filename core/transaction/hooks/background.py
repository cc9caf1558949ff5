"""Work that need not be done before a commit returns (spec 1.15).

*Provides*: the work of one table is done in the order in which it was submitted, one piece at a
time; when the interpreter ends, it waits for what is left. Work of a key of which newer work comes
before it has begun is not done: it ends as the newer work does. So work that takes longer than the
time between two commits does not pile up.

*Does not provide*: any promise across a crash or in a forked child. The parent keeps the work that
it has begun, and a caller that waits for it in the child gets an error. So only work that a table
can do without may run here: checksums, checkpoints, cleanup.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from optimist.core.forking import ForkSafeLock, PerProcess, renew_in_child

__all__ = ["BackgroundWork"]

_Answer = TypeVar("_Answer")
_WORKERS = 2


class BackgroundWork:
    """The background work of one table. Threads may share it."""

    def __init__(self) -> None:
        self._lock = ForkSafeLock()
        self._waiting: deque[_Piece] = deque()
        self._is_running = False
        self._pending: set[_Promise[Any]] = set()
        renew_in_child(self, BackgroundWork._leave_to_parent)

    def submit(self, work: Callable[[], _Answer], key: str | None = None) -> Future[_Answer]:
        """Do the work after all that was submitted before, and return a future of its result.

        Args:
            work: The work.
            key: Work of the same key that still waits is left out for this. None: nothing is.

        Raises:
            RuntimeError: The interpreter is ending.
        """
        future: _Promise[_Answer] = _Promise()
        with self._lock:
            if not self._is_running:
                # `_run_all` waits for the lock that we hold, and so finds the work appended below.
                _POOL.get().submit(self._run_all)
                self._is_running = True
            left_out = [each for each in self._waiting if key is not None and each.key == key]
            for each in left_out:
                self._waiting.remove(each)
            self._waiting.append(_Piece(future, work, key))
            self._pending.add(future)
        for each in left_out:
            future.add_done_callback(partial(_end_alike, each.future))
        future.add_done_callback(self._forget_work)
        return future

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until all that was submitted so far is done.

        Returns:
            False if it is not done after `timeout_s` seconds.
        """
        with self._lock:
            pending = set(self._pending)
        return not wait(pending, timeout_s).not_done

    def _forget_work(self, future: Future[Any]) -> None:
        with self._lock:
            self._pending.discard(future)

    def _leave_to_parent(self) -> None:
        pending = list(self._pending)
        self._waiting.clear()
        self._is_running = False
        self._pending.clear()
        for future in pending:
            future.renew_condition()
        for future in pending:
            future.cancel()

    def _run_all(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self._is_running = False
                    return
                piece = self._waiting.popleft()
            # Its owner may cancel it at any time.
            if not piece.future.cancelled():
                with suppress(InvalidStateError):
                    _settle_future(piece.future, piece.work)


class _Promise(Future[_Answer]):
    """The future of one piece of work."""

    def renew_condition(self) -> None:
        """Free it in a forked child of a thread that exists only in the parent."""
        self._condition = threading.Condition()


@dataclass(frozen=True, slots=True, eq=False)
class _Piece:
    """A piece of work that waits, and the future of its result."""

    future: _Promise[Any]
    work: Callable[[], Any]
    key: str | None


def _end_alike(older: _Promise[Any], newer: Future[Any]) -> None:
    """Settle the future of work that was left out as that of the newer work."""
    with suppress(InvalidStateError):  # its owner has cancelled it, or a fork has
        if newer.cancelled():
            older.cancel()
        elif (error := newer.exception()) is not None:
            older.set_exception(error)
        else:
            older.set_result(newer.result())


def _settle_future(future: Future[_Answer], work: Callable[[], _Answer]) -> None:
    try:
        answer = work()
    except BaseException as error:  # noqa: BLE001 - whoever waits must hear of it, whatever it was
        future.set_exception(error)
    else:
        future.set_result(answer)


def _new_pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_WORKERS, "optimist-post-commit")


_POOL = PerProcess(_new_pool)
"""The few threads of this process that do the work of all tables; made when first needed."""


def _finish_work() -> None:
    """Wait for the work when the interpreter ends; what is submitted later is refused."""
    pool = _POOL.made
    if pool is not None:
        pool.shutdown()


# The last one registered runs first: so work ends before `concurrent.futures`, registered by our
# import of it, closes all pools to new work. Reading ahead and clients of stores need theirs.
if _register := getattr(threading, "_register_atexit", None):
    _register(_finish_work)
