"""Logs in the memory of this process, for tests and trials (spec 3.4).

*Assumes* that all writers live in this process.

*Provides* mutual exclusion, atomic visibility and consistent listing between threads: every
operation is one step under one lock. All instances of a namespace share one tree, so two handles of
one path see one table.

*Does not provide* anything beyond the life of the process, nor real directories: as on an object
store, a directory exists only while it has a file.

*Excludes* no other engine: no other engine can see the files.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from optimist.core.errors import ConfigError, LogFileNotFoundError
from optimist.core.forking import ForkSafeLock
from optimist.core.paths import scheme_of
from optimist.core.plugins.logstore import FileStatus, LogStore, PutOutcome
from optimist.core.runtime.clock import Clock, SystemClock
from optimist.logstores.shared.store_options import ensure_no_options

__all__ = ["MemoryLogStore"]


@dataclass(frozen=True, slots=True)
class _Entry:
    data: bytes
    modified_ms: int
    etag: str = ""


_LOCK = ForkSafeLock()
_NAMESPACES: dict[str, dict[str, dict[str, _Entry]]] = {}
"""The files by namespace, directory and name."""
_ETAGS = itertools.count(1)
"""Makes two files distinct that were written within a millisecond."""


class MemoryLogStore(LogStore):
    """Files under `memory://`, shared by all stores of this process with the same namespace.

    `memory:///a`, `memory://a` and `memory:/a` are one path.

    Args:
        options: Keys `optimist.store.memory.*` are refused: the store has none.
        clock: Gives the modification times.
        namespace: The tree of files to use; stores of other namespaces do not see it. A store that
            is named in a conf gets the unnamed tree.
    """

    def __init__(
        self,
        options: Mapping[str, str] | None = None,
        *,
        clock: Clock | None = None,
        namespace: str = "",
    ) -> None:
        super().__init__(options)
        ensure_no_options(self.options, "memory")
        self._clock: Clock = clock or SystemClock()
        with _LOCK:
            self._directories = _NAMESPACES.setdefault(namespace, {})

    @classmethod
    def clear(cls, namespace: str = "") -> None:
        """Delete all files of a namespace, for every store that uses it."""
        with _LOCK:
            _NAMESPACES.setdefault(namespace, {}).clear()

    def put_if_absent(self, path: str, data: bytes) -> PutOutcome:
        """See `LogStore.put_if_absent`.

        The parent need not exist.
        """
        directory, name = _key(path)
        entry = self._make_entry(data)
        with _LOCK:
            files = self._directories.setdefault(directory, {})
            # One step under the lock: the entry that is found afterwards is the winner's.
            won = files.setdefault(name, entry) is entry
        if won:
            self._created.note(path, entry.etag)
        return PutOutcome.CREATED if won else PutOutcome.EXISTS

    def _make_entry(self, data: bytes) -> _Entry:
        return _Entry(bytes(data), self._clock.now_ms(), str(next(_ETAGS)))

    def put_overwrite(self, path: str, data: bytes) -> None:
        """See `LogStore.put_overwrite`."""
        directory, name = _key(path)
        entry = self._make_entry(data)
        with _LOCK:
            self._directories.setdefault(directory, {})[name] = entry

    def read_bytes(self, path: str) -> bytes:
        """See `LogStore.read_bytes`."""
        directory, name = _key(path)
        with _LOCK:
            entry = self._directories.get(directory, {}).get(name)
        if entry is None:
            raise _not_found(path)
        return entry.data

    def list_from(self, path: str) -> Iterator[FileStatus]:
        """See `LogStore.list_from`.

        The listing is of one instant.
        """
        directory, first = _key(path)
        prefix = path[: len(path) - len(first)]
        with _LOCK:
            if directory not in self._directories:
                raise _not_found(prefix)
            found = [
                (name, entry)
                for name, entry in self._directories[directory].items()
                if name >= first
            ]
        return iter(
            [
                FileStatus(prefix + name, len(entry.data), entry.modified_ms, entry.etag)
                for name, entry in sorted(found, key=lambda item: item[0])
            ]
        )

    def delete(self, path: str) -> None:
        """See `LogStore.delete`.

        A directory disappears with its last file.
        """
        directory, name = _key(path)
        with _LOCK:
            files = self._directories.get(directory, {})
            files.pop(name, None)
            if not files:
                self._directories.pop(directory, None)

    def is_partial_write_visible(self, path: str) -> bool:  # noqa: ARG002 - the contract's
        """Return False, since a file appears whole, in one step."""
        return False

    def resolve_path(self, path: str) -> str:
        """Return the path as `memory:///...`."""
        return "memory://" + "/".join(_key(path.rstrip("/")))

    def describe(self) -> Mapping[str, str]:
        """See `LogStore.describe`."""
        return {
            **super().describe(),
            "one writer wins by": "a dictionary under a lock",
            "excludes": "the threads of this process",
        }


def _key(path: str) -> tuple[str, str]:
    """Split a path into directory and name, where the directory of `memory:///f` is empty."""
    scheme = scheme_of(path)
    if scheme not in ("", "memory"):
        raise ConfigError(
            f"MemoryLogStore cannot serve {path}: it is not a memory: URL. "
            "Check spark.delta.logStore.class and the scheme keys.",
            kind="DELTA_INCORRECT_LOG_STORE_IMPLEMENTATION",
            path=path,
        )
    bare = path[len(scheme) + 1 :] if scheme else path
    directory, _, name = bare.rpartition("/")
    parts = [part for part in directory.split("/") if part]
    return "".join(f"/{part}" for part in parts), name


def _not_found(path: str) -> LogFileNotFoundError:
    return LogFileNotFoundError(
        f"Cannot read {path}: it does not exist.",
        kind="OPTIMIST_FILE_NOT_FOUND",
        path=path,
        retryable=False,
    )
