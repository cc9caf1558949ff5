"""Threads that move several streams on, a bounded way ahead of the consumer.

`read_ahead` holds one whole result per item. Here an item is a stream of results, and only so many
bytes of it are held. A stream that is far enough ahead has no thread: it gets one again when the
consumer has taken what it holds. So a consumer that stops half-way leaves no thread that waits.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextvars import Context, copy_context
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

from optimist.core.errors import UsageError

__all__ = ["AheadLimits", "stream_ahead"]

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class AheadLimits:
    """The bounds of a stream that is read ahead.

    Attributes:
        streams: The most items that are open at a time, each with at most one thread.
        cost: The most that open items may cost together. One item is open whatever it costs.
        held_bytes: The size of waiting results at which an item's thread ends.
    """

    streams: int
    cost: int
    held_bytes: int


def stream_ahead(
    open_item: Callable[[_Item], Iterator[_Result]],
    items: Iterable[tuple[_Item, int]],
    size_of: Callable[[_Result], int],
    limits: AheadLimits,
    *,
    in_order: bool = True,
) -> Iterator[_Result]:
    """Yield the results of all items.

    An error of an item is raised after the results before it. The threads get the context of this
    call, with the operation's budget.

    Args:
        open_item: Returns the results of an item. Called, and its iterator moved on, by one thread
            at a time, but not always by the same one.
        items: The items with their costs, taken only as they are needed.
        size_of: Returns the bytes of a result.
        limits: The bounds.
        in_order: Whether the results come in the order of the items. Else those come first that are
            there first; results of one item stay in their order.
    """
    context = copy_context()  # now: a generator would copy the context of its first consumer

    def new_stream(item: _Item, cost: int, turn: _Turn) -> _Stream[_Result]:
        return _Stream(lambda: open_item(item), cost, size_of, limits.held_bytes, turn)

    return _results(new_stream, iter(items), limits, context, in_order=in_order)


def _results(
    new_stream: Callable[[_Item, int, _Turn], _Stream[_Result]],
    items: Iterator[tuple[_Item, int]],
    limits: AheadLimits,
    context: Context,
    *,
    in_order: bool,
) -> Iterator[_Result]:
    turn = _Turn()
    streams: deque[_Stream[_Result]] = deque()
    process = os.getpid()
    try:
        while True:
            _ensure_not_forked(process)
            while _has_room(streams, limits) and (taken := next(items, None)) is not None:
                streams.append(new_stream(*taken, turn))
            if not streams:
                return
            for stream in streams:
                stream.ensure_moving(context)
            candidates = [streams[0]] if in_order else list(streams)
            with turn.mutex:
                turn.changed.wait_for(partial(_can_go_on, candidates))
                ready = next((each for each in candidates if each.is_ready), None)
            if ready is None:
                continue  # its thread ended while the consumer took what it held
            if ready.is_exhausted:
                streams.remove(ready)
                ready.raise_error()
            else:
                yield ready.take()
    finally:
        if os.getpid() == process:  # a child has no such threads, and might wait for their lock
            for stream in streams:
                stream.close()


def _can_go_on(streams: Iterable[_Stream[_Result]]) -> bool:
    return any(each.is_ready or each.is_idle for each in streams)


def _ensure_not_forked(process: int) -> None:
    if os.getpid() != process:
        raise UsageError(
            "Rows were to be read on in a forked process, but the threads that read them are in "
            "its parent. Begin to read after the fork.",
            kind="OPTIMIST_FORKED_READ",
        )


def _has_room(streams: deque[_Stream[_Result]], limits: AheadLimits) -> bool:
    spent = sum(stream.cost for stream in streams)
    return not streams or (len(streams) < limits.streams and spent < limits.cost)


class _Turn:
    """The lock of all streams of one consumer, and the sign that one of them has changed.

    An interrupt can split the condition's own entry, and then the lock would stay locked for good:
    so the lock itself is entered. It can be entered again, since the garbage collector may close
    the streams in a thread that holds it.
    """

    def __init__(self) -> None:
        self.mutex = threading.RLock()
        self.changed = threading.Condition(self.mutex)


class _Stream(Generic[_Result]):
    """The results of one item, and the thread that moves it on, if it has one now."""

    def __init__(
        self,
        begin: Callable[[], Iterator[_Result]],
        cost: int,
        size_of: Callable[[_Result], int],
        held_bytes: int,
        turn: _Turn,
    ) -> None:
        self.cost = cost
        self._begin = begin
        self._size_of = size_of
        self._most = held_bytes
        self._turn = turn
        self._results: Iterator[_Result] | None = None
        self._held: deque[tuple[_Result, int]] = deque()
        self._held_bytes = 0
        self._has_thread = False
        self._is_closed = False
        self._is_done = False
        self._error: BaseException | None = None

    @property
    def is_ready(self) -> bool:
        """Whether there is a result to take, or there will be none."""
        return bool(self._held) or self._is_done

    @property
    def is_idle(self) -> bool:
        """Whether no thread moves the stream on."""
        return not self._has_thread

    @property
    def is_exhausted(self) -> bool:
        """Whether there is no result and there will be none."""
        return self._is_done and not self._held

    def take(self) -> _Result:
        """Return the first result that waits."""
        with self._turn.mutex:
            result, size = self._held.popleft()
            self._held_bytes -= size
            return result

    def raise_error(self) -> None:
        """Raise the error that ended the stream, if one did."""
        if self._error is not None:
            raise self._error

    def ensure_moving(self, context: Context) -> None:
        """Start a thread if there is more to read and less than half of the bound is held."""
        with self._turn.mutex:
            if self._has_thread or self._is_done or self._held_bytes * 2 > self._most:
                return
            self._has_thread = True
        work = context.copy().run  # each thread needs a copy of its own
        threading.Thread(target=work, args=(self._move,), name="optimist-read").start()

    def close(self) -> None:
        """Drop what waits, and close the item. A thread that works on it now does so at its end."""
        with self._turn.mutex:
            self._is_closed = True
            self._held.clear()
            if self._has_thread:
                return
        self._close_results()

    def _move(self) -> None:
        try:
            while self._hold_next():
                pass
        except BaseException as error:  # noqa: BLE001 (raised to the consumer, in its thread)
            self._end(error)
        with self._turn.mutex:
            self._has_thread = False
            is_closed = self._is_closed
            self._turn.changed.notify_all()
        if is_closed:
            self._close_results()

    def _hold_next(self) -> bool:
        """Read one result, and return whether to go on."""
        if self._is_closed:
            return False
        if self._results is None:
            self._results = self._begin()
        try:
            result = next(self._results)
        except StopIteration:
            self._end(None)
            return False
        size = self._size_of(result)
        with self._turn.mutex:
            if self._is_closed:
                return False
            self._held.append((result, size))
            self._held_bytes += size
            self._turn.changed.notify_all()
            return self._held_bytes < self._most

    def _end(self, error: BaseException | None) -> None:
        with self._turn.mutex:
            self._error = error
            self._is_done = True

    def _close_results(self) -> None:
        close = getattr(self._results, "close", None)
        if close is not None:
            close()
