"""Logs behind any fsspec URL: readable with every driver, and written only where this is safe.

*Assumes* that the driver for the URL's scheme is installed, and that its listings are complete.

*Provides* reading and listing on every driver. Writing on local paths, by `LocalLogStore`, and on
the drivers of `EXCLUSIVE_DRIVERS` (`fsspec/drivers.py`), where one writer wins by the store's own
condition. Server and bucket are probed before the first write, since not every server honours it.

*Does not provide* writing on any other driver: there `put_if_absent` and `put_overwrite` raise a
`ConfigError` and nothing is written. fsspec's `mode="create"` alone guarantees nothing: many
drivers first check whether the file exists and then write, and two writers can both find that it
does not. `FsspecArbiterLogStore` writes with an arbiter where files appear whole but are not
exclusive.

*Excludes*, where it writes, the writers that the store behind the driver excludes.

How a commit is created on a driver of the table:

1. Call `pipe_file(mode="create")`.
2. If the file exists already, read it: drivers repeat requests themselves, so it may be our own.
   Other bytes than ours mean `EXISTS`. Our bytes, or an unreadable file, mean `UNKNOWN`.
3. Any other error means `UNKNOWN`, and the engine reads the file back.
"""

from __future__ import annotations

import contextlib
import datetime
import io
import json
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, BinaryIO, cast

import fsspec
from fsspec.core import url_to_fs
from fsspec.implementations.local import LocalFileSystem
from fsspec.implementations.memory import MemoryFileSystem
from fsspec.registry import known_implementations

from optimist.core.errors import (
    ConfigError,
    LogFileExistsError,
    LogFileNotFoundError,
    OptimistError,
    StorageError,
)
from optimist.core.forking import keep_for_good
from optimist.core.options.engine import STORE_PREFIX
from optimist.core.options.fields import options_under
from optimist.core.options.values import invalid_option
from optimist.core.paths import normalize, scheme_of, with_authority
from optimist.core.plugins.data_access import DataAccess
from optimist.core.plugins.data_origin import DataOrigin
from optimist.core.plugins.logstore import NO_ATOMIC_CREATE, FileStatus, LogStore, PutOutcome
from optimist.core.runtime.clock import Clock, SystemClock
from optimist.core.secrets import Options, Secret
from optimist.logstores.fsspec.drivers import EXCLUSIVE_DRIVERS, ExclusiveDriver, find_driver
from optimist.logstores.local.store import LocalLogStore
from optimist.logstores.shared.create_probe import describe_verdicts, ensure_exclusive, probe_once
from optimist.logstores.shared.file_pieces import PIECE_BYTES, pieces, size_of
from optimist.logstores.shared.os_errors import storage_error
from optimist.logstores.shared.store_options import options_of_store

__all__ = ["FsspecLogStore", "FsspecOptions"]

_LOG = logging.getLogger(__name__)

_CLASS_PATH = "optimist.logstores:FsspecLogStore"
_CHAIN = "::"
_ETAG_KEYS = ("ETag", "etag", "generation")
"""The drivers' keys for the value that distinguishes a file from its replacement."""
_TIME_KEYS = ("mtime", "LastModified", "last_modified", "modified", "updated", "created")
"""The drivers' keys for the modification time in a listing, the most reliable first."""


@dataclass(frozen=True, slots=True)
class FsspecOptions:
    """The driver's storage options, from the keys `optimist.store.fsspec.<option>`.

    `true`, `false`, and JSON objects and lists are parsed. All other values stay text, also
    numbers, because account names and keys may be all digits.

    Attributes:
        storage_options: Passed to the driver unchanged. Only the driver knows which of them are
            secret, so all are kept as secrets.
    """

    storage_options: Mapping[str, Secret[Any]] = field(default_factory=dict)

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> FsspecOptions:
        """Parse the store's own keys, and ignore all others.

        Raises:
            ConfigError: Two spellings of an option differ, or a value starts like JSON but is not
                valid.
        """
        given = options_under(options, f"{STORE_PREFIX}fsspec.")
        return cls({name: _parse_option(given, name) for name in given})

    def revealed(self) -> dict[str, Any]:
        """Return the storage options with their values, for the call that builds the driver."""
        return {name: value.reveal() for name, value in self.storage_options.items()}


