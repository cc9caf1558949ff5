"""Clients in threads of their own, of which one goes on at each request: any way they interleave.

Only one of them runs at a time, and chance says which, so the same seed has the same race again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random  # noqa: TID251 - the caller gives a seed
from unittest.mock import patch

from catalog_on_disk import Client, Server, answer
from interleaved_names import FAILED, Step, Table, after
from optimist.core import DeltaLog
from optimist.core.transaction.optimistic import OptimisticTransaction

__all__ = ["Taken", "orders", "raced"]

_STUCK_S = 60
_POINTS = (
    (OptimisticTransaction, "commit"),
    (DeltaLog, "start_transaction"),
    (DeltaLog, "table_exists"),
)
"""Where a client may be overtaken besides its requests to the server."""


@dataclass(frozen=True)
class Taken:
    """A step that a client has taken, its answer, and when it began and ended."""

    step: Step
    answer: object
    begun: int
    ended: int


class _Turns:
    """Whose turn it is among some threads."""

    def __init__(self, chance: Random) -> None:
        self._chance = chance
        self._waiting: dict[threading.Thread, threading.Semaphore] = {}
        self._back = threading.Semaphore(0)
        self.now = 0

    def next(self) -> int:
        self.now += 1
        return self.now

    def wait(self) -> None:
        """Let another thread go on, unless this one takes no part."""
        own = self._waiting.get(threading.current_thread())
        if own is not None:
            self._back.release()
            assert own.acquire(timeout=_STUCK_S)

    def run(self, parts: Sequence[Callable[[], None]]) -> None:
        """Run the parts until all of them have ended."""
        for part in parts:
            thread = threading.Thread(target=self._run, args=(part,), daemon=True)
            self._waiting[thread] = threading.Semaphore(0)
        for thread in self._waiting:
            thread.start()
        left = list(self._waiting)
        while left:
            thread = self._chance.choice(left)
            self._waiting[thread].release()
            assert self._back.acquire(timeout=_STUCK_S), "a client waits for another one"
            if not thread.is_alive() or thread in self._ended:
                left.remove(thread)

    @property
    def _ended(self) -> set[threading.Thread]:
        return self.__dict__.setdefault("ended", set())

    def _run(self, part: Callable[[], None]) -> None:
        own = threading.current_thread()
        assert self._waiting[own].acquire(timeout=_STUCK_S)
        try:
            part()
        finally:
            self._ended.add(own)
            self._back.release()


@contextmanager
def _waiting_at(points: Sequence[tuple[type, str]], turns: _Turns) -> Iterator[None]:
    if not points:
        yield
        return
    (owner, name), *more = points
    original = getattr(owner, name)

    def run(*args: object, **named: object) -> object:
        turns.wait()
        return original(*args, **named)

    with patch.object(owner, name, run), _waiting_at(more, turns):
        yield


def raced(server: Server, chance: Random, clients: Sequence[Sequence[Step]]) -> list[list[Taken]]:
    """Let clients take their steps at the same time."""
    turns = _Turns(chance)
    taken: list[list[Taken]] = [[] for _ in clients]

    def part(steps: Sequence[Step], own: list[Taken]) -> None:
        for step in steps:
            begun = turns.next()
            told = answer(Client(server), step)
            own.append(Taken(step, told, begun, turns.next()))

    def of(at: int) -> Callable[[], None]:
        return lambda: part(clients[at], taken[at])

    server.before = turns.wait
    with _waiting_at(_POINTS, turns):
        turns.run([of(at) for at in range(len(clients))])
    server.before = lambda: None
    return taken


def orders(begun: dict[str, Table], taken: Sequence[Sequence[Taken]]) -> Iterator[dict[str, Table]]:
    """All that may be there afterwards: each step happened at once, while it was taken."""
    left = [each for each in taken if each]
    if not left:
        yield begun
    for at, own in enumerate(left):
        first = own[0]
        others = left[:at] + left[at + 1 :]
        if any(other[0].ended < first.begun for other in others):
            continue
        rest = [*others, own[1:]]
        if str(first.answer).startswith(FAILED):
            yield from orders(begun, rest)
            continue
        made = after(first.step, begun)
        if made is not None and made[1] == first.answer:
            yield from orders(made[0], rest)
