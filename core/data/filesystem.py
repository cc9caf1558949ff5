"""Data files, as opposed to log files, are reached through pyarrow's file systems."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import PurePosixPath

import fsspec
from pyarrow import fs

from optimist.core.errors import ConfigError
from optimist.core.paths import scheme_of, strip_file_scheme

__all__ = ["filesystem_for", "make_durable"]


def filesystem_for(path: str) -> tuple[fs.FileSystem, str]:
    """The file system that serves a path, and the path in its terms.

    Plain and `file:` paths are local; every other scheme goes through its fsspec driver.

    Raises:
        ConfigError: There is no driver for the scheme, or it is not installed
            (`OPTIMIST_NO_DATA_FILESYSTEM`).
    """
    scheme = scheme_of(path)
    if scheme in ("", "file"):
        return fs.LocalFileSystem(), strip_file_scheme(path)
    try:
        driver, inner = fsspec.core.url_to_fs(path)
    except (ValueError, ImportError) as error:
        raise ConfigError(
            f"Data files of {path} can't be reached: {error}.",
            kind="OPTIMIST_NO_DATA_FILESYSTEM",
            scheme=scheme,
        ) from None
    return fs.PyFileSystem(fs.FSSpecHandler(driver)), inner


def make_durable(filesystem: fs.FileSystem, root: str, paths: Iterable[str]) -> None:
    """See that files survive a power cut, before a commit that names them does.

    A local file is on the disk only after an fsync of it and of the directories that lead to it;
    object
    stores have it there when the upload returns.

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
