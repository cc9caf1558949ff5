"""Threads that work a few items ahead of the consumer, so that memory use stays flat."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from itertools import chain, islice
from typing import TypeVar

__all__ = ["read_ahead"]

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


def read_ahead(
    work: Callable[[_Item], _Result], items: Iterable[_Item], *, threads: int, ahead: int
) -> Iterator[_Result]:
    """Yield the results in the order of the items.

    An error of `work` is raised at its item. If there is only one item, no thread is started.

    Args:
        work: Called once per item, by several threads at a time.
        items: The items, taken only as they are needed.
        threads: The number of items in work at a time.
        ahead: The most results, finished or in progress, that may wait for the consumer.
    """
    items = iter(items)
    first = list(islice(items, 2))
    if len(first) < 2:
        yield from (copy_context().run(work, item) for item in first)
        return
    # A consumer that stops early leaves the rest to the garbage collector. That runs in any thread,
    # even in one that is starting or ending, and holds a lock that the end of a thread needs.
    may_wait = True
    pool = ThreadPoolExecutor(threads, thread_name_prefix="optimist-read")
    waiting: deque[Future[_Result]] = deque()
    try:
        for item in chain(first, items):
            if len(waiting) >= ahead:
                yield waiting.popleft().result()
            # The operation's budget is passed on; each thread needs a copy of its own.
            waiting.append(pool.submit(copy_context().run, work, item))
        while waiting:
            yield waiting.popleft().result()
    except GeneratorExit:
        may_wait = False
        raise
    finally:
        # Items that have not begun are dropped, since nobody will take their results.
        pool.shutdown(wait=may_wait, cancel_futures=True)
