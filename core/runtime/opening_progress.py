"""The progress of opening a table, told to whoever watches in the same context.

A table is opened at its first use, in the middle of any call. So there is no argument for it: a
program says for a block of its code who watches. Without a watcher, an opening costs one look.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol, TypeVar

__all__ = ["OpeningWatcher", "told_while_opening", "watch_opening"]

_Item = TypeVar("_Item")


class OpeningWatcher(Protocol):
    """Whoever is told how far an opening is."""

    def tell(self, what: str, done: int, total: int | None) -> None:
        """Take notice of how many are read, and of how many there are if that is known."""

    def end(self) -> None:
        """Take notice that they are read, or that nobody wants the rest."""


_WATCHER: ContextVar[OpeningWatcher | None] = ContextVar("optimist_opening", default=None)


@contextmanager
def watch_opening(watcher: OpeningWatcher) -> Iterator[None]:
    """Tell a watcher of the openings in the block, and nobody else meanwhile."""
    token = _WATCHER.set(watcher)
    try:
        yield
    finally:
        _WATCHER.reset(token)


def told_while_opening(
    what: str,
    items: Iterable[_Item],
    total: int | None = None,
    count: Callable[[_Item], int] | None = None,
) -> Iterable[_Item]:
    """Return the items, and tell the watcher of each of them.

    Args:
        what: What they are, in a word.
        items: What an opening reads, one after another.
        total: How many there are, if that is known.
        count: For how many an item counts; None if for one.
    """
    watcher = _WATCHER.get()
    return items if watcher is None else _told(watcher, what, items, total, count)


def _told(
    watcher: OpeningWatcher,
    what: str,
    items: Iterable[_Item],
    total: int | None,
    count: Callable[[_Item], int] | None,
) -> Iterator[_Item]:
    done = 0
    try:
        for item in items:
            yield item
            done += 1 if count is None else count(item)
            watcher.tell(what, done, total)
    finally:
        watcher.end()
