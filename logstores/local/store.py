"""Logs on a file system of this machine (spec 3.3, 3.4).

*Assumes* a POSIX file system on which either `link` or the kernel's rename-without-replace is
atomic and fails if the target exists: all disk file systems, and NFS. `fsync` really makes data
durable.

*Provides* for the files of a log: mutual exclusion between threads, processes and, on a shared file
system, machines; atomic visibility of the files that this store creates; consistent listing; a
reported commit survives a power cut.

*Does not provide* atomic visibility of files that others write by other means, so
`is_partial_write_visible` is true; nor, between machines on NFS, a listing younger than the
client's attribute cache. It never falls back to a plain rename: on a file system with neither
primitive it refuses to write.

*Excludes* the writers of `deltalake` (delta-rs), which create commits by hard link too, and other
Optimist processes. It does not exclude delta-spark, which checks and then renames: do not write one
local table with delta-spark and with anything else at the same time.
"""

# No pathlib: paths are text by contract, and each system call here is deliberate.
# ruff: noqa: PTH100, PTH103, PTH105, PTH108, PTH114, PTH116, PTH118, PTH120

from __future__ import annotations

import contextlib
import errno
import heapq
import os
import shutil
import stat
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from typing import BinaryIO

from optimist.core.errors import ConfigError, StorageError
from optimist.core.errors.foreign_text import shown
from optimist.core.paths import scheme_of, strip_file_scheme
from optimist.core.plugins.logstore import NO_ATOMIC_CREATE, FileStatus, LogStore, PutOutcome
from optimist.core.runtime.clock import Clock, SystemClock
from optimist.logstores.local.exclusive_rename import is_exclusive, rename_exclusively
from optimist.logstores.local.queue import turn_at
from optimist.logstores.shared.missed_commits import missed_commits
from optimist.logstores.shared.os_errors import storage_error
from optimist.logstores.shared.store_options import ensure_no_options

__all__ = ["NOTHING_DONE", "LocalLogStore"]

_NO_HARD_LINKS = frozenset(
    {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EXDEV}
)
"""Errors of `link` within one directory, if the file system has no hard links."""

_NO_EXCLUSIVE_RENAME = frozenset({errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP})

NOTHING_DONE = frozenset(
    {
        errno.ENOENT,
        errno.ENOTDIR,
        errno.EACCES,
        errno.EPERM,
        errno.EROFS,
        errno.ENOSPC,
        errno.EDQUOT,
        errno.ENAMETOOLONG,
        errno.ELOOP,
    }
)
"""Errors by which the system says that no name was created. Others leave the outcome unknown."""

_LEADS_NOWHERE = frozenset({errno.ENOENT, errno.ELOOP})
"""Errors of `stat` for a name that is gone, or that is a link to nothing or to itself."""

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_COPY_BYTES = 1 << 20
_NO_DIRECTORY_SYNC = frozenset({errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS})


