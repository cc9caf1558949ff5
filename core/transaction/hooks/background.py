"""Work that need not be done before a commit returns (spec 1.15).

*Provides*: work of one table is done in the order in which it was given; the interpreter waits for
what is left when it ends.

*Does not provide*: any promise across a crash. Whatever runs here must be something that a table
can do without: checksums, checkpoints, cleanup.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, TypeVar

__all__ = ["BackgroundWork"]

_Answer = TypeVar("_Answer")
_WORKERS = 2


class BackgroundWork:
    """The background work of one table; threads may share it."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._waiting: deque[Callable[[], None]] = deque()
        self._is_running = False
        self._pending: set[Future[Any]] = set()

    def submit(self, work: Callable[[], _Answer]) -> Future[_Answer]:
        """Do it after what was submitted before; what it raises is in the future.

        Raises:
            RuntimeError: The interpreter is ending.
        """
        future: Future[_Answer] = Future()
        with self._mutex:
            if not self._is_running:
                _POOL.submit(self._run)  # it waits for the mutex, and so finds what follows
                self._is_running = True
            self._waiting.append(lambda: _settle(future, work))
            self._pending.add(future)
        future.add_done_callback(self._forget)
        return future

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until all that was submitted so far is done.

        Returns:
            False if that took longer than the time given, in seconds.
        """
        with self._mutex:
            pending = set(self._pending)
        return not wait(pending, timeout_s).not_done

    def _forget(self, future: Future[Any]) -> None:
        with self._mutex:
            self._pending.discard(future)

    def _run(self) -> None:
        while True:
            with self._mutex:
                if not self._waiting:
                    self._is_running = False
                    return
                work = self._waiting.popleft()
            work()


def _settle(future: Future[_Answer], work: Callable[[], _Answer]) -> None:
    try:
        answer = work()
    except BaseException as error:  # noqa: BLE001 - whoever waits must hear of it, whatever it was
        future.set_exception(error)
    else:
        future.set_result(answer)


class _Pool:
    """The few threads of this process that do the work of all tables; made when first needed."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._executor: ThreadPoolExecutor | None = None
        # A forked child has none of its parent's threads, and must not wait for them.
        os.register_at_fork(after_in_child=self._reset)

    def submit(self, work: Callable[[], None]) -> None:
        with self._mutex:
            if self._executor is None:
                # Its threads are joined when the interpreter ends, after all work is done.
                self._executor = ThreadPoolExecutor(_WORKERS, "optimist-post-commit")
            self._executor.submit(work)

    def _reset(self) -> None:
        self._mutex = threading.Lock()
        self._executor = None


_POOL = _Pool()
