"""The file systems of pyarrow for data files (log files have stores).

| scheme | file system |
|---|---|
| none, `file` | the local one |
| those of a `DataAccess` for S3, Azure or Google Cloud Storage | Arrow's own |
| every other | the scheme's fsspec driver |

The settings of a `DataAccess`, which include credentials, are for the store that it names. A file
of another bucket or host is reached without them. A path from a log comes here only after
`DataPaths` has accepted it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit

from pyarrow import fs

from optimist.core.errors import ConfigError, StorageError
from optimist.core.errors.foreign_text import shown
from optimist.core.errors.kinds import PREDECESSOR_MISSING
from optimist.core.forking import keep_for_good
from optimist.core.imports import import_by_need
from optimist.core.paths import parent_of, scheme_of, strip_file_scheme, with_authority
from optimist.core.plugins.data_access import DataAccess
from optimist.core.plugins.renewed_access import newest_access

__all__ = [
    "filesystem_for",
    "is_reached_by_arrow",
    "make_directories",
    "make_durable",
    "open_to_read",
]

_CLASSES = {"s3": "S3FileSystem", "azure": "AzureFileSystem", "gcs": "GcsFileSystem"}
_ABOUT_THE_SERVER = (
    "background_writes",
    "connect_timeout",
    "endpoint_override",
    "force_virtual_addressing",
    "project_id",
    "region",
    "request_timeout",
    "retry_time_limit",
    "scheme",
)
_WHERE_THEY_EXIST = {"s3": {"allow_delayed_open": True}}
"""Settings that only newer versions of pyarrow know: this one reads a small file in one request."""


def filesystem_for(path: str, access: DataAccess | None = None) -> tuple[fs.FileSystem, str]:
    """Return the file system that serves a path, and the path in its terms.

    Args:
        path: A plain path or a URL, without percent-encoding.
        access: The access to the table's data files (see `LogStore.data_access`).

    Raises:
        ConfigError: The scheme has no driver, the driver is not installed, or the path is in
            another Azure account than the one with known credentials
            (`OPTIMIST_NO_DATA_FILESYSTEM`).
    """
    scheme = scheme_of(path)
    if scheme in ("", "file"):
        return fs.LocalFileSystem(), strip_file_scheme(path)
    if access is None or not access.origin.serves(path):
        return _open_driver(path, None)
    access = newest_access(access)
    is_ours = access.origin.covers(path)
    if access.system == "fsspec":
        return _open_driver(path, access if is_ours else None)
    if not is_ours:
        access = _without_settings(access, path)
    return _build(access, os.getpid()), _object_path(path, access)


def open_to_read(filesystem: fs.FileSystem, inner: str) -> fs.NativeFile:
    """Open a file that a log names.

    On a local disk it must be a plain file: a named pipe would block its reader forever.

    Raises:
        OSError: The file system failed, or the path is not a plain file.
    """
    if isinstance(filesystem, fs.LocalFileSystem):
        try:
            mode = os.stat(inner).st_mode  # noqa: PTH116 (for each file, and faster)
        except (OSError, ValueError):
            pass  # the open below reports the error
        else:
            if not stat.S_ISREG(mode):
                raise OSError(f"{shown(inner)} is not a plain file")
    return filesystem.open_input_file(inner)


def make_directories(filesystem: fs.FileSystem, paths: Iterable[str]) -> None:
    """Make the directories of these files. Object stores have none and need none."""
    if _is_object_store(filesystem):
        return
    for directory in dict.fromkeys(parent_of(path) for path in paths):
        filesystem.create_dir(directory, recursive=True)


def is_reached_by_arrow(path: str, access: DataAccess) -> bool:
    """Return whether Arrow's own file system for a service serves a path of a store."""
    is_own = access.system in _CLASSES and bool(access.store_options)
    return is_own and access.origin.covers(path)


def make_durable(filesystem: fs.FileSystem, root: str, paths: Iterable[str]) -> None:
    """Make files survive a power cut, before a commit that names them.

    A local file is on the disk only after an fsync of it and of the directories that lead to it.
    Object stores have it when the upload returns.

    Args:
        filesystem: The file system of the files.
        root: An existing directory above them. Those between it and the files are new.
        paths: The files, in the file system's terms.

    Raises:
        StorageError: One is gone (kind `OPTIMIST_PREDECESSOR_MISSING`): the table was dropped.
    """
    if not isinstance(filesystem, fs.LocalFileSystem):
        return
    files = [PurePosixPath(path) for path in paths]
    top = PurePosixPath(root)
    directories = {
        parent
        for path in files
        for parent in path.parents
        if parent == top or top in parent.parents
    }
    for path in (*files, *sorted(directories, reverse=True)):
        try:
            descriptor = os.open(path, os.O_RDONLY)
        except FileNotFoundError:
            raise _removed_meanwhile(str(path)) from None
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _removed_meanwhile(path: str) -> StorageError:
    return StorageError(
        f"Nothing was committed: {shown(path)} was written just now, and is gone. Somebody has "
        "removed the table's files meanwhile, for example by DROP TABLE. If the operation is meant "
        "for the table as it is now, run it again.",
        kind=PREDECESSOR_MISSING,
        path=path,
        retryable=False,
    )