class FsspecLogStore(LogStore):
    """A log that is read through any fsspec driver, and written as the module says.

    Args:
        options: Keys `optimist.store.fsspec.<option>`, with or without `spark.`, go to the driver.
        clock: Names probes.
        has_arbiter: True if an arbiter decides before this store is used: then files may be
            overwritten and deleted even where they can't be created exclusively.
    """

    def __init__(
        self,
        options: Mapping[str, str] | None = None,
        *,
        clock: Clock | None = None,
        has_arbiter: bool = False,
    ) -> None:
        super().__init__(options)
        self._parsed = FsspecOptions.from_options(self.options)
        self._clock: Clock = clock or SystemClock()
        self._local = LocalLogStore()
        self._has_arbiter = has_arbiter
        self._places: set[tuple[str, str]] = set()

    def put_if_absent(self, path: str, data: bytes) -> PutOutcome:
        """See `LogStore.put_if_absent`.

        Raises:
            ConfigError: The driver, or the server behind it, is not known to create files
                exclusively (kind `OPTIMIST_NO_ATOMIC_CREATE`); nothing was written.
        """
        driver, inner = self._driver(path)
        if _is_local(driver):
            return self._local.put_if_absent(inner, data)
        row = self._find_writable(driver, path)
        if not row.is_exclusive:
            raise _write_refused(driver, path)
        verdict_key = _verdict_key(driver, inner, row)
        self._places.add(verdict_key)
        verdict = probe_once(
            verdict_key, path, create=self._create_probe, delete=self.delete, clock=self._clock
        )
        ensure_exclusive(verdict, verdict_key, path, override=("an override", False))
        return self._create(path, data)

    def put_file_if_absent(self, path: str, file: BinaryIO) -> PutOutcome:
        """See `LogStore.put_file_if_absent`.

        Local files are copied piece by piece.
        """
        driver, inner = self._driver(path)
        if _is_local(driver):
            return self._local.put_file_if_absent(inner, file)
        return super().put_file_if_absent(path, file)

    def put_data_file(self, path: str, file: BinaryIO) -> PutOutcome:
        """See `LogStore.put_data_file`.

        The server is not probed for it.

        Files of the table's drivers appear whole. If a driver can't exclude other writers, an
        arbiter does so for commits. A data file needs no exclusion: only we write its name.
        """
        driver, inner = self._driver(path)
        if _is_local(driver):
            return self._local.put_file_if_absent(inner, file)
        row = find_driver(driver)
        if row is None:
            raise _write_refused(driver, path)
        if size_of(file) <= PIECE_BYTES:
            file.seek(0)
            return self._create(path, file.read(), is_exclusive=row.is_exclusive)
        mode = "xb" if row.is_exclusive else "wb"
        try:
            _write_pieces(file, driver.open(inner, mode))
        except Exception as error:  # noqa: BLE001 - drivers let their SDK's errors through
            return _outcome_unknown(error, path)
        return PutOutcome.CREATED

    def put_overwrite(self, path: str, data: bytes) -> None:
        """See `LogStore.put_overwrite`.

        It is refused wherever `put_if_absent` is.
        """
        driver, inner = self._driver(path)
        if _is_local(driver):
            self._local.put_overwrite(inner, data)
            return
        self._find_writable(driver, path)
        with _translate_errors("write", path):
            driver.pipe_file(inner, data)

    def ensure_directory(self, path: str) -> None:
        """See `LogStore.ensure_directory`.

        Only local paths have directories.
        """
        driver, inner = self._driver(path)
        if _is_local(driver):
            self._local.ensure_directory(inner)
            return
        self._find_writable(driver, path)

    def delete(self, path: str) -> None:
        """See `LogStore.delete`.

        It is refused wherever `put_if_absent` is.
        """
        driver, inner = self._driver(path)
        if _is_local(driver):
            self._local.delete(inner)
            return
        self._find_writable(driver, path)
        with contextlib.suppress(LogFileNotFoundError), _translate_errors("delete", path):
            driver.rm_file(inner)

    def read_bytes(self, path: str) -> bytes:
        """See `LogStore.read_bytes`."""
        driver, inner = self._driver(path)
        if _is_local(driver):
            return self._local.read_bytes(inner)
        with _translate_errors("read", path):
            return cast(bytes, driver.cat_file(inner))

    def open_read(self, path: str) -> BinaryIO:
        """See `LogStore.open_read`.

        It uses ranged reads if the driver has them.
        """
        driver, inner = self._driver(path)
        if _is_local(driver):
            return self._local.open_read(inner)
        if isinstance(driver, MemoryFileSystem):
            # This driver gives the same file object, with one position, to all readers.
            return io.BytesIO(self.read_bytes(path))
        with _translate_errors("read", path):
            return cast(BinaryIO, driver.open(inner, "rb"))

    def list_from(self, path: str) -> Iterator[FileStatus]:
        """See `LogStore.list_from`.

        If a driver's listing has no modification time, it is 0. Time travel by timestamp then needs
        a table with in-commit timestamps.
        """
        parent, slash, first = path.rpartition("/")
        driver, directory = self._driver(parent + slash)
        if _is_local(driver):
            found = self._local.list_from(f"{directory.rstrip('/')}/{first}")
            return (replace(status, path=parent + slash + status.name) for status in found)
        with _translate_errors("list", parent or "."):
            # Drivers may cache listings, but ours must show the last writes. The whole cache is
            # dropped, since drivers spell a directory in it in different ways.
            driver.invalidate_cache()
            entries = driver.ls(directory, detail=True)
        _ensure_directory_listing(entries, directory, path=parent)
        return iter(_statuses(entries, prefix=parent + slash, first=first))

    def is_partial_write_visible(self, path: str) -> bool:
        """Return False for drivers of the table, and else True, since fsspec does not tell."""
        return find_driver(self._driver(path)[0]) is None

    def resolve_path(self, path: str) -> str:
        """Return the path in one spelling of scheme, host and slashes, or a local real path."""
        driver, inner = self._driver(path)
        if _is_local(driver):
            return self._local.resolve_path(inner)
        # Not the driver's own name, in which many drivers leave out the host.
        bare = normalize(path)
        return bare if _CHAIN in bare else self.data_origin(bare).url_of(bare) or bare

    def data_access(self, path: str) -> DataAccess | None:
        """See `LogStore.data_access`.

        The driver gets the same options for data.
        """
        creating = options_of_store(_CLASS_PATH, self.options)
        return DataAccess.of(
            "fsspec", self.data_origin(path), self._parsed.storage_options, store_options=creating
        )

    def data_origin(self, path: str) -> DataOrigin:
        """See `LogStore.data_origin`.

        Some drivers serve several schemes.
        """
        origin = DataOrigin.of(path)
        for row in EXCLUSIVE_DRIVERS:
            if not origin.is_local and origin.schemes[0] in row.protocols:
                origin = replace(origin, schemes=row.protocols)
        if "abfss" not in origin.schemes or origin.host is None or _CHAIN in path:
            return origin
        host = self._host_of_account(path, origin.host)
        if not host:
            return origin  # then the container is the origin
        is_default = "@" not in origin.host or host == _account_host(self._driver(path)[0])
        return replace(origin, host=host, is_account=True, is_default=is_default)

    def describe(self) -> Mapping[str, str]:
        """See `LogStore.describe`.

        It has the names of the driver's options, not their values.
        """
        return {
            **super().describe(),
            "one writer wins by": "hard link on local paths; the store's condition on "
            + ", ".join(row.required for row in EXCLUSIVE_DRIVERS if row.version)
            + "; every other driver is read only",
            "probed": describe_verdicts(sorted(self._places)),
            "driver options": ", ".join(sorted(self._parsed.storage_options)),
        }

    def _driver(self, path: str) -> tuple[fsspec.AbstractFileSystem, str]:
        scheme = scheme_of(path) or "file"
        try:
            driver, inner = url_to_fs(with_authority(path), **self._parsed.revealed())
        except ImportError as error:
            raise ConfigError(
                f"There is no driver for {scheme}: paths: {_install_hint(scheme, error)}. "
                f"Install it, or name a store with spark.delta.logStore.{scheme}.impl.",
                kind="OPTIMIST_MISSING_PACKAGE",
                scheme=scheme,
            ) from error
        except (ValueError, TypeError) as error:
            # Only the type of the driver's error is shown: its text may quote an option, so a
            # secret.
            raise ConfigError(
                f"fsspec cannot serve {scheme}: paths with the options given "
                f"({type(error).__name__}). Check the scheme and the keys optimist.store.fsspec.*, "
                f"or name a store with spark.delta.logStore.{scheme}.impl.",
                kind="OPTIMIST_UNKNOWN_SCHEME",
                scheme=scheme,
            ) from None
        keep_for_good(driver)  # as in fsspec's own cache, also in forked children
        return driver, inner

    def _host_of_account(self, path: str, authority: str) -> str:
        """Return the host of a path's Azure account, or an empty text if it is unknown."""
        _, is_named, host = authority.partition("@")
        if is_named:
            return host.lower().replace(".blob.", ".dfs.", 1)
        return _account_host(self._driver(path)[0])

    def _find_writable(self, driver: fsspec.AbstractFileSystem, path: str) -> ExclusiveDriver:
        """Return the row of a driver that may write, by itself or behind an arbiter."""
        row = find_driver(driver)
        if row is None or not (row.is_exclusive or self._has_arbiter):
            raise _write_refused(driver, path)
        return row

    def _create(self, path: str, data: bytes, *, is_exclusive: bool = True) -> PutOutcome:
        """Follow steps 1 to 3 of the module's protocol."""
        driver, inner = self._driver(path)
        try:
            driver.pipe_file(inner, data, **({"mode": "create"} if is_exclusive else {}))
        except FileExistsError:
            return self._compare_existing(path, data)
        except Exception as error:  # noqa: BLE001 - drivers let their SDK's errors through
            return _outcome_unknown(error, path)
        return PutOutcome.CREATED

    def _compare_existing(self, path: str, data: bytes) -> PutOutcome:
        try:
            found = self.read_bytes(path)
        except OptimistError:
            return PutOutcome.UNKNOWN
        return PutOutcome.UNKNOWN if found == data else PutOutcome.EXISTS

    def _create_probe(self, path: str, data: bytes) -> PutOutcome:
        """Create a probe, and raise its errors, since no commit depends on it."""
        driver, inner = self._driver(path)
        try:
            with _translate_errors("write", path):
                driver.pipe_file(inner, data, mode="create")
        except LogFileExistsError:
            return self._compare_existing(path, data)
        return PutOutcome.CREATED


