"""A rename that fails if the target exists, for file systems without hard links.

Linux has it as `renameat2(RENAME_NOREPLACE)`, macOS as `renamex_np(RENAME_EXCL)`; Python has
neither. A kernel that cannot do it for a file system answers `EINVAL` and renames nothing. A plain
rename is no substitute: it replaces the winner's file.
"""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from functools import cache

__all__ = ["is_exclusive", "rename_exclusively"]

_AT_FDCWD = -100
_RENAME_NOREPLACE = 1
_RENAME_EXCL = 4


def rename_exclusively(source: str, target: str) -> None:
    """Rename a file; both paths lie on one file system.

    Raises:
        FileExistsError: The target exists; nothing was changed.
        OSError: Nothing was changed. `errno` is `ENOSYS`, `EINVAL` or `ENOTSUP` where the machine
            or the file system has no such rename.
    """
    call = _rename_call()
    if call is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS), source)
    from_bytes, to_bytes = os.fsencode(source), os.fsencode(target)
    if sys.platform == "darwin":
        result = call(from_bytes, to_bytes, _RENAME_EXCL)
    else:
        result = call(_AT_FDCWD, from_bytes, _AT_FDCWD, to_bytes, _RENAME_NOREPLACE)
    if result != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), source, None, target)


def is_exclusive(first: str, second: str) -> bool:
    """Whether the rename really refuses to replace, tried on two files made for the purpose.

    A file system in user space may take the flag and ignore it. Both files must exist; after a
    False, `first` may be gone.
    """
    try:
        rename_exclusively(first, second)
    except FileExistsError:
        return True
    except OSError:
        return False
    return False


@cache
def _rename_call() -> ctypes._NamedFuncPointer | None:
    library = ctypes.CDLL(None, use_errno=True)
    name = "renamex_np" if sys.platform == "darwin" else "renameat2"
    call: ctypes._NamedFuncPointer | None = getattr(library, name, None)
    return call
