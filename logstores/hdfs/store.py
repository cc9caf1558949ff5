"""Logs on HDFS (spec 3.4).

*Assumes* a name node, active or behind a fail-over proxy, whose `rename2` refuses in one step if
the target exists: HDFS of Hadoop 2 and later. `viewfs:` is served if its mount leads to HDFS.

*Provides* mutual exclusion between threads, processes and machines; atomic visibility of the files
that this store creates; consistent listing, with the JVM also behind observer name nodes.

*Does not provide* atomic visibility of files that others write by other means, so
`is_partial_write_visible` is true; nor an `hsync`: as with every HDFS client, a closed file is
complete on `dfs.namenode.replication.min` data nodes, perhaps only in their memory; nor local
paths, where the same rename replaces the winner's file: they are refused.

*Excludes* delta-spark's HDFSLogStore, which renames in the same way, and other Optimist processes.

Two clients do the work, see `hdfs/client.py`. Both use the algorithm of this module.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, BinaryIO, TypeVar, cast

from optimist.core.errors import ConfigError, StorageError
from optimist.core.forking import ForkSafeLock, keep_inherited, renew_in_child
from optimist.core.paths import join, name_of, parent_of
from optimist.core.plugins.logstore import FileStatus, LogStore, PutOutcome
from optimist.core.runtime.clock import Clock, SystemClock
from optimist.core.runtime.retry import Patience, call_once, call_patiently
from optimist.logstores.hdfs.client import (
    REPLACED,
    HdfsClient,
    HdfsClientError,
    HdfsLocation,
    locate,
)
from optimist.logstores.hdfs.errors import hdfs_error, outcome_of_rename, tells_existence
from optimist.logstores.hdfs.options import HDFSOptions
from optimist.logstores.shared.answer_table import CREATE
from optimist.logstores.shared.file_pieces import PIECE_BYTES, pieces
from optimist.logstores.shared.ranged_file import open_ranged

__all__ = ["HDFSLogStore"]

_Result = TypeVar("_Result")

_REPEAT = Patience(max_tries=4)
_READS_OF_REPLACED = 5
"""How often in a row a whole read restarts because another writer has replaced the file."""
_INSTALL = "pip install 'hdfs-native>=0.14'"


class HDFSLogStore(LogStore):
    """A log whose commits are created by renaming a complete file to its name.

    Args:
        options: Keys `optimist.store.hdfs.*`, and Hadoop's (`dfs.*`, `fs.viewfs.*`, ...), see
            `HDFSOptions`.
        clock: Names the temporary files.
    """

    def __init__(
        self, options: Mapping[str, str] | None = None, *, clock: Clock | None = None
    ) -> None:
        super().__init__(options)
        self._parsed = HDFSOptions.from_options(self.options)
        self._clock: Clock = clock or SystemClock()
        self._lock = ForkSafeLock()
        self._clients: dict[str, HdfsClient] = {}
        # Clients stay in the table in a forked child: each reports itself that it is not usable
        # there.
        renew_in_child(self, lambda store: keep_inherited(dict(store._clients)))

    def put_if_absent(self, path: str, data: bytes) -> PutOutcome:
        """See `LogStore.put_if_absent`.

        1. If the name is taken already, the race is lost: report it before the cost of a write.
           (This saves time and decides nothing; step 3 excludes others.)
        2. Write the bytes to `.<name>.<uuid>.tmp` in the same directory, and close the file.
        3. Rename it, without overwriting. If the name node says that the target exists, another
           writer was first. Any other error leaves the outcome unknown, since the client may have
           repeated the request: `UNKNOWN`, and the engine reads the file back.
        4. Let observer name nodes catch up. From step 3 on others see the commit, so the answer
           can't be an error any more.
        5. Remove the temporary file and its checksum file. This is right after an unknown outcome,
           too: a rename that is still on its way then finds no source.

        Raises:
            LogFileNotFoundError: The directory does not exist.
            ConfigError: No client is available, or the path does not lead to HDFS.
            StorageError: Nothing was created.
        """
        return self._create(path, (data,))

    def put_file_if_absent(self, path: str, file: BinaryIO) -> PutOutcome:
        """See `LogStore.put_file_if_absent`.

        The file is written piece by piece, as in `put_if_absent`.
        """
        return self._create(path, pieces(file))

    def put_overwrite(self, path: str, data: bytes) -> None:
        """See `LogStore.put_overwrite`.

        Readers see the old file or the new one, whole.
        """
        location = locate(path)

        def overwrite(client: HdfsClient) -> None:
            with self._write_temporary(client, location, (data,)) as temporary:
                client.rename(temporary, location.path, overwrite=True)
                client.let_observers_catch_up()

        self._ask("overwrite", path, location, overwrite)

    def read_bytes(self, path: str) -> bytes:
        """See `LogStore.read_bytes`.

        If the file is replaced meanwhile, the read starts again.
        """
        location = locate(path)

        def read(client: HdfsClient) -> bytes:
            for _ in range(_READS_OF_REPLACED):
                try:
                    return client.read(location.path)
                except HdfsClientError as error:
                    if error.java_class != REPLACED:
                        raise
            return client.read(location.path)

        return self._ask("read", path, location, read)

    def open_read(self, path: str) -> BinaryIO:
        """See `LogStore.open_read`.

        Ranges are fetched as they are read.
        """
        location = locate(path)
        parts = self._ask("read", path, location, lambda client: client.open(location.path))

        def fetch(offset: int, length: int) -> bytes:
            with _translate_errors("read", path):
                return parts.fetch(offset, length)

        return open_ranged(
            parts.size_bytes,
            lambda offset, length: call_patiently(
                partial(fetch, offset, length), _REPEAT, self._clock
            ),
            identity=parts.identity,
        )

    def list_from(self, path: str) -> Iterator[FileStatus]:
        """See `LogStore.list_from`.

        With the JVM, the name node starts at the name. hdfs-native lists the whole directory.
        """
        parent, slash, first = path.rpartition("/")
        location = locate(parent + slash)
        entries = self._ask(
            "list", parent, location, lambda client: client.list_from(location.path, first)
        )
        with _translate_errors("list", parent):
            for entry in entries:
                if not entry.is_directory:
                    yield FileStatus(
                        parent + slash + entry.name, entry.size_bytes, entry.modified_ms
                    )

    def delete(self, path: str) -> None:
        """See `LogStore.delete`."""
        location = locate(path)
        self._ask("delete", path, location, lambda client: client.delete(location.path))

    def is_partial_write_visible(self, path: str) -> bool:  # noqa: ARG002 - the contract's
        """Return True, since HDFS shows files while they are written (spec 3.4)."""
        return True

    def ensure_directory(self, path: str) -> None:
        """See `LogStore.ensure_directory`."""
        location = locate(path)
        client = self._client(path, location)
        try:
            client.make_directories(location.path)
        except HdfsClientError as error:
            if tells_existence(error):
                raise StorageError(
                    f"Cannot create the directory {path}: a file has that name. Check the path.",
                    kind="OPTIMIST_NOT_A_DIRECTORY",
                    path=path,
                    retryable=False,
                ) from error
            raise hdfs_error(error, doing="create the directory", path=path) from error

    def resolve_path(self, path: str) -> str:
        """Return the URL with its name node, without doubled or trailing slashes and dots."""
        return locate(path).url

    def describe(self) -> Mapping[str, str]:
        """See `LogStore.describe`."""
        clients = {root: _CLIENT_NAMES[type(each).__name__] for root, each in self._known_clients()}
        return {
            **super().describe(),
            "one writer wins by": "rename of a complete file, which fails if the name is taken",
            "excludes": "Optimist and delta-spark writers of all processes and machines",
            "client": "; ".join(f"{root}: {name}" for root, name in sorted(clients.items()))
            or f"{self._parsed.client}, not connected yet",
        }

    def _create(self, path: str, content: Iterable[bytes]) -> PutOutcome:
        """Follow the steps of `put_if_absent`."""
        location = locate(path)

        def is_taken(client: HdfsClient) -> bool:
            client.ensure_exclusive(parent_of(location.path))
            return client.exists(location.path)

        if self._ask(CREATE, path, location, is_taken):
            return PutOutcome.EXISTS
        client = self._client(path, location)
        with (
            _translate_errors(CREATE, path),
            self._write_temporary(client, location, content) as temporary,
        ):
            try:
                call_once(
                    lambda: client.rename(temporary, location.path, overwrite=False), self._clock
                )
            except HdfsClientError as error:
                return outcome_of_rename(error)
            client.let_observers_catch_up()
            return PutOutcome.CREATED

    def _ask(
        self,
        doing: str,
        path: str,
        location: HdfsLocation,
        request: Callable[[HdfsClient], _Result],
    ) -> _Result:
        """Make a request that may be sent more than once."""

        def ask() -> _Result:
            client = self._client(path, location)
            with _translate_errors(doing, path):
                return request(client)

        return call_patiently(ask, _REPEAT, self._clock)

    def _connect(self, path: str, location: HdfsLocation) -> HdfsClient:
        """Make the client that the option names, where `auto` prefers the JVM's."""
        wanted = self._parsed.client
        jvm = _import_client("jvm") if wanted in ("auto", "jvm") else None
        context = jvm.active_context() if jvm is not None else None
        if jvm is not None and context is not None:
            return cast(HdfsClient, jvm.JvmHdfsClient(location, self._parsed, context))
        if wanted == "jvm":
            raise _no_session(path, jvm is not None)
        native = _import_client("native_client")
        if native is None:
            raise _no_client(path, wanted)
        return cast(HdfsClient, native.NativeHdfsClient(location, self._parsed))

    def _client(self, path: str, location: HdfsLocation) -> HdfsClient:
        with self._lock:
            client = self._clients.get(location.root)
            if client is None or not client.is_usable():
                with _translate_errors("reach", path):
                    client = self._connect(path, location)
                self._clients[location.root] = client
            return client

    def _known_clients(self) -> list[tuple[str, HdfsClient]]:
        with self._lock:
            return list(self._clients.items())

    @contextlib.contextmanager
    def _write_temporary(
        self, client: HdfsClient, location: HdfsLocation, content: Iterable[bytes]
    ) -> Iterator[str]:
        """Write a whole file beside the target, under a name that readers ignore (spec 3.3)."""
        name = f".{name_of(location.path)}.{self._clock.new_uuid()}.tmp"
        temporary = join(parent_of(location.path), name)
        try:
            call_once(
                lambda: client.create(temporary, content), self._clock, size_bytes=PIECE_BYTES
            )
            yield temporary
        finally:
            client.discard(temporary)