def _write_pieces(file: BinaryIO, target: Any) -> None:
    """Write all pieces, but give up the target after an error, since closing would publish it."""
    try:
        for piece in pieces(file):
            target.write(piece)
    except BaseException:
        with contextlib.suppress(Exception):
            target.discard()
        target.closed = True  # else its close or finalizer would send the written part
        raise
    target.close()


def _write_refused(driver: fsspec.AbstractFileSystem, path: str) -> ConfigError:
    scheme, kind = scheme_of(path), type(driver)
    row = find_driver(driver)
    newer = f"install {row.required}; " if row is not None and row.version else ""
    known = ", ".join(each.required for each in EXCLUSIVE_DRIVERS if each.version)
    return ConfigError(
        f"Nothing was written to {path}: the fsspec driver {kind.__module__}.{kind.__qualname__} "
        "is not known to create a file only if it is absent, so two writers could overwrite each "
        f"other's commits. Drivers that are known to: {known}, and local paths. What you can do: "
        f"{newer}name a store that can, with spark.delta.logStore.{scheme}.impl (a short name, or "
        "your own class as package.module:Class); on an object store, use an arbiter (the store "
        "fsspec-arbiter, with optimist.store.arbiter); or keep the table on a local path. Reading "
        "works without that.",
        kind=NO_ATOMIC_CREATE,
        path=path,
        driver=f"{kind.__module__}:{kind.__qualname__}",
    )


