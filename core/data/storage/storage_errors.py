"""Failures of the stores that hold data files, as our own errors without secrets.

Arrow's file systems put whole URLs into their messages, and a URL may carry a signature. An
`OptimistError` masks it. The original error, which would show it, is not kept as the cause.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from optimist.core.errors import StorageError
from optimist.core.errors.foreign_text import shown
from optimist.core.errors.system_causes import SYSTEM_CAUSES

__all__ = ["storage_errors"]


@contextmanager
def storage_errors(doing: str, path: str) -> Iterator[None]:
    """Wrap an access to a data file, and turn its `OSError` into a `StorageError`.

    Args:
        doing: The failed action, for the message, for example `written`.
        path: The file, or the table.

    Raises:
        StorageError: The file system failed. The kind names the cause if the system does, as
            `OPTIMIST_NO_SPACE`, and else is `OPTIMIST_STORAGE_FAILED`.
    """
    try:
        yield
    except OSError as error:
        kind, _ = SYSTEM_CAUSES.get(error.errno or 0, ("OPTIMIST_STORAGE_FAILED", ""))
        raise StorageError(
            f"The data of {shown(path)} could not be {doing}: {shown(error)}. Nothing was "
            "committed. Check the store, and run the operation again.",
            kind=kind,
            path=path,
            retryable=False,
        ) from None
