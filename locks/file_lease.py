"""Leases between the processes of one machine, in files of one directory.

*Assumes* a local disk whose `flock` excludes the processes of this machine, and that they read one
wall clock.

*Provides* one holder per name at a time; a deadline, after which another takes over the lease of a
holder that died or hangs; a fencing number in the file, which grows over restarts and power cuts.

*Does not provide* anything between machines: on NFS `flock` may have no effect, and the clocks
differ. Use Redis or DynamoDB there.

*Excludes* the Optimist processes of this machine and user that are set to the same directory.

Each name has two files, named by its SHA-256:

1. `<hash>.lock` is empty and locked by `flock`, for the few microseconds that it takes to read and
   replace the other file. The kernel frees it when its holder dies, so it can't stay locked. If the
   holder is stopped just then, others wait at most `_LOCK_WAIT_S`.
2. `<hash>.lease` says in JSON who holds the lease, until when, and with which number. It is
   replaced as a whole: a synced file with a random name is renamed over it, so a crash leaves the
   old state or the new.

Other users may write in the directory, too, as in `/tmp`. So every file is created for its owner
alone, no file is opened through a link, and a file of another user is refused: it could redirect
our writes to another file of ours, be locked for ever, or hold any content. So all competitors run
as one user. (In a directory without the sticky bit, others may rename and remove our files and so
take a lease from us. But a lease never guards a commit alone.)

The lease is not the kernel's lock itself, because a hanging holder would keep that lock. And it is
not a file created with `O_EXCL`, because a process removes a stale file before it takes over, and
if two do so together, one removes the other's fresh lease.
"""

# No pathlib: paths are text, and each system call here is deliberate.
# ruff: noqa: PTH103, PTH105, PTH108, PTH118

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from optimist.core.errors import StorageError
from optimist.core.errors.foreign_text import shown
from optimist.core.errors.kinds import STORE_BUSY
from optimist.core.forking import closed_in_child
from optimist.core.options.engine import STORE_PREFIX
from optimist.core.options.fields import option, parse_options
from optimist.core.plugins.lease import Lease, LeaseGrant, lapsed
from optimist.core.runtime.clock import Clock, SystemClock
from optimist.core.secrets import masked_repr
from optimist.locks.lease_state import LeaseState, damaged_lease, parse_lease

__all__ = ["FileLease"]

_MODE = 0o600
_SAFE_FLAGS = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NO_FILE = frozenset({errno.ELOOP, errno.EISDIR, errno.ENXIO})
"""Errors of opening a link, a directory, and a socket or pipe."""

_LOCK_WAIT_S = 10.0
_FIRST_PAUSE_S = 0.000_1
_LONGEST_PAUSE_S = 0.05
_MAX_BYTES = 65_536
_DENIED = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})


@dataclass(frozen=True, slots=True)
class FileLeaseOptions:
    """The options of file leases.

    Attributes:
        directory: The directory of the lease files, on a local disk.
    """

    directory: str = option(
        missing="name a directory on a local disk where all writers of this machine may write"
    )

    __repr__ = masked_repr

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> FileLeaseOptions:
        """Parse the keys `optimist.store.file-lease.<option>`.

        Raises:
            ConfigError: The directory is missing, or a key is unknown.
        """
        return cls(**parse_options(cls, options, f"{STORE_PREFIX}file-lease."))