_CLIENT_NAMES = {"JvmHdfsClient": "the Spark session's JVM", "NativeHdfsClient": "hdfs-native"}


def _import_client(name: str) -> Any | None:
    """Import one of the clients' modules, or return None if its package is not installed."""
    try:
        return importlib.import_module(f"optimist.logstores.hdfs.{name}")
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.startswith("optimist."):
            raise
        return None


@contextlib.contextmanager
def _translate_errors(doing: str, path: str) -> Iterator[None]:
    try:
        yield
    except HdfsClientError as error:
        raise hdfs_error(error, doing=doing, path=path) from error


def _no_session(path: str, has_pyspark: bool) -> ConfigError:
    missing = (
        "there is no classic Spark session in this process"
        if has_pyspark
        else ("PySpark is not installed")
    )
    return ConfigError(
        f"Cannot reach {path}: optimist.store.hdfs.client is jvm, and {missing}. Make the session "
        "first, on this machine (a Spark Connect client has no JVM); or use hdfs-native: "
        f"{_INSTALL}, and remove the option or set it to native.",
        kind="OPTIMIST_CLASSIC_SPARK_NEEDED",
        path=path,
    )


def _no_client(path: str, wanted: str) -> ConfigError:
    begin = "" if wanted == "native" else "There is no classic Spark session in this process, and "
    return ConfigError(
        f"Cannot reach {path}. {begin}hdfs-native is not installed. Run: {_INSTALL}; or make a "
        "classic Spark session first (a Spark Connect client has no JVM).",
        kind="OPTIMIST_MISSING_PACKAGE",
        path=path,
    )
