"""HDFS through the Hadoop client in the JVM of a classic Spark session.

*Assumes* the session's own Hadoop configuration, with the store's options on top. The session is
not an argument here, because a store is built from options: the store uses the active session of
this process, as Spark's own readers do.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from typing import Any

from py4j.java_gateway import is_instance_of
from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark import SparkContext
from pyspark.errors import PySparkException

from optimist.core.errors import ConfigError, UsageError
from optimist.core.paths import name_of, parent_of
from optimist.logstores.hdfs.client import (
    REPLACED,
    HdfsClient,
    HdfsClientError,
    HdfsEntry,
    HdfsLocation,
    HdfsParts,
)
from optimist.logstores.hdfs.options import HDFSOptions

__all__ = ["JvmHdfsClient", "active_context"]

_DFS = "org.apache.hadoop.hdfs.DistributedFileSystem"
_REMOTE = "org.apache.hadoop.ipc.RemoteException"
_LOST = "py4j.protocol.Py4JNetworkError"
_WRAPPERS = frozenset({"java.lang.RuntimeException", "java.io.IOException"})
_OTHER_BLOCKS = "Blocklist for "
"""How the error's text begins if a reader fetches a file's blocks again and they have changed."""
_PROVIDER = "dfs.client.failover.proxy.provider."


def active_context() -> SparkContext | None:
    """Return the context of this process's classic session, or None without one."""
    context = SparkContext._active_spark_context
    return context if context is not None and context._jsc is not None else None