class FileLease(Lease):
    """Leases in the directory that `optimist.store.file-lease.directory` names.

    Args:
        options: The name of the directory, which is created for its owner alone if it is missing.
            All competitors name the same one, may write in it, and run as one user.
        clock: The clock by which leases lapse.
    """

    def __init__(
        self, options: Mapping[str, str] | None = None, *, clock: Clock | None = None
    ) -> None:
        super().__init__(options)
        parsed = FileLeaseOptions.from_options(self.options)
        self._directory = parsed.directory
        self._clock: Clock = clock or SystemClock()

    def try_acquire(self, name: str, *, ttl_s: float) -> LeaseGrant | None:
        """See `Lease.try_acquire`."""

        def take(state: LeaseState) -> LeaseState:
            now_ms = self._clock.now_ms()
            if not state.is_free(now_ms):
                return state
            return state.taken(owner, now_ms + round(ttl_s * 1000))

        owner = self._clock.new_uuid()
        state = self._change_state(name, take)
        return state.grant(name) if state.owner == owner else None

    def renew(self, grant: LeaseGrant, *, ttl_s: float) -> LeaseGrant:
        """See `Lease.renew`."""

        def extend(state: LeaseState) -> LeaseState:
            now_ms = self._clock.now_ms()
            return state.renewed(grant, now_ms, now_ms + round(ttl_s * 1000))

        return self._change_state(grant.name, extend).grant(grant.name)

    def release(self, grant: LeaseGrant) -> None:
        """See `Lease.release`.

        The file stays, with the number.
        """
        self._change_state(grant.name, lambda state: state.released(grant))

    def ensure_held(self, grant: LeaseGrant) -> None:
        """See `Lease.ensure_held`."""
        state = self._change_state(grant.name, lambda known: known)
        if not state.is_held_by(grant, self._clock.now_ms()):
            raise lapsed(grant)

    def describe(self) -> Mapping[str, str]:
        """See `Lease.describe`."""
        return {
            **super().describe(),
            "directory": self._directory,
            "excludes": "Optimist processes of this machine and user set to the same directory",
        }

    def _change_state(self, name: str, step: Callable[[LeaseState], LeaseState]) -> LeaseState:
        path = os.path.join(self._directory, hashlib.sha256(name.encode()).hexdigest())
        try:
            with self._hold_lock(f"{path}.lock"):
                before = _read_state(f"{path}.lease", name)
                after = step(before)
                if after != before:
                    self._replace_file(f"{path}.lease", after, name)
        except OSError as error:
            raise _file_error(error, self._directory) from error
        return after

    def _replace_file(self, path: str, state: LeaseState, name: str) -> None:
        fields = {
            "name": name,
            "owner": state.owner,
            "fencingNumber": state.fencing_number,
            "deadlineMs": state.deadline_ms,
        }
        temporary = (
            f"{path}.{self._clock.new_uuid()}.tmp"  # nobody can have guessed the name for a link
        )
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _SAFE_FLAGS, _MODE)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                json.dump(fields, file)
                file.flush()
                os.fsync(descriptor)
            os.replace(temporary, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
        _sync_directory(self._directory)

    @contextlib.contextmanager
    def _hold_lock(self, path: str) -> Iterator[None]:
        os.makedirs(self._directory, mode=0o700, exist_ok=True)
        # Opened again each time: the lock is on the open file, so threads exclude each other.
        descriptor = _open_own_file(path, os.O_RDWR | os.O_CREAT)
        try:
            with closed_in_child(descriptor):
                self._lock_in_time(descriptor, path)
                yield
        finally:
            # Closing is not enough: a child that was just forked may not have closed its copy yet.
            fcntl.flock(descriptor, fcntl.LOCK_UN)
            os.close(descriptor)

    @staticmethod
    def _lock_in_time(descriptor: int, path: str) -> None:
        """Lock an open file by polling, and never block in the kernel.

        The wait uses real time, whichever clock decides when leases lapse.
        """
        clock = SystemClock()
        deadline_s = clock.monotonic_s() + _LOCK_WAIT_S
        pause_s = _FIRST_PAUSE_S
        while not _try_lock(descriptor):
            left_s = deadline_s - clock.monotonic_s()
            if left_s <= 0:
                raise _holder_stopped(path)
            clock.sleep(min(clock.uniform(pause_s / 2, pause_s), left_s))
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _open_own_file(path: str, flags: int) -> int:
    """Open one of our own files, which nobody else may read or write.

    Raises:
        StorageError: Another user owns the file, or it is not a file (kind
            `OPTIMIST_LEASE_FILE_FOREIGN`).
        OSError: It can't be opened.
    """
    try:
        descriptor = os.open(path, flags | _SAFE_FLAGS, _MODE)
    except OSError as error:
        if error.errno in _NO_FILE:
            raise _foreign_file(path, "it is a link, or not a file") from None
        raise
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise _foreign_file(path, "it is not a file")
        if status.st_uid != os.geteuid():
            raise _foreign_file(path, f"it belongs to another user ({status.st_uid})")
        if stat.S_IMODE(status.st_mode) & ~_MODE:
            os.fchmod(descriptor, _MODE)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _read_state(path: str, name: str) -> LeaseState:
    try:
        descriptor = _open_own_file(path, os.O_RDONLY)
    except FileNotFoundError:
        return LeaseState()
    with os.fdopen(descriptor, "rb") as file:
        data = file.read(_MAX_BYTES + 1)
    try:
        if len(data) > _MAX_BYTES:
            raise ValueError(f"it is longer than {_MAX_BYTES} bytes")
        return parse_lease(json.loads(data))
    except RecursionError:
        reason = "it is nested too deeply"
    except ValueError as error:
        reason = shown(error)
    raise damaged_lease(name, f"the file {shown(path)}", reason)


def _foreign_file(path: str, reason: str) -> StorageError:
    return StorageError(
        f"The lease file {shown(path)} is not ours: {reason}. Nothing was written, and it was left "
        "as it is. Name a directory of your own in optimist.store.file-lease.directory; all "
        "processes that compete for leases must run as one user.",
        kind="OPTIMIST_LEASE_FILE_FOREIGN",
        path=path,
        retryable=False,
    )


def _holder_stopped(path: str) -> StorageError:
    return StorageError(
        f"Another process has kept the file {shown(path)} locked for {_LOCK_WAIT_S:g} seconds, but "
        "a lock usually takes microseconds: the process is stopped, or its disk hangs. Nothing was "
        "written. Find the process (lsof, fuser) and let it go on, or end it; then run the "
        "operation again.",
        kind=STORE_BUSY,
        path=path,
        retryable=True,
    )


def _sync_directory(directory: str) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _file_error(error: OSError, directory: str) -> StorageError:
    kind = "OPTIMIST_STORAGE_FAILED"
    if error.errno in _DENIED:
        kind = "OPTIMIST_PERMISSION_DENIED"
    elif error.errno in (errno.ENOSPC, errno.EDQUOT):
        kind = "OPTIMIST_NO_SPACE"
    return StorageError(
        f"Cannot keep leases in {directory}: {error.strerror or type(error).__name__}. Check the "
        "directory, or name another one in optimist.store.file-lease.directory.",
        kind=kind,
        path=directory,
        errno=error.errno,
        retryable=False,
    )
