"""HDFS through hdfs-native: no JVM, no Spark; for Spark Connect and for plain Python.

*Does not provide* listing from a name (it lists the directory and drops what comes before), nor
`msync` (it synchronises once, when it connects; behind an observer name node a listing may lag).

hdfs-native waits for ever for a name node or data node that takes a request and does not answer. So
each call runs in a thread of its own. When its time is up (`try_limit_s`), the call is abandoned,
and so is the client: the store makes a new one for the next call.
"""

from __future__ import annotations

import contextlib
import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, wait
from functools import partial
from typing import Any, TypeVar

import hdfs_native

from optimist.core.runtime.budget import try_limit_s
from optimist.logstores.hdfs.client import (
    HdfsClient,
    HdfsClientError,
    HdfsEntry,
    HdfsParts,
    HdfsPlace,
)
from optimist.logstores.hdfs.options import HDFSOptions

__all__ = ["NativeHdfsClient", "NativeWriter"]

_Result = TypeVar("_Result")

_DIRECTORY_MODE = 0o755
_PATIENCE_S = 60.0
"""As long as Java's client waits for a data node."""
_MISSING = "java.io.FileNotFoundException"
_TIMEOUT = "java.net.SocketTimeoutException"
_JAVA_CLASS = re.compile(r'(?:Fatal)?RPCError\("([\w.$]+)", "')
"""hdfs-native gives the class of a remote exception only in the debug form of its own error."""


class _Closed:
    def close(self) -> None:
        """Ask nobody."""


class NativeWriter:
    """A file that is being written, and nothing closes it but `close`.

    hdfs-native's own writer is closed once more by its finalizer. With a name node that does not
    answer, that waits for ever in whatever thread collects garbage, and no signal ends it.

    Args:
        file: What `hdfs_native.Client.create` gave; not to be used any more.
    """

    def __init__(self, file: Any) -> None:
        self._inner = file.inner
        file.inner = _Closed()

    def write(self, data: bytes) -> None:
        """Send bytes to a data node."""
        self._inner.write(data)

    def close(self) -> None:
        """Complete the file; readers see all of it from now on."""
        self._inner.close()


class NativeHdfsClient(HdfsClient):
    """One file system, one connection to its name node.

    Args:
        place: Any place of the file system.
        options: Hadoop's keys and where its files are.
    """

    def __init__(self, place: HdfsPlace, options: HDFSOptions) -> None:
        self._process = os.getpid()
        self._is_silent = False
        # A ValueError says that the settings name no name node; Hadoop has no exception for that.
        with _failures():
            self._client = hdfs_native.Client(place.root, dict(options.hadoop), options.conf_dir)

    def is_usable(self) -> bool:
        """See `HdfsClient.is_usable`; hdfs-native's threads do not survive a fork."""
        return self._process == os.getpid() and not self._is_silent

    def ensure_exclusive(self, directory: str) -> None:
        """See `HdfsClient.ensure_exclusive`; hdfs-native knows no file system but HDFS."""

    def create(self, path: str, content: Iterable[bytes]) -> None:
        """See `HdfsClient.create`."""
        how = hdfs_native.WriteOptions(overwrite=False, create_parent=False)
        file = self._in_time(lambda: NativeWriter(self._client.create(path, how)))
        for piece in filter(None, content):
            self._in_time(partial(file.write, piece))
        self._in_time(file.close)

    def rename(self, source: str, target: str, *, overwrite: bool) -> None:
        """See `HdfsClient.rename`."""
        self._in_time(lambda: self._client.rename(source, target, overwrite))

    def delete(self, path: str) -> None:
        """See `HdfsClient.delete`."""
        self._in_time(lambda: self._client.delete(path, False))

    def exists(self, path: str) -> bool:
        """See `HdfsClient.exists`."""
        try:
            self._in_time(lambda: self._client.get_file_info(path))
        except HdfsClientError as error:
            if error.java_class != _MISSING:
                raise
            return False
        return True

    def read(self, path: str) -> bytes:
        """See `HdfsClient.read`."""
        return self._in_time(lambda: bytes(self._client.read(path).read()))

    def open(self, path: str) -> HdfsParts:
        """See `HdfsClient.open`; the blocks are located once, so all reads are of one version."""
        reader = self._in_time(lambda: self._client.read(path))

        def fetch(offset: int, length: int) -> bytes:
            return self._in_time(lambda: bytes(reader.read_range(offset, length)))

        return HdfsParts(len(reader), fetch)

    def list_from(self, directory: str, first: str) -> Iterator[HdfsEntry]:
        """See `HdfsClient.list_from`; the whole directory is asked for."""
        listed = self._in_time(lambda: list(self._client.list_status(directory)))
        found = [
            HdfsEntry(each.path.rpartition("/")[2], each.length, each.modification_time, each.isdir)
            for each in listed
        ]
        return iter(sorted((e for e in found if e.name >= first), key=lambda entry: entry.name))

    def make_directories(self, path: str) -> None:
        """See `HdfsClient.make_directories`."""
        self._in_time(lambda: self._client.mkdirs(path, _DIRECTORY_MODE, True))

    def discard(self, temporary: str) -> None:
        """See `HdfsClient.discard`."""
        with contextlib.suppress(HdfsClientError):
            self.delete(temporary)

    def let_observers_catch_up(self) -> None:
        """See `HdfsClient.let_observers_catch_up`; hdfs-native has no call for it."""

    def _in_time(self, call: Callable[[], _Result]) -> _Result:
        if self._is_silent:
            raise HdfsClientError(_TIMEOUT, "it has not answered before")
        answer: Future[_Result] = Future()
        threading.Thread(target=_settle, args=(answer, call), daemon=True).start()
        limit_s = try_limit_s(_PATIENCE_S)
        # Not the answer's own TimeoutError: one that hdfs-native raised would look the same.
        if not wait((answer,), limit_s).done:
            self._is_silent = True
            raise HdfsClientError(_TIMEOUT, f"no answer came in {limit_s:.1f} s")
        with _failures():
            return answer.result()


def _settle(answer: Future[_Result], call: Callable[[], _Result]) -> None:
    try:
        result = call()
    except BaseException as error:  # noqa: BLE001 - whoever waits raises it
        answer.set_exception(error)
    else:
        answer.set_result(result)


@contextlib.contextmanager
def _failures() -> Iterator[None]:
    """Turn what hdfs-native raises into the Java class that it stands for."""
    try:
        yield
    except FileNotFoundError as error:
        raise HdfsClientError(_MISSING, _reason(error)) from error
    except FileExistsError as error:
        name = "org.apache.hadoop.fs.FileAlreadyExistsException"
        raise HdfsClientError(name, _reason(error)) from error
    except PermissionError as error:
        name = "org.apache.hadoop.security.AccessControlException"
        raise HdfsClientError(name, _reason(error)) from error
    except OSError as error:  # of its transport
        raise HdfsClientError("java.net.SocketException", _reason(error)) from error
    except Exception as error:
        match = _JAVA_CLASS.match(str(error))
        raise HdfsClientError(match[1] if match else "", _reason(error)) from error


def _reason(error: Exception) -> str:
    """The first line; what follows is the name node's stack."""
    text = re.split(r"\n|\\n", str(error), maxsplit=1)[0]
    return _JAVA_CLASS.sub("", text).strip()