class JvmHdfsClient(HdfsClient):
    """One file system, as seen by the context that was active when the client was made.

    Args:
        location: Any path of the file system.
        options: Hadoop's keys.
        context: The classic session's context.
    """

    def __init__(self, location: HdfsLocation, options: HDFSOptions, context: SparkContext) -> None:
        self._process = os.getpid()
        self._context = context
        self._gateway: Any = context._gateway
        jvm: Any = context._jvm
        self._jvm = jvm
        self._fs = jvm.org.apache.hadoop.fs
        self._root = location.root
        with _translate_failures():
            self._conf = jvm.org.apache.hadoop.conf.Configuration(
                context._jsc.hadoopConfiguration()
            )
            for key, value in options.hadoop.items():
                self._conf.set(key, value)
            self._root = self._root if location.authority else self._default_root(location.scheme)
            self._uri = jvm.java.net.URI.create(self._root)
            self._files = self._fs.FileContext.getFileContext(self._uri, self._conf)
            # Not the cached one of FileSystem.get, which may have been made with other settings.
            self._listings = self._fs.FileSystem.newInstance(self._uri, self._conf)
            provider = self._conf.get(_PROVIDER + str(self._uri.getAuthority())) or ""
        self._reads_observers = "Observer" in provider

    def is_usable(self) -> bool:
        """See `HdfsClient.is_usable`."""
        if os.getpid() != self._process:
            raise UsageError(
                "This process was forked from the one that made the Spark session; two processes "
                "can't share one connection to the JVM. Use threads, start a session in the child, "
                "or set optimist.store.hdfs.client=native.",
                kind="OPTIMIST_FORKED_SESSION",
            )
        return active_context() is self._context

    def ensure_exclusive(self, directory: str) -> None:
        """See `HdfsClient.ensure_exclusive`.

        A mount of viewfs may lead to any file system.
        """
        if self._root.startswith("hdfs:"):
            return
        with _translate_failures():
            resolved = str(
                self._files.resolvePath(self._hadoop_path(directory)).toUri().getScheme()
            )
        if resolved != "hdfs":
            raise ConfigError(
                f"Nothing was written. {self._root}{directory} is a mount of a {resolved}: file "
                "system, where a rename may replace the file of another writer. Use the path that "
                "is mounted there instead, so that the store for its scheme serves it.",
                kind="DELTA_INCORRECT_LOG_STORE_IMPLEMENTATION",
                path=f"{self._root}{directory}",
            )

    def create(self, path: str, content: Iterable[bytes]) -> None:
        """See `HdfsClient.create`."""
        flags = self._jvm.java.util.EnumSet
        no_options = self._gateway.new_array(getattr(self._fs, "Options$CreateOpts"), 0)
        with _translate_failures():
            # HDFS keeps its checksums within the blocks. They stay on, since they guard the commit.
            only_new = flags.of(self._fs.CreateFlag.CREATE)
            stream = self._files.create(self._hadoop_path(path), only_new, no_options)
            try:
                for piece in content:
                    stream.write(piece)
            finally:
                stream.close()

    def rename(self, source: str, target: str, *, overwrite: bool) -> None:
        """See `HdfsClient.rename`."""
        kinds = getattr(self._fs, "Options$Rename")
        how = self._gateway.new_array(kinds, 1)
        how[0] = kinds.OVERWRITE if overwrite else kinds.NONE
        with _translate_failures():
            self._files.rename(self._hadoop_path(source), self._hadoop_path(target), how)

    def delete(self, path: str) -> None:
        """See `HdfsClient.delete`."""
        with _translate_failures():
            self._files.delete(self._hadoop_path(path), False)

    def exists(self, path: str) -> bool:
        """See `HdfsClient.exists`."""
        with _translate_failures():
            return bool(self._files.util().exists(self._hadoop_path(path)))

    def read(self, path: str) -> bytes:
        """See `HdfsClient.read`."""
        with _translate_failures():
            stream = self._files.open(self._hadoop_path(path))
            try:
                return bytes(stream.readAllBytes())
            finally:
                stream.close()

    def open(self, path: str) -> HdfsParts:
        """See `HdfsClient.open`.

        It opens a stream per range, so that nothing stays open.
        """
        where = self._hadoop_path(path)
        with _translate_failures():
            status = self._files.getFileStatus(where)
            version = (status.getLen(), status.getModificationTime())

        def fetch(offset: int, length: int) -> bytes:
            with _translate_failures():
                stream = self._files.open(where)
                try:
                    stream.seek(offset)
                    data = bytes(stream.readNBytes(length))
                finally:
                    stream.close()
                now = self._files.getFileStatus(where)
            if (now.getLen(), now.getModificationTime()) != version:
                raise HdfsClientError(REPLACED, "its size or time has changed")
            return data

        return HdfsParts(version[0], fetch, repr(version))

    def list_from(self, directory: str, first: str) -> Iterator[HdfsEntry]:
        """See `HdfsClient.list_from`.

        The name node starts at the name and returns pages.
        """
        where = self._hadoop_path(directory)
        with _translate_failures():
            if self._reads_observers:
                self._listings.msync()
            if self._root.startswith("hdfs:"):
                system = self._listings
            else:
                where = self._files.resolvePath(where)
                system = where.getFileSystem(self._conf)
            if not is_instance_of(self._gateway, system, _DFS):
                return iter(self._list_unordered(system, where, first))
            return self._list_pages(system.getClient(), str(where.toUri().getPath()), first)

    def make_directories(self, path: str) -> None:
        """See `HdfsClient.make_directories`."""
        permission = self._fs.permission.FsPermission.getDirDefault()
        with _translate_failures():
            self._files.mkdir(self._hadoop_path(path), permission, True)

    def discard(self, temporary: str) -> None:
        """See `HdfsClient.discard`.

        A file system with checksum files puts one beside the file.
        """
        parent, name = parent_of(temporary), name_of(temporary)
        for each in (temporary, f"{parent}/.{name}.crc"):
            with contextlib.suppress(HdfsClientError):
                self.delete(each)

    def let_observers_catch_up(self) -> None:
        """See `HdfsClient.let_observers_catch_up`."""
        with contextlib.suppress(HdfsClientError), _translate_failures():
            self._listings.msync()

    def _list_pages(self, client: Any, directory: str, first: str) -> Iterator[HdfsEntry]:
        """List page by page, each page after the last name of the previous one."""
        after: bytes | None = _just_before(first.encode())
        while True:
            with _translate_failures():
                page = client.listPaths(directory, after)
                if page is None:
                    raise HdfsClientError("java.io.FileNotFoundException", directory)
                entries = [
                    _make_entry(each, each.getLocalName()) for each in page.getPartialListing()
                ]
                after = page.getLastName() if page.hasMore() else None
            yield from (each for each in entries if each.name >= first)
            if after is None:
                return

    def _list_unordered(self, system: Any, where: Any, first: str) -> list[HdfsEntry]:
        """List a file system behind a mount that returns names in no order."""
        found = [_make_entry(each, each.getPath().getName()) for each in system.listStatus(where)]
        return sorted((e for e in found if e.name >= first), key=lambda entry: entry.name)

    def _hadoop_path(self, path: str) -> Any:
        return self._fs.Path(self._root + path)

    def _default_root(self, scheme: str) -> str:
        default = self._fs.FileSystem.getDefaultUri(self._conf)
        if default.getScheme() != scheme or not default.getAuthority():
            raise ConfigError(
                f"A path {scheme}:/// has no name node, and fs.defaultFS is {default}. Write "
                f"{scheme}://namenode:port/path, or set spark.hadoop.fs.defaultFS.",
                kind="OPTIMIST_INCOMPLETE_PATH",
                scheme=scheme,
            )
        return f"{scheme}://{default.getAuthority()}"


def _make_entry(status: Any, name: str) -> HdfsEntry:
    return HdfsEntry(name, status.getLen(), status.getModificationTime(), status.isDirectory())


def _just_before(name: bytes) -> bytes:
    """Return a name just smaller than this one, since a listing starts after the given name."""
    if not name or name[-1] == 0:
        return name[:-1]
    return name[:-1] + bytes([name[-1] - 1, 0x7F])


@contextlib.contextmanager
def _translate_failures() -> Iterator[None]:
    """Turn the JVM's errors into the Java classes behind them."""
    try:
        yield
    except Py4JNetworkError as error:
        raise HdfsClientError(_LOST, str(error)) from error
    except (Py4JError, PySparkException) as error:
        raise _failure_of(error) from error


def _failure_of(error: Exception) -> HdfsClientError:
    java = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    if java is None:
        return HdfsClientError("", str(error).partition("\n")[0])
    try:
        # Clients wrap the real exception in plain ones.
        while java.getClass().getName() in _WRAPPERS and java.getCause() is not None:
            java = java.getCause()
        name = str(java.getClass().getName())
        reason = str(java.getMessage()).partition("\n")[0]
        if name in _WRAPPERS and reason.startswith(_OTHER_BLOCKS):
            name = REPLACED
        return HdfsClientError(str(java.getClassName()) if name == _REMOTE else name, reason)
    except Py4JError as lost:
        return HdfsClientError(_LOST, str(lost))
