"""The progress of long work without Spark, for its caller and for the log."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias, TypeVar

from optimist.core.runtime.clock import Clock

__all__ = ["FileProgress", "Progress", "ProgressReport", "Step"]

_LOG = logging.getLogger(__name__)
_SILENCE_S = 10.0

_Result = TypeVar("_Result")

Step: TypeAlias = Literal["search", "rewrite", "footers", "copy", "check", "log", "data"]


@dataclass(frozen=True, slots=True)
class FileProgress:
    """The progress of a command.

    Attributes:
        step: `search` finds the rows, `rewrite` writes files again, `footers` reads the footers of
            Parquet files, `copy` copies files, `check` looks whether
            files are there, `log` reads commits, `data` reads data files.
        files_done: The number of files that the step has finished.
        num_files: The number of files of the step.
    """

    step: Step
    files_done: int
    num_files: int


Progress: TypeAlias = Callable[[FileProgress], None]
"""Called after each file, in the command's thread; if it raises, nothing is committed."""


class ProgressReport:
    """Calls the caller after each file, and writes to the log at intervals.

    Args:
        clock: The source of time.
        progress: What to call after each file.
        command: The command's name for the log, for example `DELETE`.
    """

    def __init__(self, clock: Clock, progress: Progress | None, command: str) -> None:
        self._clock = clock
        self._progress = progress
        self._command = command
        self._reported_s = clock.monotonic_s()

    def tell(self, done: FileProgress) -> None:
        """Report a finished file."""
        if self._progress is not None:
            self._progress(done)
        now_s = self._clock.monotonic_s()
        if now_s - self._reported_s >= _SILENCE_S:
            self._reported_s = now_s
            _LOG.info(
                "%s, %s: %d of %d files", self._command, done.step, done.files_done, done.num_files
            )

    def each(self, step: Step, results: Iterable[_Result], num_files: int) -> Iterator[_Result]:
        """Yield results, one per file, and report each after its consumer has dealt with it."""
        for done, result in enumerate(results, 1):
            yield result
            self.tell(FileProgress(step, done, num_files))