def _open_driver(path: str, access: DataAccess | None) -> tuple[fs.FileSystem, str]:
    scheme = scheme_of(path)
    try:
        settings = access.revealed_settings() if access else {}
        driver, inner = import_by_need("fsspec.core").url_to_fs(with_authority(path), **settings)
    except (ValueError, ImportError) as error:
        # With settings, the driver's text may quote one of them, and so a secret.
        is_plain = isinstance(error, ImportError) or access is None or not access.settings
        reason = str(error) if is_plain else "bad settings"
        raise ConfigError(
            f"The data files of {shown(path)} can't be reached: no driver is installed for "
            f"{shown(scheme)}: paths ({shown(reason)}). Install the scheme's fsspec driver, on the "
            "executors of Spark too.",
            kind="OPTIMIST_NO_DATA_FILESYSTEM",
            scheme=scheme,
        ) from None
    keep_for_good(driver)  # as fsspec's own cache does, in forked children too
    return fs.PyFileSystem(fs.FSSpecHandler(driver)), inner


@lru_cache(maxsize=16)  # connections are kept for the next file of the same table
def _build(access: DataAccess, process: int) -> fs.FileSystem:  # noqa: ARG001 - a part of the key
    # A forked child must neither use nor close its parent's connections.
    name = _CLASSES[access.system]
    try:
        kind = getattr(fs, name)
        settings = {**access.revealed_settings(), **_proxy_settings(access)}
        try:
            return kind(**settings, **_WHERE_THEY_EXIST.get(access.system, {}))
        except TypeError:
            return kind(**settings)
    except (AttributeError, ImportError, TypeError) as error:
        # The text of a TypeError names settings, never their values.
        raise ConfigError(
            f"The class {name} of pyarrow is missing, or too old for the given settings: {error}. "
            "Upgrade pyarrow, on the executors of Spark too.",
            kind="OPTIMIST_NO_DATA_FILESYSTEM",
            scheme=access.system,
        ) from None


def _proxy_settings(access: DataAccess) -> dict[str, Any]:
    """Return the proxy of this machine's environment, which Amazon's C++ SDK does not read.

    Without it the log would use the proxy, because its client reads the environment, and the data
    would not.

    Raises:
        ConfigError: The proxy is not a URL. The error does not quote it, because it may hold a
            password.
    """
    if access.system != "s3":
        return {}
    settings = access.revealed_settings()
    of_region = f"https://s3.{settings.get('region', '')}.amazonaws.com"
    server = urlsplit(str(settings.get("endpoint_override") or of_region))
    settings_of_process = import_by_need("urllib.request")
    proxy = settings_of_process.getproxies().get(server.scheme or "https")
    if not proxy or settings_of_process.proxy_bypass(server.netloc):
        return {}
    try:
        parts = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
        found = {"scheme": parts.scheme, "host": parts.hostname or "", "port": parts.port or 80}
    except ValueError:
        raise ConfigError(
            "The proxy in the environment (HTTPS_PROXY, HTTP_PROXY) is not a URL. Write it as "
            "http://user:password@host:port, with special characters as %2F.",
            kind="OPTIMIST_INVALID_OPTION",
            key="HTTPS_PROXY",
        ) from None
    found |= {"username": unquote(parts.username or ""), "password": unquote(parts.password or "")}
    return {"proxy_options": found}


def _is_object_store(filesystem: fs.FileSystem) -> bool:
    return type(filesystem).__name__ in _CLASSES.values()


def _without_settings(access: DataAccess, path: str) -> DataAccess:
    """Return access to a file of another bucket, with the machine's own credentials."""
    if access.origin.is_account:
        raise ConfigError(
            f"The data file {shown(path)} is in another account than the table, and no credentials "
            "are known for that account. Copy the file into the table's account.",
            kind="OPTIMIST_NO_DATA_FILESYSTEM",
            scheme=scheme_of(path),
        )
    return replace(access, settings=_without_credentials(access))


def _without_credentials(access: DataAccess) -> tuple[tuple[str, Any], ...]:
    """Return the settings for the server, which the store's other buckets share."""
    kept = {name: value for name, value in access.settings if name in _ABOUT_THE_SERVER}
    if access.system == "gcs" and "endpoint_override" in kept:
        kept["anonymous"] = True  # the machine's token is for Google, not for this server
    return tuple(sorted(kept.items()))


def _object_path(path: str, access: DataAccess) -> str:
    """Return `bucket/key` of a URL, with each run of slashes as one."""
    authority, _, key = path.partition(":")[2].lstrip("/").partition("/")
    bucket = authority.partition("@")[0] if access.origin.is_account else authority
    return "/".join((bucket, *(part for part in key.split("/") if part)))
