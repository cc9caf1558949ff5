"""Logs behind any fsspec URL: read wherever fsspec reads, written only where that is sound.

*Assumes* that the driver for the URL's scheme is installed, and that what it lists is what is
there.

*Provides* reading and listing on every driver. Writing on the drivers of the table below, with the
guarantees named there.

*Does not provide* writing on any other driver: there `put_if_absent` and `put_overwrite` raise a
`ConfigError` and nothing is written. fsspec's `mode="create"` promises nothing by itself; many
drivers ask whether the file exists and then write, and two writers pass that question together.

*Excludes*, where it writes, what the store it writes through excludes.

| driver | its own exclusive create | written |
|---|---|---|
| `local` | yes, but half-written files show, and stay after a crash | by `LocalLogStore` |
| `memory` | asks, then writes | no; `MemoryLogStore` serves `memory:` |
| every other | not proven | no |
"""

from __future__ import annotations

import datetime
import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, BinaryIO, cast

import fsspec
from fsspec.core import url_to_fs
from fsspec.implementations.local import LocalFileSystem
from fsspec.implementations.memory import MemoryFileSystem
from fsspec.registry import known_implementations

from optimist.core.errors import ConfigError, StorageError
from optimist.core.logstore import FileStatus, LogStore, PutOutcome
from optimist.core.paths import scheme_of
from optimist.logstores.local import LocalLogStore
from optimist.logstores.os_errors import storage_error
from optimist.logstores.store_options import own_options

__all__ = ["FsspecLogStore", "FsspecOptions"]

_TIME_KEYS = ("mtime", "LastModified", "last_modified", "modified", "updated", "created")
"""What drivers call the modification time in a listing, the surest first."""


@dataclass(frozen=True, slots=True)
class FsspecOptions:
    """The driver's storage options, from the keys `optimist.store.fsspec.<option>`.

    `true`, `false`, and values that are a JSON object or list become what they look like;
    everything else stays text, numbers too, because account names and keys may be all digits.

    Attributes:
        storage_options: Passed to the driver as they are; their values never show in `repr`.
    """

    storage_options: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> FsspecOptions:
        """Parse the store's own keys; all others are none of its business.

        Raises:
            ConfigError: Two spellings of an option differ, or a value starts like JSON and is not.
        """
        given = own_options(options, "fsspec")
        return cls({name: _parse(name, value) for name, value in given.items()})


class FsspecLogStore(LogStore):
    """Reads a log through any fsspec driver; see the module for where it writes.

    Args:
        options: Keys `optimist.store.fsspec.<option>`, with or without `spark.`, go to the driver.
    """

    def __init__(self, options: Mapping[str, str] | None = None) -> None:
        super().__init__(options)
        self._parsed = FsspecOptions.from_options(self.options)
        self._local = LocalLogStore()

    def put_if_absent(self, path: str, data: bytes) -> PutOutcome:
        """See `LogStore.put_if_absent`.

        Raises:
            ConfigError: The driver is not known to create files exclusively (kind
                `OPTIMIST_NO_ATOMIC_CREATE`); nothing was written.
        """
        return self._local.put_if_absent(self._writable_path(path), data)

    def put_overwrite(self, path: str, data: bytes) -> None:
        """See `LogStore.put_overwrite`; refused wherever `put_if_absent` is."""
        self._local.put_overwrite(self._writable_path(path), data)

    def ensure_directory(self, path: str) -> None:
        """See `LogStore.ensure_directory`; refused wherever `put_if_absent` is."""
        self._local.ensure_directory(self._writable_path(path))

    def delete(self, path: str) -> None:
        """See `LogStore.delete`; refused wherever `put_if_absent` is."""
        self._local.delete(self._writable_path(path))

    def read_bytes(self, path: str) -> bytes:
        """See `LogStore.read_bytes`."""
        driver, inner = self._driver(path)
        try:
            return cast(bytes, driver.cat_file(inner))
        except OSError as error:
            raise storage_error(error, doing="read", path=path) from error

    def open_read(self, path: str) -> BinaryIO:
        """See `LogStore.open_read`; ranged reads where the driver has them."""
        driver, inner = self._driver(path)
        if isinstance(driver, MemoryFileSystem):
            # This driver hands the same file object, with one position, to all readers.
            return io.BytesIO(self.read_bytes(path))
        try:
            return cast(BinaryIO, driver.open(inner, "rb"))
        except OSError as error:
            raise storage_error(error, doing="read", path=path) from error

    def list_from(self, path: str) -> Iterator[FileStatus]:
        """See `LogStore.list_from`.

        A driver whose listing tells no modification time gives 0; time travel by timestamp then
        needs a table with in-commit timestamps.
        """
        parent, slash, first = path.rpartition("/")
        driver, directory = self._driver(parent + slash)
        try:
            # Drivers may remember listings; ours must show what was written a moment ago.
            driver.invalidate_cache(directory)
            entries = driver.ls(directory, detail=True)
        except OSError as error:
            raise storage_error(error, doing="list", path=parent or ".") from error
        _ensure_directory_listing(entries, directory, path=parent)
        return iter(_statuses(entries, prefix=parent + slash, first=first))

    def is_partial_write_visible(self, path: str) -> bool:  # noqa: ARG002 - the contract's
        """True: fsspec does not tell, so the cautious answer holds."""
        return True

    def resolve_path(self, path: str) -> str:
        """The path with its scheme and without trailing slashes, as the driver sees it."""
        driver, inner = self._driver(path)
        if _is_local(driver):
            return self._local.resolve_path(inner)
        return cast(str, driver.unstrip_protocol(inner))

    def describe(self) -> Mapping[str, str]:
        """See `LogStore.describe`; names the driver's options, not their values."""
        return {
            **super().describe(),
            "one writer wins by": "hard link on local paths; every other driver is read only",
            "driver options": ", ".join(sorted(self._parsed.storage_options)),
        }

    def _driver(self, path: str) -> tuple[fsspec.AbstractFileSystem, str]:
        scheme = scheme_of(path) or "file"
        try:
            driver, inner = url_to_fs(path, **self._parsed.storage_options)
        except ImportError as error:
            raise ConfigError(
                f"There is no driver for {scheme}: paths: {_install_hint(scheme, error)}. "
                f"Install it, or name a store with spark.delta.logStore.{scheme}.impl.",
                kind="OPTIMIST_MISSING_PACKAGE",
                scheme=scheme,
            ) from error
        except (ValueError, TypeError) as error:
            # Of the driver's own text only the type is told: it may quote an option, that is, a
            # secret.
            raise ConfigError(
                f"fsspec cannot serve {scheme}: paths with the options given "
                f"({type(error).__name__}). Check the scheme and the keys optimist.store.fsspec.*, "
                f"or name a store with spark.delta.logStore.{scheme}.impl.",
                kind="OPTIMIST_UNKNOWN_SCHEME",
                scheme=scheme,
            ) from None
        return driver, inner

    def _writable_path(self, path: str) -> str:
        driver, inner = self._driver(path)
        if _is_local(driver):
            return inner
        scheme = scheme_of(path)
        kind = type(driver)
        raise ConfigError(
            f"Nothing was written to {path}: the fsspec driver "
            f"{kind.__module__}.{kind.__qualname__} is not known to create a file only if it is "
            "absent, so two writers could overwrite each other's commits. Ways out: name a store "
            f"that can with spark.delta.logStore.{scheme}.impl (a short name, or your own class as "
            "package.module:Class), or keep the table on a local path. Reading works as it is.",
            kind="OPTIMIST_NO_ATOMIC_CREATE",
            path=path,
            driver=f"{kind.__module__}:{kind.__qualname__}",
        )


