"""Intents on a local disk: a file per write, locked for as long as its writer lives.

A process that dies releases its locks, so a VACUUM on the same machine can tell at once which
intents are stale. Between machines that share a disk locks may mean nothing; the file tells where
its writer runs, and the intents of other machines go by their age.

1. The writer makes the file, locks it, shared, and writes its machine into it.
2. It looks whether the file still has its name: a VACUUM between the two calls found no lock on it,
   and removed it. Then it begins again.
3. VACUUM removes an intent only while it holds the exclusive lock on it.
4. At its end the writer removes the file. The directory stays: to make it anew for each write would
   cost more than all the rest.
"""

from __future__ import annotations

import fcntl
import os
import socket
from contextlib import ExitStack, suppress
from pathlib import Path

from optimist.core.forking import closed_in_child

__all__ = ["LocalIntent", "is_held", "remove_unless_held"]

_TRIES = 100


class LocalIntent:
    """One intent of a writer of this process.

    Args:
        path: Where to; a name that nobody else uses.

    Raises:
        OSError: The file system failed.
    """

    def __init__(self, path: str) -> None:
        self._path = Path(path)
        self._open = ExitStack()
        try:
            self._make()
        except BaseException:
            self.end()
            raise

    def _make(self) -> None:
        for _ in range(_TRIES):
            descriptor = _created(self._path)
            if descriptor is None:
                continue
            if _is_locked(descriptor, self._path):
                self._open.callback(os.close, descriptor)
                self._open.enter_context(closed_in_child(descriptor))
                os.write(descriptor, _machine())
                return
            os.close(descriptor)
        raise FileNotFoundError(f"{self._path} was removed again and again")

    def end(self) -> None:
        """Remove the intent; what it guarded is committed, or gone."""
        with suppress(OSError):  # what is left is stale, as its lock is released
            self._path.unlink(missing_ok=True)
        self._open.close()


def is_held(path: str) -> bool | None:
    """Whether a living writer holds an intent; None if that can't be told."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    except FileNotFoundError:
        return False
    try:
        return _is_held(descriptor)
    finally:
        os.close(descriptor)


def remove_unless_held(path: str) -> bool | None:
    """Remove an intent that no living writer holds; see `is_held` for the answer."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    except FileNotFoundError:
        return False
    try:
        held = _is_held(descriptor)
        if held is False:
            Path(path).unlink(missing_ok=True)
        return held
    finally:
        os.close(descriptor)


def _is_held(descriptor: int) -> bool | None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return None
    return False if os.read(descriptor, 100) == _machine() else None


def _machine() -> bytes:
    """What tells this machine, as it runs now, from every other."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_bytes().strip()
    except OSError:
        return socket.gethostname().encode()


def _created(path: Path) -> int | None:
    """The new file; None if there was no directory, as before the first, or after a VACUUM."""
    try:
        return os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o666)
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
        return None


def _is_locked(descriptor: int, path: Path) -> bool:
    with suppress(OSError):  # a file system without locks: VACUUM goes by the intent's age
        fcntl.flock(descriptor, fcntl.LOCK_SH)
    with suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(descriptor), path.stat())
    return False