@contextlib.contextmanager
def _translate_errors(doing: str, path: str) -> Iterator[None]:
    """Translate a driver's errors by class and code, where an SDK's errors count as no answer."""
    try:
        yield
    except FileExistsError as error:
        raise LogFileExistsError(
            f"{path} exists already.", kind="DELTA_FILE_ALREADY_EXISTS", path=path
        ) from error
    except OSError as error:
        raise storage_error(error, doing=doing, path=path) from error
    except Exception as error:  # noqa: BLE001 - drivers let their SDK's errors through
        # The SDK's text is not repeated: it may quote a request, and with it a secret.
        raise StorageError(
            f"Cannot {doing} {path}: the fsspec driver failed ({type(error).__name__}). Run the "
            "operation again.",
            kind="OPTIMIST_STORAGE_FAILED",
            path=path,
            retryable=True,
        ) from None


def _outcome_unknown(error: Exception, path: str) -> PutOutcome:
    _LOG.warning("It is not known whether %s was created: %s", path, type(error).__name__)
    return PutOutcome.UNKNOWN


def _verdict_key(
    driver: fsspec.AbstractFileSystem, inner: str, row: ExclusiveDriver
) -> tuple[str, str]:
    """Return the key of a verdict: the driver with these options, and the bucket."""
    bucket = inner.partition("://")[2] or inner
    return f"{row.package} ({driver._fs_token[:12]})", bucket.lstrip("/").partition("/")[0]