def _is_local(driver: fsspec.AbstractFileSystem) -> bool:
    # The exact class: a subclass or a wrapper may keep its files elsewhere.
    return type(driver) is LocalFileSystem


def _parse(name: str, value: str) -> Any:
    text = value.strip()
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    if not text.startswith(("{", "[")):
        return value
    try:
        return json.loads(text)
    except ValueError:
        raise ConfigError(
            f"The value of optimist.store.fsspec.{name} starts like JSON and does not parse.",
            kind="OPTIMIST_INVALID_OPTION",
            key=f"optimist.store.fsspec.{name}",
        ) from None


def _install_hint(scheme: str, error: ImportError) -> str:
    known: Mapping[str, Mapping[str, str]] = known_implementations
    return known.get(scheme, {}).get("err", str(error)).rstrip(".")


def _ensure_directory_listing(entries: list[dict[str, Any]], directory: str, *, path: str) -> None:
    """Drivers list a file as itself; for a log that is no directory."""
    bare = directory.rstrip("/")
    if len(entries) == 1 and entries[0]["name"].rstrip("/") == bare and _is_file(entries[0]):
        raise StorageError(
            f"Cannot list {path}: a file stands where a directory should be.",
            kind="OPTIMIST_NOT_A_DIRECTORY",
            path=path,
            retryable=False,
        )


def _is_file(entry: Mapping[str, Any]) -> bool:
    return str(entry["type"]) != "directory"


def _statuses(entries: list[dict[str, Any]], *, prefix: str, first: str) -> list[FileStatus]:
    named = ((entry["name"].rstrip("/").rpartition("/")[2], entry) for entry in entries)
    kept = sorted(
        ((name, entry) for name, entry in named if name >= first and _is_file(entry)),
        key=lambda item: item[0],
    )
    return [
        FileStatus(prefix + name, int(entry["size"] or 0), _modified_ms(entry))
        for name, entry in kept
    ]


def _modified_ms(entry: Mapping[str, Any]) -> int:
    for key in _TIME_KEYS:
        value = entry.get(key)
        if isinstance(value, str):
            # Python 3.10 does not read the Z that JSON interfaces write.
            value = datetime.datetime.fromisoformat(value.replace("Z", "+00:00"))
        if isinstance(value, datetime.datetime):
            return int(value.timestamp() * 1000)
        if isinstance(value, int | float):
            return int(value * 1000)
    return 0
