"""Threads that work a few items ahead of the consumer of the results, so that memory stays flat."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

__all__ = ["read_ahead"]

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


def read_ahead(
    work: Callable[[_Item], _Result], items: Iterable[_Item], *, threads: int, ahead: int
) -> Iterator[_Result]:
    """Yield the results in the order of the items; an error of `work` comes in its item's place.

    Args:
        work: Called once per item, by several threads at a time.
        items: Taken only as they are needed.
        threads: How many items are worked on at a time.
        ahead: How many results, finished or in progress, may wait for the consumer at most.
    """
    # Whoever stops early leaves the rest to the garbage collector. It runs in any thread, also in
    # one that is just starting or ending, and has a lock that the end of a thread needs.
    may_wait = True
    pool = ThreadPoolExecutor(threads, thread_name_prefix="optimist-read")
    waiting: deque[Future[_Result]] = deque()
    try:
        for item in items:
            if len(waiting) >= ahead:
                yield waiting.popleft().result()
            # The operation's budget goes along; each thread needs a copy of its own.
            waiting.append(pool.submit(copy_context().run, work, item))
        while waiting:
            yield waiting.popleft().result()
    except GeneratorExit:
        may_wait = False
        raise
    finally:
        # What has not begun is not done: nobody will take it.
        pool.shutdown(wait=may_wait, cancel_futures=True)
