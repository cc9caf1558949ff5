"""The progress of long work: a bar in a terminal, and nothing anywhere else."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

from optimist.core.imports import import_by_need

__all__ = ["Advance", "progress_bar"]

Advance: TypeAlias = Callable[[int, "int | None"], None]
"""Called with how much is done, and with how much there is, if that is known."""


@contextmanager
def progress_bar(title: str) -> Iterator[Advance]:
    """Show a bar on the errors' stream while the work goes on, if that is a terminal.

    Args:
        title: What is done, in a word or two.
    """
    if not sys.stderr.isatty():
        yield _say_nothing
        return
    rich = import_by_need("rich.progress")
    console = import_by_need("rich.console").Console(file=sys.stderr)
    columns = (rich.TextColumn("{task.description}"), rich.BarColumn(), rich.MofNCompleteColumn())
    with rich.Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(title, total=None)

        def advance(done: int, total: int | None) -> None:
            progress.update(task, completed=done, total=total)

        yield advance


def _say_nothing(done: int, total: int | None) -> None:
    """Take no notice of progress."""
