"""Requests to stores, told to the observers: how many there are, how long they take, their bytes.

A store is anybody's class and knows nothing of observers, so its methods are wrapped when the class
is made. Without an observer that costs a call one look at an empty table. A request is one call of
such a method, for which the store may ask its service several times. Calls within a call, as of a
store that wraps another, belong to it.
"""

from __future__ import annotations

import enum
import inspect
import threading
from collections.abc import Callable, Collection, Iterator
from functools import wraps
from typing import Any, TypeVar

from optimist.core.paths import LOG_DIRECTORY
from optimist.core.runtime.clock import SystemClock
from optimist.core.runtime.observers import ToldWork, has_observers

__all__ = ["observe_requests"]

_CLOCK = SystemClock()
_END = object()
_Result = TypeVar("_Result")


class _Here(threading.local):
    """Whether this thread is within a request."""

    is_inside = False


_HERE = _Here()


def observe_requests(store: type, calls: Collection[str], listings: Collection[str]) -> None:
    """Let the observers be told of each request of a class.

    Args:
        store: The class. Methods that it inherits are those of the class that has them.
        calls: The names of methods that have done their work when they return.
        listings: The names of methods that do it while their caller iterates.
    """
    for name in (*calls, *listings):
        method = vars(store).get(name)
        if inspect.isfunction(method):
            setattr(store, name, _observed(name, method, is_listing=name in listings))


def _is_told() -> bool:
    """Return whether a call is a request of its own, and somebody wants to know of it.

    It is a function by itself so that a store's method, which Spark may send to another process
    with the class of a notebook's cell, refers to nothing that belongs to this process.
    """
    return has_observers() and not _HERE.is_inside


def _observed(name: str, method: Callable[..., Any], *, is_listing: bool) -> Callable[..., Any]:
    @wraps(method)
    def call(self: object, *args: Any, **kwargs: Any) -> Any:
        if not _is_told():
            return method(self, *args, **kwargs)
        path, *more = (*args, *kwargs.values())
        request = _Request(type(self).__name__, name, path)
        request.note_bytes(*more)
        result = request.step(lambda: method(self, *args, **kwargs))
        if is_listing:
            return request.items(result)
        request.note_result(result)
        request.end()
        return result

    return call


class _Request:
    """One request under way. Only the time within the store counts, not that of its caller."""

    def __init__(self, store: str, operation: str, path: object) -> None:
        self._work = ToldWork("request", _table_of(path))
        self._work.facts.update({"store": store, "store.operation": operation})
        self._spent_s = 0.0
        self._is_over = False

    def note_bytes(self, content: Any = None, *_: object) -> None:
        """Note the size of what is written."""
        if isinstance(content, bytes):
            self._work.facts["store.bytes"] = len(content)
        elif hasattr(content, "seek"):
            before, size_bytes = content.tell(), content.seek(0, 2)
            content.seek(before)
            self._work.facts["store.bytes"] = size_bytes

    def note_result(self, result: object) -> None:
        """Note the size of what was read, or how a write ended."""
        if isinstance(result, bytes):
            self._work.facts["store.bytes"] = len(result)
        elif isinstance(result, enum.Enum):
            self._work.facts["store.outcome"] = str(result.value)

    def step(self, run: Callable[[], _Result]) -> _Result:
        """Run a part of the request; if it fails, the request is over."""
        start_s, _HERE.is_inside = _CLOCK.monotonic_s(), True
        try:
            result = run()
        except BaseException as error:
            self._count(start_s)
            self.end(error)
            raise
        self._count(start_s)
        return result

    def items(self, listed: Iterator[Any]) -> Iterator[Any]:
        """Yield the items of a listing, which may be left before its end."""
        try:
            while (item := self.step(lambda: next(listed, _END))) is not _END:
                yield item
        finally:
            self.end()

    def end(self, error: BaseException | None = None) -> None:
        """Tell the observers that the request is over."""
        if not self._is_over:
            self._is_over = True
            self._work.end(self._spent_s, error)

    def _count(self, start_s: float) -> None:
        _HERE.is_inside = False
        self._spent_s += _CLOCK.monotonic_s() - start_s


def _table_of(path: object) -> str:
    """Return the table of a file of a log, and nothing for other files."""
    before, log, _ = path.partition(f"/{LOG_DIRECTORY}") if isinstance(path, str) else ("", "", "")
    return before if log else ""
