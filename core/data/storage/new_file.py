"""One data file on its way to its final path. No version names it before it is whole.

| path | how |
|---|---|
| local | written in place, under a name that must be free; synced by `make_durable` |
| where a `DataAccess` names a store | spooled on this machine, then created as commits are |
| every other scheme | by the scheme's fsspec driver, which answers for it |

A store creates a file in one conditional step, so that a request that arrives late or twice changes
nothing (see `creation`). For up to 8 MiB that is one request for the whole file. Small files are
spooled in memory, larger ones in the directory for temporary files (`TMPDIR`).
"""

from __future__ import annotations

import tempfile
from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

from pyarrow import fs

from optimist.core.errors import StorageError
from optimist.core.plugins.creation import FileToCreate, create_file
from optimist.core.plugins.data_access import DataAccess
from optimist.core.plugins.logstore import LogStore, PutOutcome
from optimist.core.plugins.logstore_registry import find_store
from optimist.core.plugins.renewed_access import newest_access
from optimist.core.runtime.clock import Clock
from optimist.core.runtime.retry import RetryPolicy

__all__ = ["NewFile", "new_file"]

_IN_MEMORY_BYTES = 8 << 20
_COMPARED_BYTES = 8 << 20


class NewFile(ABC):
    """A file that is being written. End it with `publish` or `discard`.

    Attributes:
        sink: Takes the bytes. A writer must leave it open when it ends.
    """

    sink: Any

    @abstractmethod
    def publish(self) -> int:
        """Put the whole file at its path, and return its size.

        Returns:
            Its size in bytes.

        Raises:
            StorageError, OSError: The file is not at its path, or that is unknown.
        """

    @abstractmethod
    def discard(self) -> None:
        """Give up the file. Anything already at the path stays. Does nothing after `publish`."""


def new_file(
    path: str,
    filesystem: fs.FileSystem,
    inner: str,
    *,
    access: DataAccess | None,
    clock: Clock,
    policy: RetryPolicy,
) -> NewFile:
    """Begin a file under a name that nobody else uses, in a directory that exists.

    Args:
        path: The full path of the file.
        filesystem: The file system of the path (see `filesystem_for`).
        inner: The path in the terms of the file system.
        access: The access to the table's data files.
        clock: The clock for the pauses before a repeated request.
        policy: The limits for repeating a request without a clear answer.

    Raises:
        ConfigError: The store that creates the files is not available in this process.
        OSError: The file system failed.
    """
    if isinstance(filesystem, fs.LocalFileSystem):
        return _LocalFile(inner)
    if access is None or not access.store_options or not access.origin.covers(path):
        return _DriverFile(filesystem, inner)
    store = find_store(path, newest_access(access).store_options)
    return _StoredFile(store, path, clock=clock, policy=policy)


class _LocalFile(NewFile):
    """A file written in place: nobody sees it while it is partial, since no version names it."""

    def __init__(self, path: str) -> None:
        self._path = Path(path)
        try:
            self.sink = self._path.open("xb")
        except FileNotFoundError:  # a VACUUM has just removed the empty directory
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self.sink = self._path.open("xb")

    def publish(self) -> int:
        size_bytes: int = self.sink.tell()
        self.sink.close()
        _ensure_size(str(self._path), size_bytes, self._path.stat().st_size)
        return size_bytes

    def discard(self) -> None:
        with suppress(OSError):
            self.sink.close()


class _DriverFile(NewFile):
    def __init__(self, filesystem: fs.FileSystem, path: str) -> None:
        self._filesystem = filesystem
        self._path = path
        self.sink = filesystem.open_output_stream(path)

    def publish(self) -> int:
        size_bytes: int = self.sink.tell()
        self.sink.close()
        _ensure_size(self._path, size_bytes, self._filesystem.get_file_info(self._path).size)
        return size_bytes

    def discard(self) -> None:
        # An open upload can't be removed, so end it.
        with suppress(OSError):
            self.sink.close()


class _StoredFile(NewFile):
    def __init__(self, store: LogStore, path: str, *, clock: Clock, policy: RetryPolicy) -> None:
        self._store = store
        self._path = path
        self._clock = clock
        self._policy = policy
        self.sink = tempfile.SpooledTemporaryFile(_IN_MEMORY_BYTES, prefix="optimist-")  # noqa: SIM115 - closed by publish or discard

    def publish(self) -> int:
        with self.sink:
            size_bytes: int = self.sink.seek(0, 2)
            file = _DataFile(self._path, cast(BinaryIO, self.sink))
            outcome = create_file(self._store, file, self._policy, self._clock)
        if outcome is not PutOutcome.CREATED:
            raise _content_differs(self._path, "another file has its name")
        return size_bytes

    def discard(self) -> None:
        self.sink.close()


@dataclass(frozen=True, slots=True)
class _DataFile(FileToCreate):
    """A spooled file. Nobody else uses its name, so a file there with the same bytes is ours."""

    content: BinaryIO

    @property
    def doubts_exists(self) -> bool:
        return True

    def put(self, store: LogStore) -> PutOutcome:
        return store.put_data_file(self.path, self.content)

    def is_there(self, store: LogStore) -> bool:
        """Compare byte by byte. This happens only after a lost answer, and must be certain."""
        with store.open_read(self.path) as found:
            if found.seek(0, 2) != self.content.seek(0, 2):
                return False
            found.seek(0)
            self.content.seek(0)
            while piece := self.content.read(_COMPARED_BYTES):
                if found.read(len(piece)) != piece:
                    return False
        return True

    def unknown(self, reason: str) -> StorageError:
        return StorageError(
            f"The data file {self.path} may or may not have been written: {reason}. Nothing was "
            "committed. Run the operation again. VACUUM removes the file if it exists.",
            kind="OPTIMIST_WRITE_OUTCOME_UNKNOWN",
            path=self.path,
            retryable=True,
        )


def _ensure_size(path: str, written: int, found: int | None) -> None:
    if found is not None and found != written:
        raise _content_differs(path, f"{written} bytes were written, but it has {found}")


def _content_differs(path: str, what: str) -> StorageError:
    return StorageError(
        f"The data file {path} is not what was written: {what}. Nothing was committed. Run the "
        "operation again.",
        kind="OPTIMIST_DATA_FILE_DIFFERS",
        path=path,
        retryable=True,
    )
