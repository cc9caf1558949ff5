"""The fsspec drivers that may write commits, because we have read their source and raced them.

fsspec's `mode="create"` alone guarantees nothing. The base class first checks whether the file
exists and then writes, and so do many drivers: two writers can both find that it does not. A driver
is in this table only if its source sends the condition in the request that makes the file visible,
and if 16 writers that raced on it had one winner each round (see
`integration/test_fsspec_drivers.py`).

Files of a driver in the table appear whole, at every version. Older versions than the one in the
row work behind an arbiter, which then decides alone.
"""

from __future__ import annotations

import importlib.metadata
import re
from dataclasses import dataclass
from typing import Any

__all__ = ["EXCLUSIVE_DRIVERS", "ExclusiveDriver", "find_driver"]


@dataclass(frozen=True, slots=True)
class ExclusiveDriver:
    """One row of `EXCLUSIVE_DRIVERS`.

    Attributes:
        driver: Its class, `module:Class`; a subclass does not count.
        protocols: The URL schemes by which fsspec knows it; the first is the scheme of a table's
            one name (`table_place`).
        package: The package to install; empty if it is part of fsspec.
        version: The oldest version that was read and raced; None if no version creates exclusively.
        condition: How it excludes.
        raced_on: The server that it was raced on.
        excludes: The other stores and engines whose writers and this driver's exclude each other.
    """

    driver: str
    protocols: tuple[str, ...]
    package: str
    version: tuple[int, ...] | None
    condition: str
    raced_on: str
    excludes: str

    @property
    def is_exclusive(self) -> bool:
        """True if the installed version creates exclusively."""
        if self.version is None:
            return False
        return _installed_version(self.package) >= self.version

    @property
    def required(self) -> str:
        """The requirement to install for it, as pip takes it."""
        return f"{self.package}>={'.'.join(map(str, self.version or ()))}"


EXCLUSIVE_DRIVERS: tuple[ExclusiveDriver, ...] = (
    ExclusiveDriver(
        "s3fs.core:S3FileSystem",
        ("s3", "s3a"),
        "s3fs",
        (2026, 9),
        "PutObject, or the end of a multipart upload, with If-None-Match: *",
        "LocalStack",
        "S3LogStore, deltalake 1.x",
    ),
    ExclusiveDriver(
        "adlfs.spec:AzureBlobFileSystem",
        ("abfss", "abfs", "az"),
        "adlfs",
        (2026, 8),
        "Put Blob with If-None-Match: *",
        "Azurite",
        "AzureLogStore, deltalake, delta-spark on hierarchical accounts",
    ),
    ExclusiveDriver(
        # Not its subclass for zonal buckets, which leaves files unfinished. gcsfs uses that
        # subclass unless GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT=false is in the environment.
        "gcsfs.core:GCSFileSystem",
        ("gs", "gcs"),
        "gcsfs",
        (2026, 10),
        "upload with ifGenerationMatch=0",
        "fake-gcs-server",
        "GCSLogStore, deltalake, delta-spark",
    ),
    ExclusiveDriver(
        "fsspec.implementations.memory:MemoryFileSystem",
        ("memory",),
        "",
        None,
        "asks, then writes",
        "never: it fails",
        "nobody",
    ),
)
"""Local paths are not here: `LocalLogStore` writes them."""


def find_driver(driver: Any) -> ExclusiveDriver | None:
    """Return the row of a driver, or None for a driver that was not read and raced."""
    name = f"{type(driver).__module__}:{type(driver).__qualname__}"
    return next((row for row in EXCLUSIVE_DRIVERS if row.driver == name), None)


def _installed_version(package: str) -> tuple[int, ...]:
    numbers = re.match(r"\d+(\.\d+)*", importlib.metadata.version(package))
    return tuple(map(int, numbers[0].split("."))) if numbers else ()