class LocalLogStore(LogStore):
    """A log whose commits are created by linking a complete, synced file to its name.

    Paths are plain or `file:` URLs; a `%` in them is a percent sign. Relative paths are relative to
    the working directory. `~` is an ordinary character.

    Args:
        options: Keys `optimist.store.local.*` are refused: the store has none.
        clock: Names the temporary files.
    """

    def __init__(
        self, options: Mapping[str, str] | None = None, *, clock: Clock | None = None
    ) -> None:
        super().__init__(options)
        ensure_no_options(self.options, "local")
        self._clock: Clock = clock or SystemClock()
        self._renames_exclusively: dict[int, bool] = {}

    def put_if_absent(self, path: str, data: bytes) -> PutOutcome:
        """See `LogStore.put_if_absent`.

        1. If the name is taken already, the race is lost: report it before the cost of a write.
           (This saves time and decides nothing; step 3 excludes others.) If something other than a
           file has the name, such as a directory, it is an error: a listing would never show a
           winner.
        2. Write the bytes to `.<name>.<uuid>.tmp` in the same directory, and sync them.
        3. Link the file to its name, which fails if the name is taken.
        4. Sync the directory. From step 3 on others see the commit, so the answer can't be an error
           any more: if this fails, it is `UNKNOWN`, and the engine reads the file back.
        5. Remove the temporary name in any case.

        A version checksum (`N.crc`) is a hint that every reader checks and does not need: it is
        created in the same way, but not synced.

        Raises:
            LogFileNotFoundError: The directory does not exist.
            ConfigError: The file system can't create a file exclusively and atomically (kind
                `OPTIMIST_NO_ATOMIC_CREATE`), or the path is not on a file system.
            StorageError: Nothing was created.
        """
        return self._put_if_absent(path, data)

    def put_file_if_absent(self, path: str, file: BinaryIO) -> PutOutcome:
        """See `LogStore.put_file_if_absent`.

        The file is copied piece by piece.
        """
        file.seek(0)
        return self._put_if_absent(path, file)

    def put_overwrite(self, path: str, data: bytes) -> None:
        """See `LogStore.put_overwrite`.

        Readers see the old file or the new one, whole.
        """
        target = _local_path(path)
        with self._write_temporary(target, data, path) as temporary:
            try:
                os.replace(temporary, target)
            except OSError as error:
                raise storage_error(error, doing="overwrite", path=path) from error

    def read_bytes(self, path: str) -> bytes:
        """See `LogStore.read_bytes`."""
        with self.open_read(path) as file:
            try:
                return file.read()
            except OSError as error:
                raise storage_error(error, doing="read", path=path) from error

    def open_read(self, path: str) -> BinaryIO:
        """See `LogStore.open_read`.

        It returns the file itself.

        A pipe or a device is an error at once: opening a pipe waits for a writer, and some devices
        never end.
        """
        try:
            file = open(_local_path(path), "rb", opener=_open_regular_file)  # noqa: SIM115 - returned
            tag = _tag_of(os.fstat(file.fileno()))
        except OSError as error:
            raise storage_error(error, doing="read", path=path) from error
        file.raw.identity = tag  # type: ignore[attr-defined]  # see `LogStore.open_read`
        return file

    def list_from(self, path: str) -> Iterator[FileStatus]:
        """See `LogStore.list_from`.

        The names are read at once, and sizes and times one by one when the caller reaches them.
        Files that are gone by then are left out, and so are pipes and links to nothing. Commits
        that the listing has missed are looked up by name, see `shared/missed_commits.py`.
        """
        parent, slash, first = path.rpartition("/")
        directory = _local_path(parent + slash) if slash else "."
        try:
            with os.scandir(directory) as entries:
                # The name is compared before anything that may cost a system call.
                found = [each for each in entries if each.name >= first and _may_be_file(each)]
        except OSError as error:
            raise storage_error(error, doing="list", path=parent or directory) from error
        found.sort(key=lambda entry: entry.name)
        prefix = parent + slash
        listed = _statuses(found, prefix)
        missed = missed_commits([entry.name for entry in found])
        late = [status for name in missed if (status := _find(prefix + name))]
        return heapq.merge(listed, late, key=lambda status: status.name) if late else listed

    finds_cheaply = True

    def find(self, path: str) -> FileStatus | None:
        """See `LogStore.find`."""
        return _find(path)

    def take_turns(self, log_path: str, *, timeout_s: float) -> AbstractContextManager[None]:
        """See `LogStore.take_turns`.

        It uses `flock` on the directory, see `local/queue.py`.
        """
        return turn_at(_local_path(log_path), timeout_s=timeout_s)

    def delete(self, path: str) -> None:
        """See `LogStore.delete`."""
        try:
            os.unlink(_local_path(path))
        except FileNotFoundError:
            return
        except OSError as error:
            raise storage_error(error, doing="delete", path=path) from error

    def is_partial_write_visible(self, path: str) -> bool:  # noqa: ARG002 - the contract's
        """Return True by contract, since a plain file appears once it is opened (spec 3.4)."""
        return True

    def ensure_directory(self, path: str) -> None:
        """See `LogStore.ensure_directory`.

        New directories survive a power cut, as commits do.
        """
        directory = os.path.abspath(_local_path(path))
        missing = []
        while not os.path.lexists(directory):
            missing.append(directory)
            directory = os.path.dirname(directory)
        try:
            os.makedirs(_local_path(path), exist_ok=True)
        except OSError as error:
            if isinstance(error, FileExistsError):
                error.errno = errno.ENOTDIR
            raise storage_error(error, doing="create the directory", path=path) from error
        for created in missing:
            _sync_directory(created)

    def resolve_path(self, path: str) -> str:
        """Return the absolute real path, without `file:` and symbolic links."""
        return os.path.realpath(_local_path(path))

    def describe(self) -> Mapping[str, str]:
        """See `LogStore.describe`."""
        return {
            **super().describe(),
            "one writer wins by": "hard link of a synced file, which fails if the name is taken",
            "excludes": "Optimist and deltalake writers of all processes",
        }

    def _put_if_absent(self, path: str, content: bytes | BinaryIO) -> PutOutcome:
        target = _local_path(path)
        if os.path.lexists(target):
            return _ensure_taken_by_file(target, path)
        with self._write_temporary(target, content, path) as temporary:
            try:
                outcome = self._publish(temporary, target)
            except OSError as error:
                raise storage_error(error, doing="create", path=path) from error
        if outcome is PutOutcome.EXISTS:
            return _ensure_taken_by_file(target, path)
        is_settled = outcome is not PutOutcome.CREATED or _is_hint(target)
        if is_settled or _sync_directory(target):
            return outcome
        return PutOutcome.UNKNOWN

    @contextlib.contextmanager
    def _write_temporary(self, target: str, content: bytes | BinaryIO, path: str) -> Iterator[str]:
        """Write a whole file beside the target, under a name that readers ignore (spec 3.3)."""
        directory, name = os.path.split(target)
        temporary = os.path.join(directory, f".{name}.{self._clock.new_uuid()}.tmp")
        try:
            try:
                _write_file(temporary, content, synced=not _is_hint(target))
            except OSError as error:
                raise storage_error(error, doing="write", path=path) from error
            yield temporary
        finally:
            # A file left behind does no harm; an error here would hide the outcome.
            with contextlib.suppress(OSError):
                os.unlink(temporary)

    def _publish(self, temporary: str, target: str) -> PutOutcome:
        try:
            os.link(temporary, target)
        except OSError as error:
            # NFS repeats a request whose answer was lost, and then reports our own link as an
            # error. Only the file behind the name shows whether it is ours.
            if _is_same_file(temporary, target):
                return PutOutcome.CREATED
            if isinstance(error, FileExistsError):
                return PutOutcome.EXISTS
            if error.errno in _NO_HARD_LINKS:
                return self._publish_by_rename(temporary, target)
            if error.errno in NOTHING_DONE:
                raise
            return PutOutcome.UNKNOWN
        return PutOutcome.CREATED

    def _publish_by_rename(self, temporary: str, target: str) -> PutOutcome:
        self._ensure_renames_exclusively(os.path.dirname(target))
        try:
            rename_exclusively(temporary, target)
        except OSError as error:
            # A client of a network disk repeats a request whose answer was lost. If the first was
            # carried out, the second finds no source. Only the file itself shows whose it is.
            if not os.path.lexists(temporary):
                return PutOutcome.UNKNOWN
            if isinstance(error, FileExistsError):
                return PutOutcome.EXISTS
            if error.errno in NOTHING_DONE | _NO_EXCLUSIVE_RENAME:
                raise
            return PutOutcome.UNKNOWN
        return PutOutcome.CREATED

    def _ensure_renames_exclusively(self, directory: str) -> None:
        """Refuse a device whose rename may replace a file, tested once on two files of ours."""
        device = os.stat(directory or ".").st_dev
        known = self._renames_exclusively.get(device)
        if known is None:
            known = self._probe_rename(directory)
            self._renames_exclusively[device] = known
        if not known:
            raise ConfigError(
                f"Nothing was written. The file system of {directory} has neither hard links nor a "
                "rename that refuses to replace a file, so two writers could both win one version. "
                "Put the table on another file system, or on an object store.",
                kind=NO_ATOMIC_CREATE,
                path=directory,
            )

    def _probe_rename(self, directory: str) -> bool:
        probe = os.path.join(directory, f".probe.{self._clock.new_uuid()}")
        first, second = f"{probe}.1.tmp", f"{probe}.2.tmp"
        try:
            for name in (first, second):
                _write_file(name, b"", synced=False)
            return is_exclusive(first, second)
        finally:
            for name in (first, second):
                with contextlib.suppress(OSError):
                    os.unlink(name)


