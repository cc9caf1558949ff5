"""The meaning of the numbers of an `OSError`, for the log and for data files."""

from __future__ import annotations

import errno
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

__all__ = ["NO_SUCH_FILE", "SYSTEM_CAUSES"]

NO_SUCH_FILE: Final = frozenset(
    {errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG, errno.ELOOP, errno.EISDIR}
)
"""The errors for a name that no file has, or that no file can have."""
_NOT_A_DIRECTORY = "OPTIMIST_NOT_A_DIRECTORY"
_NOT_A_FILE = "OPTIMIST_NOT_A_FILE"

SYSTEM_CAUSES: Final[Mapping[int, tuple[str, str]]] = MappingProxyType(
    {
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
)
"""The kind of the error and what happened, by `errno`. Other numbers have no kind of their own."""
