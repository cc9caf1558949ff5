"""A rename that fails if the target exists, for file systems without hard links.

Linux has it as `renameat2(RENAME_NOREPLACE)`, macOS as `renamex_np(RENAME_EXCL)`; Python has
neither. If a kernel cannot do it on a file system, it returns `EINVAL` and renames nothing. A plain
rename can't replace it: it overwrites the winner's file.
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
    """Rename a file within one file system, but never replace the target.

    Raises:
        FileExistsError: The target exists; nothing was changed.
        OSError: Nothing was changed. `errno` is `ENOSYS`, `EINVAL` or `ENOTSUP` if the machine or
            the file system has no such rename.
    """
    call = _find_rename_call()
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
    """Check on two test files that the rename really refuses to replace.

    A file system in user space may accept the flag and ignore it. Both files must exist. If it
    returns False, `first` may be gone.
    """
    try:
        rename_exclusively(first, second)
    except FileExistsError:
        return True
    except OSError:
        return False
    return False


@cache
def _find_rename_call() -> ctypes._NamedFuncPointer | None:
    library = ctypes.CDLL(None, use_errno=True)
    name = "renamex_np" if sys.platform == "darwin" else "renameat2"
    call: ctypes._NamedFuncPointer | None = getattr(library, name, None)
    return call
