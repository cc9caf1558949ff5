"""What an `OSError` means to the caller of a store: one translation, by code, never by text."""

from __future__ import annotations

import errno

from optimist.core.errors import LogFileNotFoundError, StorageError
from optimist.core.errors.foreign_text import shown

__all__ = ["storage_error"]

_NOT_A_DIRECTORY = "OPTIMIST_NOT_A_DIRECTORY"
_NOT_A_FILE = "OPTIMIST_NOT_A_FILE"

_CAUSES: dict[int, tuple[str, str]] = {
    errno.ENOTDIR: (_NOT_A_DIRECTORY, "a part of the path is a file, not a directory"),
    errno.EISDIR: (_NOT_A_FILE, "it is a directory, not a file"),
    errno.ENXIO: (_NOT_A_FILE, "it is a pipe, a device or the like, not a file"),
    errno.ELOOP: (_NOT_A_FILE, "its symbolic links form a loop"),
    errno.EACCES: ("OPTIMIST_PERMISSION_DENIED", "permission denied"),
    errno.EPERM: ("OPTIMIST_PERMISSION_DENIED", "operation not permitted"),
    errno.EROFS: ("OPTIMIST_PERMISSION_DENIED", "the file system is read-only"),
    errno.ENOSPC: ("OPTIMIST_NO_SPACE", "no space left on the device"),
    errno.EDQUOT: ("OPTIMIST_NO_SPACE", "the disk quota is used up"),
    errno.ENAMETOOLONG: ("OPTIMIST_INVALID_PATH", "the name is too long for the file system"),
}

_RETRYABLE = frozenset({errno.EAGAIN, errno.EBUSY, errno.EINTR, errno.ENFILE, errno.EMFILE})


def storage_error(error: OSError, *, doing: str, path: str) -> StorageError:
    """Translate an error of the operating system into the store's.

    Args:
        error: What the system said.
        doing: What was tried, for the message: `read`, `list`, `write`.
        path: The path as the caller gave it.

    Returns:
        A `LogFileNotFoundError` where the path is missing, else a `StorageError` whose kind tells
        the cause; fields `path` and `errno`.
    """
    if isinstance(error, FileNotFoundError):
        return LogFileNotFoundError(
            f"Cannot {doing} {shown(path)}: it does not exist.",
            kind="OPTIMIST_FILE_NOT_FOUND",
            path=path,
            retryable=False,
        )
    kind, cause = _CAUSES.get(error.errno or 0, ("OPTIMIST_STORAGE_FAILED", ""))
    return StorageError(
        f"Cannot {doing} {shown(path)}: {cause or error.strerror or type(error).__name__}.",
        kind=kind,
        path=path,
        errno=error.errno,
        retryable=error.errno in _RETRYABLE,
    )