def _account_host(driver: fsspec.AbstractFileSystem) -> str:
    """Return the host of the account that an Azure driver serves, or an empty text."""
    host = getattr(driver, "account_host", None)
    if isinstance(host, str) and host:
        return host.lower().replace(".blob.", ".dfs.", 1)
    name = getattr(driver, "account_name", None)
    return f"{name}.dfs.core.windows.net".lower() if isinstance(name, str) and name else ""


def _is_local(driver: fsspec.AbstractFileSystem) -> bool:
    # The exact class: a subclass or a wrapper may keep its files elsewhere.
    return type(driver) is LocalFileSystem


def _parse_option(given: Options, name: str) -> Secret[Any]:
    with contextlib.suppress(ValueError):
        return Secret(_parse_value(given[name]))
    raise invalid_option(
        f"optimist.store.fsspec.{name}", "must be valid JSON, because it begins with { or ["
    )


def _parse_value(text: str) -> Any:
    bare = text.strip()
    if bare.lower() in ("true", "false"):
        return bare.lower() == "true"
    return json.loads(bare) if bare.startswith(("{", "[")) else text


def _install_hint(scheme: str, error: ImportError) -> str:
    known: Mapping[str, Mapping[str, str]] = known_implementations
    return known.get(scheme, {}).get("err", str(error)).rstrip(".")


def _ensure_directory_listing(entries: list[dict[str, Any]], directory: str, *, path: str) -> None:
    """Refuse to list a file: drivers list it as its own only entry."""
    bare = directory.rstrip("/")
    if len(entries) == 1 and entries[0]["name"].rstrip("/") == bare and _is_file(entries[0]):
        raise StorageError(
            f"Cannot list {path}: it is a file, not a directory.",
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
        FileStatus(prefix + name, int(entry["size"] or 0), _modified_ms(entry), _etag(entry))
        for name, entry in kept
    ]


def _etag(entry: Mapping[str, Any]) -> str:
    return next((str(entry[key]) for key in _ETAG_KEYS if entry.get(key)), "")


def _modified_ms(entry: Mapping[str, Any]) -> int:
    for key in _TIME_KEYS:
        value = entry.get(key)
        if isinstance(value, str):
            # Python 3.10 does not parse the Z of JSON interfaces.
            value = datetime.datetime.fromisoformat(value.replace("Z", "+00:00"))
        if isinstance(value, datetime.datetime):
            return int(value.timestamp() * 1000)
        if isinstance(value, int | float):
            return int(value * 1000)
    return 0
