"""How far a command of the local plane has got: for its caller, and for the log."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from optimist.core.runtime.clock import Clock

__all__ = ["FileProgress", "Progress", "ProgressReport", "Step"]

_LOG = logging.getLogger(__name__)
_SILENCE_S = 10.0

Step: TypeAlias = Literal["search", "rewrite"]


@dataclass(frozen=True, slots=True)
class FileProgress:
    """How far a command has got.

    Attributes:
        step: `search` looks for the rows, `rewrite` writes files again.
        files_done: How many files the step is done with.
        num_files: How many it has in all.
    """

    step: Step
    files_done: int
    num_files: int


Progress: TypeAlias = Callable[[FileProgress], None]
"""Called after each file, in the thread of the command; if it raises, nothing is committed."""


class ProgressReport:
    """Tells the caller after each file, and the log at times.

    Args:
        clock: Where time comes from.
        progress: What to call after each file.
        command: The name for the log, for example `DELETE`.
    """

    def __init__(self, clock: Clock, progress: Progress | None, command: str) -> None:
        self._clock = clock
        self._progress = progress
        self._command = command
        self._told_s = clock.monotonic_s()

    def tell(self, done: FileProgress) -> None:
        """A file is done."""
        if self._progress is not None:
            self._progress(done)
        now_s = self._clock.monotonic_s()
        if now_s - self._told_s >= _SILENCE_S:
            self._told_s = now_s
            _LOG.info(
                "%s, %s: %d of %d files", self._command, done.step, done.files_done, done.num_files
            )
