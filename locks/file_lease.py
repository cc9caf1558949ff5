"""Leases between the processes of one machine, in files of one directory.

*Assumes* a local disk whose `flock` excludes the processes of this machine, and that they read one
wall clock.

*Provides* one holder per name at a time; a deadline, after which the lease of a holder that died or
hangs is taken over; a fencing number, kept in the file, that grows over restarts and power cuts.

*Does not provide* anything between machines: on NFS `flock` may mean nothing, and the clocks
differ. Use Redis or DynamoDB there.

*Excludes* the Optimist processes of this machine that are set to the same directory.

Each name has two files, called after the SHA-256 of the name:

1. `<hash>.lock` is empty and locked by `flock`, for the few microseconds that it takes to read and
   replace the other one. The kernel gives it back when its holder dies, so it can't be left locked.
2. `<hash>.lease` says in JSON who holds the lease, until when, and with which number. It is
   replaced as a whole, by a synced file renamed over it, so that a crash leaves the old state or
   the new.

The lease is not the kernel's lock itself, because that would be held for as long as its holder
hangs; and it is not a file made with `O_EXCL`, because who takes over a stale one removes it first,
and of two that do so together one removes the other's fresh lease.
"""

# Paths are text, and each system call here is deliberate: no pathlib.
# ruff: noqa: PTH103, PTH105, PTH118, PTH120, PTH123

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping

from optimist.core.clock import Clock, SystemClock
from optimist.core.errors import ConfigError, StorageError
from optimist.core.lease import Lease, LeaseGrant, lapsed
from optimist.locks.lease_state import LeaseState
from optimist.locks.lock_options import OwnOptions

__all__ = ["FileLease"]

_DENIED = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})


class FileLease(Lease):
    """Leases in the directory that `optimist.store.file-lease.directory` names.

    Args:
        options: The directory, which is made where it is missing. All who compete name the same,
            and may write in it.
        clock: By which leases lapse.
    """

    def __init__(
        self, options: Mapping[str, str] | None = None, *, clock: Clock | None = None
    ) -> None:
        super().__init__(options)
        own = OwnOptions(self.options, "file-lease")
        directory = own.text("directory")
        own.ensure_all_taken()
        if not directory:
            raise ConfigError(
                "optimist.store.file-lease.directory is missing: name a directory on a local disk "
                "where all writers of this machine may write.",
                kind="OPTIMIST_MISSING_OPTION",
                key="optimist.store.file-lease.directory",
            )
        self._directory = directory
        self._clock: Clock = clock or SystemClock()

    def try_acquire(self, name: str, *, ttl_s: float) -> LeaseGrant | None:
        """See `Lease.try_acquire`."""

        def take(state: LeaseState) -> LeaseState:
            now_ms = self._clock.now_ms()
            if not state.is_free(now_ms):
                return state
            return state.taken(owner, now_ms + round(ttl_s * 1000))

        owner = self._clock.new_uuid()
        state = self._change(name, take)
        return state.grant(name) if state.owner == owner else None

    def renew(self, grant: LeaseGrant, *, ttl_s: float) -> LeaseGrant:
        """See `Lease.renew`."""

        def extend(state: LeaseState) -> LeaseState:
            now_ms = self._clock.now_ms()
            return state.renewed(grant, now_ms, now_ms + round(ttl_s * 1000))

        return self._change(grant.name, extend).grant(grant.name)

    def release(self, grant: LeaseGrant) -> None:
        """See `Lease.release`; the file stays, with the number."""
        self._change(grant.name, lambda state: state.released(grant))

    def ensure_held(self, grant: LeaseGrant) -> None:
        """See `Lease.ensure_held`."""
        state = self._change(grant.name, lambda known: known)
        if not state.is_held_by(grant, self._clock.now_ms()):
            raise lapsed(grant)

    def describe(self) -> Mapping[str, str]:
        """See `Lease.describe`."""
        return {
            **super().describe(),
            "directory": self._directory,
            "excludes": "Optimist processes of this machine set to the same directory",
        }

    def _change(self, name: str, step: Callable[[LeaseState], LeaseState]) -> LeaseState:
        path = os.path.join(self._directory, hashlib.sha256(name.encode()).hexdigest())
        try:
            with self._locked(f"{path}.lock"):
                before = _read(f"{path}.lease")
                after = step(before)
                if after != before:
                    _replace(f"{path}.lease", after, name)
        except OSError as error:
            raise _file_error(error, self._directory) from error
        return after

    @contextlib.contextmanager
    def _locked(self, path: str) -> Iterator[None]:
        os.makedirs(self._directory, exist_ok=True)
        # Opened anew each time: the lock is that of the open file, so threads exclude each other.
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)


def _read(path: str) -> LeaseState:
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except FileNotFoundError:
        return LeaseState()
    try:
        fields = json.loads(text)
        return LeaseState(fields["fencingNumber"], fields["owner"], fields["deadlineMs"])
    except (ValueError, KeyError, TypeError) as error:
        raise StorageError(
            f"The lease file {path} can't be read. Nothing was written. Look who changed it; once "
            "no writer is at work it can be deleted.",
            kind="OPTIMIST_LEASE_DAMAGED",
            path=path,
            retryable=False,
        ) from error


def _replace(path: str, state: LeaseState, name: str) -> None:
    fields = {
        "name": name,
        "owner": state.owner,
        "fencingNumber": state.fencing_number,
        "deadlineMs": state.deadline_ms,
    }
    temporary = f"{path}.tmp"  # one at a time: the caller holds the lock
    with open(temporary, "w", encoding="utf-8") as file:
        json.dump(fields, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
    descriptor = os.open(os.path.dirname(path), os.O_RDONLY | os.O_CLOEXEC)
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
        f"The leases in {directory} can't be kept: {error.strerror or type(error).__name__}.",
        kind=kind,
        path=directory,
        errno=error.errno,
        retryable=False,
    )
