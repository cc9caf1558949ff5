"""The interface of HDFS clients, of which there are two below one algorithm.

`jvm` uses the Hadoop client in the JVM of a Spark session, and `native_client` the package
hdfs-native. Both take their settings from Hadoop's keys.
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
    "HdfsLocation",
    "HdfsParts",
    "locate",
]

SCHEMES = ("hdfs", "viewfs")
REPLACED = "file replaced"
"""It stands for a Java class: HDFS has no exception for a file that is replaced while it is
read."""


@dataclass(frozen=True, slots=True)
class HdfsLocation:
    """A path, split into its parts.

    Attributes:
        scheme: One of `SCHEMES`.
        authority: The name node or name service, with a port if one is given; empty for the
            default.
        path: The path from the root, in its shortest form.
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
    """One entry of a directory: its name, size in bytes, and time in epoch milliseconds."""

    name: str
    size_bytes: int
    modified_ms: int
    is_directory: bool


@dataclass(frozen=True, slots=True)
class HdfsParts:
    """One version of a file, to be read in parts.

    Attributes:
        size_bytes: The length of the file.
        fetch: Returns the bytes at an offset, of a length. It raises `HdfsClientError`, of the
            class `REPLACED` if the file was replaced.
        identity: What tells this version from others, if the client knows it.
    """

    size_bytes: int
    fetch: Callable[[int, int], bytes]
    identity: str = ""


class HdfsClientError(Exception):
    """The error of a client for every failure.

    Attributes:
        java_class: The class of Java's exception, by which it is judged, or `REPLACED`; empty
            without one.
        reason: Its first line, for messages.
    """

    def __init__(self, java_class: str, reason: str) -> None:
        super().__init__(f"{java_class}: {reason}")
        self.java_class = java_class
        self.reason = reason


class HdfsClient(ABC):
    """One file system, with absolute paths from its root, which threads may share.

    Every method may raise `HdfsClientError`. Clients repeat a request whose answer was lost. So
    after a rename, "the source does not exist" may mean that the rename has succeeded.
    """

    @abstractmethod
    def is_usable(self) -> bool:
        """Check whether the client still works, or else the store makes another.

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
        """Write a new file and close it.

        Its parent must exist, and the file must not.

        Args:
            path: The path on the name node.
            content: The file's pieces, in order.
        """

    @abstractmethod
    def rename(self, source: str, target: str, *, overwrite: bool) -> None:
        """Rename a file in one step of the name node, which refuses if the target exists."""

    @abstractmethod
    def delete(self, path: str) -> None:
        """Remove a file, which may be absent."""

    @abstractmethod
    def exists(self, path: str) -> bool:
        """Check whether a file or a directory exists."""

    @abstractmethod
    def read(self, path: str) -> bytes:
        """Return the whole file, or fail as `REPLACED` if it is replaced meanwhile."""

    @abstractmethod
    def open(self, path: str) -> HdfsParts:
        """Return a reader of parts of the file as it is now."""

    @abstractmethod
    def list_from(self, directory: str, first: str) -> Iterator[HdfsEntry]:
        """List a directory in order of names, starting at a name."""

    @abstractmethod
    def make_directories(self, path: str) -> None:
        """Make a directory and its parents, which may exist."""

    @abstractmethod
    def discard(self, temporary: str) -> None:
        """Try to remove a temporary file, and files that a file system may have put beside it."""

    @abstractmethod
    def let_observers_catch_up(self) -> None:
        """Try to make observer name nodes show the last writes."""


def locate(path: str) -> HdfsLocation:
    """Split a path into its parts.

    Raises:
        ConfigError: It is not an `hdfs:` or `viewfs:` URL (kind
            `DELTA_INCORRECT_LOG_STORE_IMPLEMENTATION`). A local path is refused, too: there a
            rename replaces the winner's file.
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
    # normpath keeps two leading slashes, since POSIX allows them a special meaning.
    return HdfsLocation(scheme, authority, posixpath.normpath("/" + rest.lstrip("/")))
