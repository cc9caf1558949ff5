"""The fsspec drivers that may write commits, because we have read their source and raced them.

fsspec's `mode="create"` promises nothing by itself. The base class asks whether the file exists and
then writes, and so do many drivers: two writers can both be told that it does not. A driver stands
in this table only if its source hands the condition to the store in the request that makes the file
visible, and if 16 writers that raced on it had one winner each round (see
`integration/test_fsspec_drivers.py`).

What a driver of the table writes appears whole, at every version; older versions than the one
named serve behind an arbiter, which then decides alone.
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
        protocols: The URL schemes by which fsspec knows it; the first is that of the one name
            which a place has (`table_place`).
        package: What to install; empty where fsspec brings it.
        version: The oldest version that was read and raced; None where it does not create
            exclusively at any.
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
        """Whether the version that is installed creates exclusively."""
        if self.version is None:
            return False
        return _installed(self.package) >= self.version

    @property
    def required(self) -> str:
        """What to install for it, as pip takes it."""
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
    """The row of a driver, or None for one that was not read and raced."""
    name = f"{type(driver).__module__}:{type(driver).__qualname__}"
    return next((row for row in EXCLUSIVE_DRIVERS if row.driver == name), None)


def _installed(package: str) -> tuple[int, ...]:
    numbers = re.match(r"\d+(\.\d+)*", importlib.metadata.version(package))
    return tuple(map(int, numbers[0].split("."))) if numbers else ()
