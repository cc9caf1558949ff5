"""The meaning of an `OSError` for a store's caller: one translation, by code, never by text."""

from __future__ import annotations

import errno

from optimist.core.errors import LogFileNotFoundError, StorageError
from optimist.core.errors.foreign_text import shown
from optimist.core.errors.system_causes import SYSTEM_CAUSES

__all__ = ["storage_error"]

_RETRYABLE = frozenset({errno.EAGAIN, errno.EBUSY, errno.EINTR, errno.ENFILE, errno.EMFILE})


def storage_error(error: OSError, *, doing: str, path: str) -> StorageError:
    """Translate an error of the operating system to the store's error.

    Args:
        error: The system's error.
        doing: The action, for the message: `read`, `list`, `write`.
        path: The path as the caller gave it.

    Returns:
        A `LogFileNotFoundError` for a missing path, else a `StorageError` whose kind is the cause;
        with the fields `path` and `errno`.
    """
    if isinstance(error, FileNotFoundError):
        return LogFileNotFoundError(
            f"Cannot {doing} {shown(path)}: it does not exist.",
            kind="OPTIMIST_FILE_NOT_FOUND",
            path=path,
            retryable=False,
        )
    kind, cause = SYSTEM_CAUSES.get(error.errno or 0, ("OPTIMIST_STORAGE_FAILED", ""))
    return StorageError(
        f"Cannot {doing} {shown(path)}: {cause or error.strerror or type(error).__name__}.",
        kind=kind,
        path=path,
        errno=error.errno,
        retryable=error.errno in _RETRYABLE,
    )