def _open_regular_file(path: str, flags: int) -> int:
    # Without O_NONBLOCK, opening a pipe would wait for a writer. Regular files ignore it.
    descriptor = os.open(path, flags | os.O_NONBLOCK)
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return descriptor
    os.close(descriptor)
    code = errno.EISDIR if stat.S_ISDIR(mode) else errno.ENXIO
    raise OSError(code, os.strerror(code))


def _local_path(path: str) -> str:
    if "\0" in path:
        raise StorageError(
            f"{shown(path)} is not a path: it contains the character NUL.",
            kind="OPTIMIST_INVALID_PATH",
            path=path,
            retryable=False,
        )
    if scheme_of(path) not in ("", "file"):
        raise ConfigError(
            f"LocalLogStore cannot serve {path}: it is not a path of this machine. "
            "Check spark.delta.logStore.class and the scheme keys.",
            kind="DELTA_INCORRECT_LOG_STORE_IMPLEMENTATION",
            path=path,
        )
    return strip_file_scheme(path)


def _is_hint(path: str) -> bool:
    return path.endswith(".crc")


def _write_file(path: str, content: bytes | BinaryIO, *, synced: bool) -> None:
    # 0o666 less the umask, as programs usually create files. O_EXCL follows no symbolic link.
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    with os.fdopen(descriptor, "wb") as file:
        if isinstance(content, bytes):
            file.write(content)
        else:
            shutil.copyfileobj(content, file, _COPY_BYTES)
        if synced:
            file.flush()
            os.fsync(descriptor)


