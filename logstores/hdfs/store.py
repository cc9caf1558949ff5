"""Logs on HDFS (spec 3.4).

*Assumes* a name node, active or behind a fail-over proxy, whose `rename2` refuses in one step if
the target exists: HDFS of Hadoop 2 and later. `viewfs:` is served where its mount leads to HDFS.

*Provides* mutual exclusion between threads, processes and machines; atomic visibility of what this
store creates; consistent listing, also behind observer name nodes where the JVM is used.

*Does not provide* atomic visibility of what others write beside it with other means, which is why
`is_partial_write_visible` is true; nor an `hsync`: a closed file is complete on as many data nodes
as `dfs.namenode.replication.min` says, in their memory perhaps, as with every HDFS client; nor
anything for local paths, where the same rename replaces the winner's file: they are refused.

*Excludes* delta-spark's HDFSLogStore, which renames in the same way, and other Optimist processes.

Two clients do the work, see `hdfs/client.py`; the algorithm is here, the same for both.
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
    HdfsPlace,
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
"""How often in a row a whole read may meet another writer's overwrite, and begin anew."""
_INSTALL = "pip install 'hdfs-native>=0.14'"


class HDFSLogStore(LogStore):
    """Creates a commit by renaming a complete file to its name.

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
        # Clients stay in the table in a forked child: each tells by itself that it is of no use
        # there.
        renew_in_child(self, lambda store: keep_inherited(dict(store._clients)))

    def put_if_absent(self, path: str, data: bytes) -> PutOutcome:
        """See `LogStore.put_if_absent`.

        1. If the name is taken already, the race is lost: say so before paying for a write. (This
           saves time and decides nothing; step 3 is what excludes.)
        2. Write the bytes to `.<name>.<uuid>.tmp` in the same directory, and close the file.
        3. Rename it, without overwriting. If the name node says that the target exists, another was
           first. Any other answer but success leaves the outcome open, for the request may have
           been repeated by the client: `UNKNOWN`, and the engine reads the file back.
        4. Let observer name nodes catch up. From step 3 on others see the commit, so nothing may
           turn the answer into an error.
        5. Remove the temporary name and what lies beside it. After an unknown outcome that is right
           too: a rename that is still on its way then finds nothing.

        Raises:
            LogFileNotFoundError: The directory does not exist.
            ConfigError: No client can be had, or the path does not lead to HDFS.
            StorageError: Nothing was created.
        """
        return self._create(path, (data,))

    def put_file_if_absent(self, path: str, file: BinaryIO) -> PutOutcome:
        """See `LogStore.put_file_if_absent`; written piece by piece, as `put_if_absent`."""
        return self._create(path, pieces(file))

    def put_overwrite(self, path: str, data: bytes) -> None:
        """See `LogStore.put_overwrite`. Readers see the old file or the new one, whole."""
        place = locate(path)

        def overwrite(client: HdfsClient) -> None:
            with self._written(client, place, (data,)) as temporary:
                client.rename(temporary, place.path, overwrite=True)
                client.let_observers_catch_up()

        self._ask("overwrite", path, place, overwrite)

    def read_bytes(self, path: str) -> bytes:
        """See `LogStore.read_bytes`; a file that is replaced meanwhile is read from its start."""
        place = locate(path)

        def read(client: HdfsClient) -> bytes:
            for _ in range(_READS_OF_REPLACED):
                try:
                    return client.read(place.path)
                except HdfsClientError as error:
                    if error.java_class != REPLACED:
                        raise
            return client.read(place.path)

        return self._ask("read", path, place, read)

    def open_read(self, path: str) -> BinaryIO:
        """See `LogStore.open_read`; ranges are fetched as they are read."""
        place = locate(path)
        parts = self._ask("read", path, place, lambda client: client.open(place.path))

        def fetch(offset: int, length: int) -> bytes:
            with _errors("read", path):
                return parts.fetch(offset, length)

        return open_ranged(
            parts.size_bytes,
            lambda offset, length: call_patiently(
                partial(fetch, offset, length), _REPEAT, self._clock
            ),
        )

    def list_from(self, path: str) -> Iterator[FileStatus]:
        """See `LogStore.list_from`.

        Through the JVM the name node starts at the name; hdfs-native lists the directory.
        """
        parent, slash, first = path.rpartition("/")
        place = locate(parent + slash)
        entries = self._ask(
            "list", parent, place, lambda client: client.list_from(place.path, first)
        )
        with _errors("list", parent):
            for entry in entries:
                if not entry.is_directory:
                    yield FileStatus(
                        parent + slash + entry.name, entry.size_bytes, entry.modified_ms
                    )

    def delete(self, path: str) -> None:
        """See `LogStore.delete`."""
        place = locate(path)
        self._ask("delete", path, place, lambda client: client.delete(place.path))

    def is_partial_write_visible(self, path: str) -> bool:  # noqa: ARG002 - the contract's
        """True (spec 3.4): HDFS shows files while they are being written."""
        return True

    def ensure_directory(self, path: str) -> None:
        """See `LogStore.ensure_directory`."""
        place = locate(path)
        client = self._client(path, place)
        try:
            client.make_directories(place.path)
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
        """The URL with its name node, without doubled or trailing slashes and dots."""
        return locate(path).url

    def describe(self) -> Mapping[str, str]:
        """See `LogStore.describe`."""
        clients = {root: _CLIENT_NAMES[type(each).__name__] for root, each in self._known()}
        return {
            **super().describe(),
            "one writer wins by": "rename of a complete file, which fails if the name is taken",
            "excludes": "Optimist and delta-spark writers of all processes and machines",
            "client": "; ".join(f"{root}: {name}" for root, name in sorted(clients.items()))
            or f"{self._parsed.client}, not connected yet",
        }

    def _create(self, path: str, content: Iterable[bytes]) -> PutOutcome:
        """The steps of `put_if_absent`."""
        place = locate(path)

        def is_taken(client: HdfsClient) -> bool:
            client.ensure_exclusive(parent_of(place.path))
            return client.exists(place.path)

        if self._ask(CREATE, path, place, is_taken):
            return PutOutcome.EXISTS
        client = self._client(path, place)
        with _errors(CREATE, path), self._written(client, place, content) as temporary:
            try:
                call_once(
                    lambda: client.rename(temporary, place.path, overwrite=False), self._clock
                )
            except HdfsClientError as error:
                return outcome_of_rename(error)
            client.let_observers_catch_up()
            return PutOutcome.CREATED

    def _ask(
        self, doing: str, path: str, place: HdfsPlace, request: Callable[[HdfsClient], _Result]
    ) -> _Result:
        """Make a request that may be made more than once."""

        def ask() -> _Result:
            client = self._client(path, place)
            with _errors(doing, path):
                return request(client)

        return call_patiently(ask, _REPEAT, self._clock)

    def _connect(self, path: str, place: HdfsPlace) -> HdfsClient:
        """Make the client that the option names; `auto` takes the JVM's where there is one."""
        wanted = self._parsed.client
        jvm = _module("jvm") if wanted in ("auto", "jvm") else None
        context = jvm.active_context() if jvm is not None else None
        if jvm is not None and context is not None:
            return cast(HdfsClient, jvm.JvmHdfsClient(place, self._parsed, context))
        if wanted == "jvm":
            raise _no_session(path, jvm is not None)
        native = _module("native_client")
        if native is None:
            raise _no_client(path, wanted)
        return cast(HdfsClient, native.NativeHdfsClient(place, self._parsed))

    def _client(self, path: str, place: HdfsPlace) -> HdfsClient:
        with self._lock:
            client = self._clients.get(place.root)
            if client is None or not client.is_usable():
                with _errors("reach", path):
                    client = self._connect(path, place)
                self._clients[place.root] = client
            return client

    def _known(self) -> list[tuple[str, HdfsClient]]:
        with self._lock:
            return list(self._clients.items())

    @contextlib.contextmanager
    def _written(
        self, client: HdfsClient, place: HdfsPlace, content: Iterable[bytes]
    ) -> Iterator[str]:
        """A whole file beside the target, under a name that readers ignore (spec 3.3)."""
        name = f".{name_of(place.path)}.{self._clock.new_uuid()}.tmp"
        temporary = join(parent_of(place.path), name)
        try:
            call_once(
                lambda: client.create(temporary, content), self._clock, size_bytes=PIECE_BYTES
            )
            yield temporary
        finally:
            client.discard(temporary)


_CLIENT_NAMES = {"JvmHdfsClient": "the Spark session's JVM", "NativeHdfsClient": "hdfs-native"}


def _module(name: str) -> Any | None:
    """One of the clients' modules, or None where the package that it needs is not installed."""
    try:
        return importlib.import_module(f"optimist.logstores.hdfs.{name}")
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.startswith("optimist."):
            raise
        return None


@contextlib.contextmanager
def _errors(doing: str, path: str) -> Iterator[None]:
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
