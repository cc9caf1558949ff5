"""How the demonstration speaks: headings, tables, explained conflicts, and checks that can fail."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from optimist.core.errors import DeltaConcurrentModificationException

__all__ = ["DemoError", "Narrator"]


class DemoError(Exception):
    """Something turned out differently from what was promised."""


class Narrator:
    """Prints what happens, and stops the demonstration when a check fails."""

    def __init__(self) -> None:
        self.console = Console(highlight=False, width=None if sys.stdout.isatty() else 110)
        self._started_s = time.perf_counter()

    def chapter(self, title: str) -> None:
        """Print a heading, with the seconds gone by."""
        seconds = time.perf_counter() - self._started_s
        self.console.print()
        self.console.rule(Text(f"{title}   ({seconds:.0f} s)", style="bold"), align="left")

    def say(self, text: str) -> None:
        """Print a plain line."""
        self.console.print(text, markup=False)

    def check(self, holds: bool, promise: str) -> None:
        """Print the promise as kept.

        Raises:
            DemoError: The promise was not kept.
        """
        if not holds:
            raise DemoError(f"NOT TRUE: {promise}")
        self.console.print(Text(f"  ✓ {promise}", style="green"))

    def fail(self, error: Exception) -> None:
        """Print the error that ended the demonstration early, and its causes."""
        causes = []
        while error.__cause__ is not None and isinstance(error.__cause__, Exception):
            causes.append(error)
            error = error.__cause__
        for item in (*causes, error):
            self.console.print(Text(f"{type(item).__name__}: {item}", style="bold red"))

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """Print rows under their headings; numbers to the right."""
        cells = [list(row) for row in rows]
        table = Table(box=None, pad_edge=False, padding=(0, 2))
        for position, name in enumerate(columns):
            numeric = all(isinstance(row[position], int | float | None) for row in cells)
            table.add_column(name, justify="right" if numeric else "left")
        for row in cells:
            table.add_row(*("" if cell is None else Text(str(cell)) for cell in row))
        self.console.print(table)

    def conflict(self, loser: str, error: DeltaConcurrentModificationException) -> None:
        """Print what the losing job is told, and the same as values, for programs."""
        conflict = error.conflict
        place = conflict.partition or "the root of the table"
        text = Text(str(error))
        text.append("\nerror.conflict: ", style="bold")
        text.append(
            f"version {conflict.winning_version}, {conflict.winning_operation}; "
            f"{conflict.num_paths} file(s) in {place}"
        )
        title = f"{loser} got {type(error).__name__}"
        self.console.print(Panel(text, title=title, title_align="left", border_style="yellow"))
