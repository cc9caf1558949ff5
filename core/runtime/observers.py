"""Observers of work: commits, the opening of tables, scans, requests to stores.

Whoever measures this engine registers an observer by a name. It is told when a piece of work
begins, and is told the outcome when the work ends, in the thread of the work. What an observer
raises is logged and goes no further: a commit that has landed stands, whatever a program does that
watches it. Without an observer, a piece of work costs one look at an empty table.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal, TypeAlias

from optimist.core.runtime.clock import SystemClock
from optimist.core.secrets import without_secrets

__all__ = [
    "Ended",
    "Fact",
    "Observer",
    "ToldWork",
    "Work",
    "WorkName",
    "has_observers",
    "observe",
    "observed",
]

_LOG = logging.getLogger(__name__)
_CLOCK = SystemClock()

Fact: TypeAlias = str | int | bool
WorkName: TypeAlias = Literal["commit", "open", "scan", "request"]


@dataclass(frozen=True, slots=True)
class Work:
    """A piece of work that begins.

    Attributes:
        name: The kind of work.
        table_path: The table, without passwords and tokens. Empty for a request about a file that
            is not in a log.
    """

    name: WorkName
    table_path: str


@dataclass(frozen=True, slots=True)
class Ended:
    """The end of a piece of work.

    Attributes:
        elapsed_s: How long it took, in seconds.
        facts: What is known of it, by name.
        error: What it raised, or None.
    """

    elapsed_s: float
    facts: Mapping[str, Fact]
    error: BaseException | None


Observer: TypeAlias = Callable[[Work], Callable[[Ended], None]]
"""Called when work begins. What it returns is called once when the work has ended."""

_OBSERVERS: dict[str, Observer] = {}


def observe(name: str, observer: Observer | None) -> None:
    """Tell an observer of the work of this process from now on, or nobody if it is None.

    Args:
        name: The observer's name. The observer that had it before is told no more.
        observer: The observer.
    """
    if observer is None:
        _OBSERVERS.pop(name, None)
    else:
        _OBSERVERS[name] = observer


def has_observers() -> bool:
    """Return whether there is anybody to tell."""
    return bool(_OBSERVERS)


class ToldWork:
    """A piece of work of which the observers have been told, until its end.

    Args:
        name: The kind of work.
        table_path: The table.

    Attributes:
        facts: What is known of it, to which whoever does the work adds.
    """

    def __init__(self, name: WorkName, table_path: str) -> None:
        self.facts: dict[str, Fact] = {}
        self._told = _begin(Work(name, without_secrets(table_path)))

    def end(self, elapsed_s: float, error: BaseException | None) -> None:
        """Tell the observers that the work has ended."""
        ended = Ended(elapsed_s, self.facts, error)
        for by, end in reversed(self._told):
            _call(by, end, ended)


@contextmanager
def observed(name: WorkName, table_path: str) -> Iterator[dict[str, Fact]]:
    """Tell the observers of the work in the block.

    Args:
        name: The kind of work.
        table_path: The table.

    Yields:
        The facts, to which the block adds what it learns.
    """
    if not has_observers():
        yield {}
        return
    start_s, work = _CLOCK.monotonic_s(), ToldWork(name, table_path)
    error: BaseException | None = None
    try:
        yield work.facts
    except BaseException as raised:
        error = raised
        raise
    finally:
        work.end(_CLOCK.monotonic_s() - start_s, error)


def _begin(work: Work) -> list[tuple[str, Callable[[Ended], None]]]:
    told: list[tuple[str, Callable[[Ended], None]]] = []
    for by, observer in tuple(_OBSERVERS.items()):
        try:
            told.append((by, observer(work)))
        except Exception:  # noqa: BLE001 - the work goes on whatever an observer does
            _LOG.warning(
                "The observer %s failed at the start of a %s.", by, work.name, exc_info=True
            )
    return told


def _call(by: str, end: Callable[[Ended], None], ended: Ended) -> None:
    try:
        end(ended)
    except Exception:  # noqa: BLE001 - the commit stands whatever happens here
        _LOG.warning("The observer %s failed at the end of its work.", by, exc_info=True)
