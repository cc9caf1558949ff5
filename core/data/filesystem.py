"""Data files, as opposed to log files, are reached through pyarrow's file systems."""

from __future__ import annotations

import fsspec
from pyarrow import fs

from optimist.core.errors import ConfigError
from optimist.core.paths import scheme_of, strip_file_scheme

__all__ = ["filesystem_for"]


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
