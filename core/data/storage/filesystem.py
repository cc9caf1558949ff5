"""Data files, as opposed to log files, are reached through pyarrow's file systems.

| scheme | file system |
|---|---|
| none, `file` | the local one |
| those of a `DataAccess` for S3, Azure or Google Cloud Storage | Arrow's own |
| every other | the scheme's fsspec driver |

The settings of a `DataAccess`, credentials among them, are for the store that it names: a file of
another bucket or host is reached without them. A path from a log comes here only after `DataPaths`
has let it pass.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

import fsspec
from pyarrow import fs

from optimist.core.errors import ConfigError
from optimist.core.errors.foreign_text import shown
from optimist.core.forking import keep_for_good
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
"""Settings that only newer versions of pyarrow know; here: a small file in one request."""


def filesystem_for(path: str, access: DataAccess | None = None) -> tuple[fs.FileSystem, str]:
    """The file system that serves a path, and the path in its terms.

    Args:
        path: A plain path or a URL; nothing in it is percent-decoded.
        access: How the table's data files are reached; see `LogStore.data_access`.

    Raises:
        ConfigError: There is no driver for the scheme, it is not installed, or the path is in
            another Azure account than the one whose credentials are known
            (`OPTIMIST_NO_DATA_FILESYSTEM`).
    """
    scheme = scheme_of(path)
    if scheme in ("", "file"):
        return fs.LocalFileSystem(), strip_file_scheme(path)
    if access is None or not access.origin.serves(path):
        return _driver(path, None)
    access = newest_access(access)
    is_ours = access.origin.covers(path)
    if access.system == "fsspec":
        return _driver(path, access if is_ours else None)
    if not is_ours:
        access = _without_settings(access, path)
    return _built(access, os.getpid()), _object_path(path, access)


def open_to_read(filesystem: fs.FileSystem, inner: str) -> fs.NativeFile:
    """Open a file that a log names.

    On a local disk it must be a plain file: a named pipe would keep its reader waiting for ever.

    Raises:
        OSError: The file system failed, or what is at the path is not a plain file.
    """
    if isinstance(filesystem, fs.LocalFileSystem):
        try:
            mode = Path(inner).stat().st_mode
        except (OSError, ValueError):
            pass  # opening it will tell
        else:
            if not stat.S_ISREG(mode):
                raise OSError(f"{shown(inner)} is not a plain file")
    return filesystem.open_input_file(inner)


def make_directories(filesystem: fs.FileSystem, paths: Iterable[str]) -> None:
    """Make the directories that files will be in; object stores have none and need none."""
    if _is_object_store(filesystem):
        return
    for directory in dict.fromkeys(parent_of(path) for path in paths):
        filesystem.create_dir(directory, recursive=True)


def is_reached_by_arrow(path: str, access: DataAccess) -> bool:
    """Whether Arrow's own file system for a service serves a path, with a store beside it."""
    is_own = access.system in _CLASSES and bool(access.store_options)
    return is_own and access.origin.covers(path)


def make_durable(filesystem: fs.FileSystem, root: str, paths: Iterable[str]) -> None:
    """Make sure that files survive a power cut, before a commit that names them is made.

    A local file is on the disk only after an fsync of it and of the directories that lead to it;
    object stores have it there when the upload returns.

    Args:
        filesystem: Where the files are.
        root: A directory above them that is there already; those between it and the files are new.
        paths: The files, in the file system's terms.
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
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _driver(path: str, access: DataAccess | None) -> tuple[fs.FileSystem, str]:
    scheme = scheme_of(path)
    try:
        settings = access.revealed_settings() if access else {}
        driver, inner = fsspec.core.url_to_fs(with_authority(path), **settings)
    except (ValueError, ImportError) as error:
        # With settings at hand the driver's text may quote one of them, that is, a secret.
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
def _built(access: DataAccess, process: int) -> fs.FileSystem:  # noqa: ARG001 - a part of the key
    # A forked child must not send on its parent's connections, nor close them.
    name = _CLASSES[access.system]
    try:
        kind = getattr(fs, name)
        settings = {**access.revealed_settings(), **_proxy(access)}
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


def _proxy(access: DataAccess) -> dict[str, Any]:
    """The proxy of this machine's environment, which Amazon's SDK in C++ alone does not look for.

    Without it the log, whose client does, would go by the proxy, and the data would not.

    Raises:
        ConfigError: It is no URL; it is not quoted, as it may hold a password.
    """
    if access.system != "s3":
        return {}
    settings = access.revealed_settings()
    of_region = f"https://s3.{settings.get('region', '')}.amazonaws.com"
    server = urlsplit(str(settings.get("endpoint_override") or of_region))
    proxy = getproxies().get(server.scheme or "https")
    if not proxy or proxy_bypass(server.netloc):
        return {}
    try:
        parts = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
        found = {"scheme": parts.scheme, "host": parts.hostname or "", "port": parts.port or 80}
    except ValueError:
        raise ConfigError(
            "The proxy that the environment names (HTTPS_PROXY, HTTP_PROXY) is no URL. Write it as "
            "http://user:password@host:port, with special characters as %2F.",
            kind="OPTIMIST_INVALID_OPTION",
            key="HTTPS_PROXY",
        ) from None
    found |= {"username": unquote(parts.username or ""), "password": unquote(parts.password or "")}
    return {"proxy_options": found}


def _is_object_store(filesystem: fs.FileSystem) -> bool:
    return type(filesystem).__name__ in _CLASSES.values()


def _without_settings(access: DataAccess, path: str) -> DataAccess:
    """Access to a file of another bucket: with the machine's own credentials, not the table's."""
    if access.origin.is_account:
        raise ConfigError(
            f"The data file {shown(path)} is in another account than the table, and no credentials "
            "are known for that account. Copy the file into the table's account.",
            kind="OPTIMIST_NO_DATA_FILESYSTEM",
            scheme=scheme_of(path),
        )
    return replace(access, settings=_without_credentials(access))


def _without_credentials(access: DataAccess) -> tuple[tuple[str, Any], ...]:
    """The settings that say where the store is: its other buckets are on the same server."""
    kept = {name: value for name, value in access.settings if name in _ABOUT_THE_SERVER}
    if access.system == "gcs" and "endpoint_override" in kept:
        kept["anonymous"] = True  # the machine's token is for Google, and would go there as it is
    return tuple(sorted(kept.items()))


def _object_path(path: str, access: DataAccess) -> str:
    """`bucket/key` of a URL, runs of slashes taken as one."""
    authority, _, key = path.partition(":")[2].lstrip("/").partition("/")
    bucket = authority.partition("@")[0] if access.origin.is_account else authority
    return "/".join((bucket, *(part for part in key.split("/") if part)))
