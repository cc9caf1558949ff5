"""The progress of long work as a bar: in a terminal by rich, in a notebook, and nowhere else.

A bar stands on the errors' stream, so it gets into no output, and is gone when the work ends.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from typing import Any, Protocol

from optimist.core.imports import import_by_need
from optimist.core.runtime.clock import SystemClock
from optimist.core.runtime.opening_progress import watch_opening
from optimist.core.runtime.progress import FileProgress

__all__ = ["ProgressBar", "opening_bar", "progress_bar"]

_CLOCK = SystemClock()
_LONG_S = 1.0
"""How long an opening may take before it gets a bar."""
_PAUSE_S = 0.1


@contextmanager
def progress_bar(title: str) -> Iterator[ProgressBar]:
    """Show a bar while the work in the block goes on, in a terminal or a notebook.

    Elsewhere, and in a terminal without the package rich, nothing is shown. The bar also shows how
    tables are opened in the block.

    Args:
        title: What is done, in a word or two.

    Yields:
        The bar, which is the `progress` of a command.
    """
    bar = ProgressBar(_screen(title))
    bar.advance(0, None)
    try:
        with watch_opening(bar):
            yield bar
    finally:
        bar.close()


@contextmanager
def opening_bar() -> Iterator[None]:
    """Show a bar while tables are opened in the block, once an opening takes long."""
    screen = _screen("open")
    if screen is None:
        yield
        return
    opening = _LongOpening(screen)
    try:
        with watch_opening(opening):
            yield
    finally:
        opening.end()


class _Screen(Protocol):
    """Where a bar is shown."""

    def show(self, what: str, done: int, total: int | None) -> None:
        """Show how far the work is."""

    def hide(self) -> None:
        """Take the bar away, if it is there."""


class ProgressBar:
    """The bar of one piece of work. Call it with a `FileProgress`, as commands do."""

    def __init__(self, screen: _Screen | None) -> None:
        self._screen = screen

    def __call__(self, told: FileProgress) -> None:
        """Show how far a command is."""
        self.advance(told.files_done, told.num_files)

    def advance(self, done: int, total: int | None) -> None:
        """Show how much is done, and how much there is if that is known."""
        self.tell("", done, total)

    def tell(self, what: str, done: int, total: int | None) -> None:
        """Show how far the work is, or the opening of a table in it."""
        if self._screen is not None:
            self._screen.show(what, done, total)

    def end(self) -> None:
        """Take notice that a table is open: the work goes on."""

    def close(self) -> None:
        """Take the bar away."""
        if self._screen is not None:
            self._screen.hide()


class _LongOpening:
    """Shows a bar once an opening has taken a second."""

    def __init__(self, screen: _Screen) -> None:
        self._screen = screen
        self._since_s: float | None = None

    def tell(self, what: str, done: int, total: int | None) -> None:
        now_s = _CLOCK.monotonic_s()
        if self._since_s is None:
            self._since_s = now_s
        if now_s - self._since_s >= _LONG_S:
            self._screen.show(what, done, total)

    def end(self) -> None:
        self._since_s = None
        self._screen.hide()


class _Terminal:
    """A bar of rich, which is loaded when there is something to show."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._bar: Any = None
        self._task: Any = None

    def show(self, what: str, done: int, total: int | None) -> None:
        if self._bar is None:
            self._begin()
        title = f"{self._title}: {what}" if what else self._title
        self._bar.update(self._task, description=title, completed=done, total=total)

    def hide(self) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def _begin(self) -> None:
        rich = import_by_need("rich.progress")
        console = import_by_need("rich.console").Console(file=sys.stderr)
        columns = (
            rich.TextColumn("{task.description}", markup=False),
            rich.BarColumn(),
            rich.MofNCompleteColumn(),
        )
        self._bar = rich.Progress(*columns, console=console, transient=True)
        self._task = self._bar.add_task(self._title, total=None)
        self._bar.start()


class _Notebook:
    """A bar of HTML in the output of a cell, which needs no widgets."""

    def __init__(self, title: str, display: Any) -> None:
        self._title = title
        self._display = display
        self._place: Any = None
        self._shown_s = 0.0

    def show(self, what: str, done: int, total: int | None) -> None:
        now_s = _CLOCK.monotonic_s()
        if self._place is not None and now_s - self._shown_s < _PAUSE_S:
            return
        self._shown_s = now_s
        title = escape(f"{self._title}: {what}" if what else self._title)
        of = f'value="{done}" max="{total}"' if total else ""
        counted = f"{done:,} of {total:,}" if total else f"{done:,}"
        self._put(f"{title} <progress {of}></progress> {counted}")

    def hide(self) -> None:
        if self._place is not None:
            self._put("")
            self._place = None

    def _put(self, html: str) -> None:
        shown = self._display.HTML(html)
        if self._place is None:
            self._place = self._display.display(shown, display_id=True)
        else:
            self._place.update(shown)


def _screen(title: str) -> _Screen | None:
    if _is_notebook():
        return _Notebook(title, import_by_need("IPython.display"))
    if sys.stderr is None or not sys.stderr.isatty():
        return None
    has_rich = import_by_need("importlib.util").find_spec("rich") is not None
    return _Terminal(title) if has_rich else None


def _is_notebook() -> bool:
    """Return whether a cell of a notebook runs: IPython is loaded then, and has a kernel."""
    loaded = sys.modules.get("IPython")
    find_shell = getattr(loaded, "get_ipython", None)
    shell = None if find_shell is None else find_shell()
    return getattr(shell, "kernel", None) is not None
