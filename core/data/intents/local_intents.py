"""Intents on a local disk: a file per write, locked while its writer lives.

A process that dies releases its locks, so a VACUUM on the same machine knows at once which intents
are stale. Between machines that share a disk, locks may mean nothing. The file names its writer's
machine, and for intents of other machines only the age counts.

1. The writer makes the file, locks it, shared, and writes its machine into it.
2. The writer checks that the file still has its name: a VACUUM between the two calls may have found
   no lock on it, and removed it. Then the writer begins again.
3. VACUUM removes an intent only while it holds the exclusive lock on it.
4. At its end the writer removes the file. The directory stays: making it anew for each write would
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
        path: The intent's path, a name that nobody else uses.

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
            descriptor = _create_file(self._path)
            if descriptor is None:
                continue
            if _try_lock(descriptor, self._path):
                self._open.callback(os.close, descriptor)
                self._open.enter_context(closed_in_child(descriptor))
                os.write(descriptor, _machine_id())
                return
            os.close(descriptor)
        raise FileNotFoundError(f"{self._path} was removed again and again")

    def end(self) -> None:
        """Remove the intent. The files of its write are committed, or gone."""
        with suppress(OSError):  # a file that stays is stale, because its lock is released
            self._path.unlink(missing_ok=True)
        self._open.close()


def is_held(path: str) -> bool | None:
    """Return whether a living writer holds an intent, or None if unknown."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    except FileNotFoundError:
        return False
    try:
        return _is_held(descriptor)
    finally:
        os.close(descriptor)


def remove_unless_held(path: str) -> bool | None:
    """Remove an intent that no living writer holds, and answer like `is_held`."""
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
    return False if os.read(descriptor, 100) == _machine_id() else None


def _machine_id() -> bytes:
    """Return bytes that identify this machine since its last start."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_bytes().strip()
    except OSError:
        return socket.gethostname().encode()


def _create_file(path: Path) -> int | None:
    """Create the file, or return None without a directory (first intent, or after a VACUUM)."""
    try:
        return os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o666)
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
        return None


def _try_lock(descriptor: int, path: Path) -> bool:
    with suppress(OSError):  # a file system without locks: VACUUM uses the intent's age
        fcntl.flock(descriptor, fcntl.LOCK_SH)
    with suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(descriptor), path.stat())
    return False
