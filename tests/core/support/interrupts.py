"""An interrupt between any two lines of our own code, one run for each place.

A first run counts how often each line of the watched folders is reached. Then each line is struck
where it is first and where it is last reached, in a run of its own.

The way out of a `with` counts as a part of its last line: the interpreter, too, looks for signals
between two calls, and not between the end of the body and what lets go of a lock.
"""

from __future__ import annotations

import linecache
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import optimist.core.transaction

_CORE = Path(optimist.core.transaction.__file__).parent.parent


class Interrupt(BaseException):
    """Like Ctrl-C, or a scheduler that kills the thread."""


@dataclass(frozen=True)
class Place:
    """Where an interrupt strikes: at the n-th time that a line is reached, counted from 1."""

    file: str
    line: int
    nth: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}#{self.nth}"


def places(run: Callable[[], object], folders: Sequence[str]) -> Iterator[Place]:
    """The places of a run, which is done once to find them, in the order of their files."""
    reached: Counter[tuple[str, int]] = Counter()

    def count(where: tuple[str, int]) -> None:
        reached[where] += 1

    with _watching(folders, count):
        run()
    for (file, line), times in sorted(reached.items()):
        yield from (Place(file, line, nth) for nth in sorted({1, times}))


def interrupted(run: Callable[[], object], folders: Sequence[str], place: Place) -> bool:
    """Run something and interrupt it at a place; whether the interrupt came out of it."""
    times = 0

    def strike(where: tuple[str, int]) -> None:
        nonlocal times
        times += where == (place.file, place.line)
        if times == place.nth:
            times += 1
            raise Interrupt

    try:
        with _watching(folders, strike):
            run()
    except Interrupt:
        return True
    return False


class _watching:  # noqa: N801 - reads as a function
    """Calls a function at each line of the watched files that this thread reaches."""

    def __init__(self, folders: Sequence[str], tell: Callable[[tuple[str, int]], None]) -> None:
        self._roots = tuple(str(_CORE / folder) for folder in folders)
        self._tell = tell
        self._before: Any = None

    def __enter__(self) -> None:
        self._before = sys.gettrace()
        sys.settrace(self._enter_frame)

    def __exit__(self, *_: object) -> None:
        sys.settrace(self._before)

    def _enter_frame(self, frame: FrameType, event: str, argument: object) -> Any:
        file = frame.f_code.co_filename
        if not file.startswith(self._roots):
            return None
        name, entered = str(Path(file).relative_to(_CORE)), set[int]()

        def at_line(frame: FrameType, event: str, argument: object) -> Any:
            line = frame.f_lineno
            if event == "line" and line not in entered:
                if linecache.getline(file, line).lstrip().startswith("with "):
                    entered.add(line)  # it is reached again on the way out
                self._tell((name, line))
            return at_line

        return at_line