def _ensure_taken_by_file(target: str, path: str) -> PutOutcome:
    """Return `EXISTS` if a file has the name.

    Raises:
        StorageError: Something else has the name (kind `OPTIMIST_NOT_A_FILE`).
    """
    try:
        is_file = stat.S_ISREG(os.stat(target).st_mode)
    except OSError:
        is_file = not os.path.islink(target)  # gone by now: the caller finds out
    if is_file:
        return PutOutcome.EXISTS
    raise StorageError(
        f"Nothing was written: {shown(path)} is not a file, but a directory, a pipe, a broken "
        "link or similar. No writer of tables creates that. Find out who did, and remove it or "
        "move it away.",
        kind="OPTIMIST_NOT_A_FILE",
        path=path,
        retryable=False,
    )


def _may_be_file(entry: os.DirEntry[str]) -> bool:
    """Check by the directory entry whether it may be a file.

    Links are checked later.
    """
    return entry.is_symlink() or entry.is_file()


def _sync_directory(child: str) -> bool:
    """Make the name of `child` durable, or return False if the system could not."""
    try:
        descriptor = os.open(os.path.dirname(child) or ".", _DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        # Some file systems have no such operation: names can't become more durable there.
        return error.errno in _NO_DIRECTORY_SYNC
    return True


def _is_same_file(first: str, second: str) -> bool:
    try:
        return os.path.samestat(os.lstat(first), os.lstat(second))
    except OSError:
        return False


def _statuses(entries: list[os.DirEntry[str]], prefix: str) -> Iterator[FileStatus]:
    for entry in entries:
        try:
            status = entry.stat()
        except OSError as error:
            if error.errno in _LEADS_NOWHERE:
                continue
            raise _stat_error(error, prefix + entry.name) from error
        if stat.S_ISREG(status.st_mode):
            yield _status_of(prefix + entry.name, status)


def _find(path: str) -> FileStatus | None:
    try:
        status = os.stat(_local_path(path))
    except OSError as error:
        if error.errno in _LEADS_NOWHERE:
            return None
        raise _stat_error(error, path) from error
    return _status_of(path, status) if stat.S_ISREG(status.st_mode) else None


def _status_of(path: str, status: os.stat_result) -> FileStatus:
    return FileStatus(path, status.st_size, status.st_mtime_ns // 1_000_000, _tag_of(status))


def _tag_of(status: os.stat_result) -> str:
    return f"{status.st_ino:x}-{status.st_mtime_ns:x}"


def _stat_error(error: OSError, path: str) -> StorageError:
    return storage_error(error, doing="list", path=path)
