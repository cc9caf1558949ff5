"""`ScratchDirectory`: files on this machine's disk that a command needs while it runs."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from weakref import finalize

from optimist.core.errors import StorageError
from optimist.core.errors.foreign_text import shown
from optimist.core.errors.system_causes import SYSTEM_CAUSES

__all__ = ["ScratchDirectory"]


class ScratchDirectory:
    """A new directory below `TMPDIR`. It goes with `close`, the last reference, or the process.

    A forked child has a copy of the object, but the directory belongs to its parent: nothing that
    the child does removes it.

    Raises:
        StorageError: The directory can't be made.
    """

    def __init__(self) -> None:
        with _scratch_errors("written", tempfile.tempdir or os.environ.get("TMPDIR", "")):
            self._path = tempfile.mkdtemp(prefix="optimist-")
        self._removal = finalize(self, _remove, self._path, os.getpid())

    def path(self, name: str) -> str:
        """Return the path of a file in it."""
        return str(Path(self._path) / name)

    def close(self) -> None:
        """Remove it, with all files in it."""
        self._removal()

    @contextmanager
    def errors(self, doing: str) -> Iterator[None]:
        """Wrap an access to a file in it.

        Args:
            doing: The failed action, for the message: `written` or `read`.

        Raises:
            StorageError: The disk is full, or failed.
        """
        with _scratch_errors(doing, self._path):
            yield


@contextmanager
def _scratch_errors(doing: str, path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        kind, _ = SYSTEM_CAUSES.get(error.errno or 0, ("OPTIMIST_STORAGE_FAILED", ""))
        raise StorageError(
            f"Rows that wait on this machine's disk, below {shown(path or 'TMPDIR')}, could not be "
            f"{doing}: {shown(error)}. Nothing was committed. Make room there, or let TMPDIR name "
            "a directory on a larger disk, and run the operation again.",
            kind=kind,
            path=path,
            retryable=False,
        ) from None


def _remove(path: str, process: int) -> None:
    if os.getpid() == process:
        shutil.rmtree(path, ignore_errors=True)
