"""Work on many items by threads, a few items ahead of who takes the results; memory stays flat."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

__all__ = ["read_ahead"]

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


def read_ahead(
    work: Callable[[_Item], _Result], items: Iterable[_Item], *, threads: int, ahead: int
) -> Iterator[_Result]:
    """The results in the order of the items; what `work` raises comes in its item's place.

    Args:
        work: Called once per item, by several threads at a time.
        items: Taken as they are needed.
        threads: How many items are worked on at a time.
        ahead: How many results at most are made, or in the making, before somebody takes them.
    """
    pool = ThreadPoolExecutor(threads, thread_name_prefix="optimist-read")
    waiting: deque[Future[_Result]] = deque()
    try:
        for item in items:
            if len(waiting) >= ahead:
                yield waiting.popleft().result()
            waiting.append(pool.submit(work, item))
        while waiting:
            yield waiting.popleft().result()
    finally:
        # Who stops early does not wait for what nobody will take.
        pool.shutdown(cancel_futures=True)
