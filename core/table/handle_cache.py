"""The handles that a process keeps, so that opening a table twice gives the same one."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, Protocol, TypeVar

from optimist.core.data.table_ref import TableRef
from optimist.core.forking import ForkSafeLock

__all__ = ["HandleCache"]


class _Handle(Protocol):
    @property
    def table(self) -> TableRef: ...


_AnyHandle = TypeVar("_AnyHandle", bound=_Handle)


class HandleCache(Generic[_AnyHandle]):
    """Handles by key, bounded in number and in age. The least recently used one goes first.

    The bounds are options of each handle. They are part of its key, as all its options are.
    """

    def __init__(self) -> None:
        self._lock = ForkSafeLock()
        self._handles: OrderedDict[Hashable, tuple[_AnyHandle, float]] = OrderedDict()

    def get(self, key: Hashable) -> _AnyHandle | None:
        """Return the handle of a key, or None if there is none that was used lately."""
        with self._lock:
            return self._take_if_young(key)

    def get_or_put(self, key: Hashable, fresh: _AnyHandle) -> _AnyHandle:
        """Return the handle of a key. If there is none, keep and return the fresh one."""
        with self._lock:
            chosen = self._take_if_young(key) or fresh
            self._handles[key] = (chosen, fresh.table.clock.monotonic_s())
            while len(self._handles) > fresh.table.options.log_cache_size:
                self._handles.popitem(last=False)
            return chosen

    def _take_if_young(self, key: Hashable) -> _AnyHandle | None:
        known = self._handles.pop(key, None)
        if known is None:
            return None
        handle, used_s = known
        now_s = handle.table.clock.monotonic_s()
        if used_s < now_s - 60 * handle.table.options.log_cache_retention_minutes:
            return None
        self._handles[key] = (handle, now_s)
        return handle
