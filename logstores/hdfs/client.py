"""What HDFSLogStore asks of a client of HDFS; there are two, and one algorithm above them.

`jvm` goes through the Hadoop client in the JVM of a Spark session, `native_client` through the
package of that name. Both take their settings from Hadoop's keys.
"""

from __future__ import annotations

import posixpath
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from optimist.core.errors import ConfigError
from optimist.core.paths import scheme_of

__all__ = [
    "REPLACED",
    "SCHEMES",
    "HdfsClient",
    "HdfsClientError",
    "HdfsEntry",
    "HdfsParts",
    "HdfsPlace",
    "locate",
]

SCHEMES = ("hdfs", "viewfs")
REPLACED = "file replaced"
"""Stands for a class of Java's: HDFS has no exception for a file that is replaced while it is
read."""


@dataclass(frozen=True, slots=True)
class HdfsPlace:
    """A path, taken apart.

    Attributes:
        scheme: One of `SCHEMES`.
        authority: Name node or name service, with its port if one is given; empty for the default.
        path: From the root on, in its shortest form.
    """

    scheme: str
    authority: str
    path: str

    @property
    def root(self) -> str:
        """The file system: `hdfs://namenode:8020`."""
        return f"{self.scheme}://{self.authority}"

    @property
    def url(self) -> str:
        """The whole URL."""
        return f"{self.root}{self.path}"


@dataclass(frozen=True, slots=True)
class HdfsEntry:
    """One entry of a directory: its name, size in bytes, time in epoch milliseconds."""

    name: str
    size_bytes: int
    modified_ms: int
    is_directory: bool


@dataclass(frozen=True, slots=True)
class HdfsParts:
    """One version of a file, to be read in parts.

    Attributes:
        size_bytes: The length of the whole.
        fetch: Returns the bytes at an offset, of a length. It raises `HdfsClientError`, of the
            class `REPLACED` where the file is another one by now.
    """

    size_bytes: int
    fetch: Callable[[int, int], bytes]


class HdfsClientError(Exception):
    """What a client raises for everything that goes wrong.

    Attributes:
        java_class: The class of Java's exception, by which it is judged, or `REPLACED`; empty where
            there is none.
        reason: Its first line, for messages.
    """

    def __init__(self, java_class: str, reason: str) -> None:
        super().__init__(f"{java_class}: {reason}")
        self.java_class = java_class
        self.reason = reason


class HdfsClient(ABC):
    """One file system. Paths are absolute, from its root. Threads may share it.

    Every method may raise `HdfsClientError`. Clients repeat a request whose answer got lost; so
    after a rename, "the source does not exist" may mean that the rename has worked.
    """

    @abstractmethod
    def is_usable(self) -> bool:
        """Whether the client still serves; if not, the store makes another.

        Raises:
            ConfigError: It belongs to another process.
        """

    @abstractmethod
    def ensure_exclusive(self, directory: str) -> None:
        """Refuse directories of file systems whose rename may replace a file.

        Raises:
            ConfigError: The directory is not on HDFS, though its path may look so.
        """

    @abstractmethod
    def create(self, path: str, content: Iterable[bytes]) -> None:
        """Write a new file and close it; its parent must exist, and the file must not.

        Args:
            path: The path on the name node.
            content: The file's pieces, in order.
        """

    @abstractmethod
    def rename(self, source: str, target: str, *, overwrite: bool) -> None:
        """Rename a file in one step of the name node, which refuses if the target exists."""

    @abstractmethod
    def delete(self, path: str) -> None:
        """Remove a file; one that is absent is fine."""

    @abstractmethod
    def exists(self, path: str) -> bool:
        """Whether there is a file or a directory."""

    @abstractmethod
    def read(self, path: str) -> bytes:
        """Return the whole file; it fails as `REPLACED` where that happens in between."""

    @abstractmethod
    def open(self, path: str) -> HdfsParts:
        """Return what reads parts of the file as it is now."""

    @abstractmethod
    def list_from(self, directory: str, first: str) -> Iterator[HdfsEntry]:
        """List a directory in order of names, from a name on."""

    @abstractmethod
    def make_directories(self, path: str) -> None:
        """Make a directory and its parents; one that is there is fine."""

    @abstractmethod
    def discard(self, temporary: str) -> None:
        """Remove a temporary file and what a file system may have put beside it; best effort."""

    @abstractmethod
    def let_observers_catch_up(self) -> None:
        """See that observer name nodes show what was just written; best effort."""


def locate(path: str) -> HdfsPlace:
    """Take a path apart.

    Raises:
        ConfigError: It is not an `hdfs:` or `viewfs:` URL (kind
            `DELTA_INCORRECT_LOG_STORE_IMPLEMENTATION`). A local path is refused too: there a rename
            replaces the winner's file.
    """
    scheme = scheme_of(path)
    if scheme not in SCHEMES:
        raise ConfigError(
            f"HDFSLogStore cannot serve {path}: it is not an hdfs: or viewfs: URL. For local "
            "paths LocalLogStore is the default. Check spark.delta.logStore.class and the "
            "scheme keys.",
            kind="DELTA_INCORRECT_LOG_STORE_IMPLEMENTATION",
            path=path,
        )
    rest = path.partition(":")[2]
    authority = ""
    if rest.startswith("//"):
        authority, _, rest = rest[2:].partition("/")
    # normpath keeps two leading slashes, which POSIX allows to mean something of their own.
    return HdfsPlace(scheme, authority, posixpath.normpath("/" + rest.lstrip("/")))
