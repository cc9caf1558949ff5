"""HDFS through hdfs-native, without a JVM or Spark, for Spark Connect and plain Python.

*Does not provide* listing from a name (it lists the directory and drops earlier names), nor `msync`
(it synchronises once, when it connects; behind an observer name node a listing may lag).

If a name node or data node takes a request and does not answer, hdfs-native waits for ever. So each
call runs in its own thread. When its time is up (`try_limit_s`), the call and the client are
abandoned, and the store makes a new client for the next call.
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
    HdfsLocation,
    HdfsParts,
)
from optimist.logstores.hdfs.options import HDFSOptions

__all__ = ["NativeHdfsClient", "NativeWriter"]

_Result = TypeVar("_Result")

_DIRECTORY_MODE = 0o755
_PATIENCE_S = 60.0
"""Java's client waits for a data node as long as this."""
_MISSING = "java.io.FileNotFoundException"
_TIMEOUT = "java.net.SocketTimeoutException"
_JAVA_CLASS = re.compile(r'(?:Fatal)?RPCError\("([\w.$]+)", "')
"""hdfs-native gives the class of a remote exception only in the debug text of its own error."""


class _Closed:
    def close(self) -> None:
        """Do nothing."""


class NativeWriter:
    """A file that is being written, which only `close` closes.

    The finalizer of hdfs-native's own writer closes it again. If the name node does not answer,
    this blocks any thread that collects garbage for ever, and no signal ends it.

    Args:
        file: The result of `hdfs_native.Client.create`; do not use it any more.
    """

    def __init__(self, file: Any) -> None:
        self._inner = file.inner
        file.inner = _Closed()

    def write(self, data: bytes) -> None:
        """Send bytes to a data node."""
        self._inner.write(data)

    def close(self) -> None:
        """Complete the file, so that readers see all of it."""
        self._inner.close()


class NativeHdfsClient(HdfsClient):
    """One file system, with one connection to its name node.

    Args:
        location: Any path of the file system.
        options: Hadoop's keys and the folder of its files.
    """

    def __init__(self, location: HdfsLocation, options: HDFSOptions) -> None:
        self._process = os.getpid()
        self._is_silent = False
        # A ValueError says that the settings lack a name node; Hadoop has no exception for this.
        with _translate_failures():
            self._client = hdfs_native.Client(location.root, dict(options.hadoop), options.conf_dir)

    def is_usable(self) -> bool:
        """See `HdfsClient.is_usable`.

        hdfs-native's threads do not survive a fork.
        """
        return self._process == os.getpid() and not self._is_silent

    def ensure_exclusive(self, directory: str) -> None:
        """See `HdfsClient.ensure_exclusive`.

        hdfs-native supports no file system but HDFS.
        """

    def create(self, path: str, content: Iterable[bytes]) -> None:
        """See `HdfsClient.create`."""
        how = hdfs_native.WriteOptions(overwrite=False, create_parent=False)
        file = self._call_in_time(lambda: NativeWriter(self._client.create(path, how)))
        for piece in filter(None, content):
            self._call_in_time(partial(file.write, piece))
        self._call_in_time(file.close)

    def rename(self, source: str, target: str, *, overwrite: bool) -> None:
        """See `HdfsClient.rename`."""
        self._call_in_time(lambda: self._client.rename(source, target, overwrite))

    def delete(self, path: str) -> None:
        """See `HdfsClient.delete`."""
        self._call_in_time(lambda: self._client.delete(path, False))

    def exists(self, path: str) -> bool:
        """See `HdfsClient.exists`."""
        try:
            self._call_in_time(lambda: self._client.get_file_info(path))
        except HdfsClientError as error:
            if error.java_class != _MISSING:
                raise
            return False
        return True

    def read(self, path: str) -> bytes:
        """See `HdfsClient.read`."""
        return self._call_in_time(lambda: bytes(self._client.read(path).read()))

    def open(self, path: str) -> HdfsParts:
        """See `HdfsClient.open`.

        The blocks are located once, so all reads are of one version.
        """
        reader = self._call_in_time(lambda: self._client.read(path))

        def fetch(offset: int, length: int) -> bytes:
            return self._call_in_time(lambda: bytes(reader.read_range(offset, length)))

        return HdfsParts(len(reader), fetch)

    def list_from(self, directory: str, first: str) -> Iterator[HdfsEntry]:
        """See `HdfsClient.list_from`.

        It lists the whole directory.
        """
        listed = self._call_in_time(lambda: list(self._client.list_status(directory)))
        found = [
            HdfsEntry(each.path.rpartition("/")[2], each.length, each.modification_time, each.isdir)
            for each in listed
        ]
        return iter(sorted((e for e in found if e.name >= first), key=lambda entry: entry.name))

    def make_directories(self, path: str) -> None:
        """See `HdfsClient.make_directories`."""
        self._call_in_time(lambda: self._client.mkdirs(path, _DIRECTORY_MODE, True))

    def discard(self, temporary: str) -> None:
        """See `HdfsClient.discard`."""
        with contextlib.suppress(HdfsClientError):
            self.delete(temporary)

    def let_observers_catch_up(self) -> None:
        """See `HdfsClient.let_observers_catch_up`.

        hdfs-native has no call for it.
        """

    def _call_in_time(self, call: Callable[[], _Result]) -> _Result:
        if self._is_silent:
            raise HdfsClientError(_TIMEOUT, "it has not answered before")
        answer: Future[_Result] = Future()
        threading.Thread(target=_run_and_answer, args=(answer, call), daemon=True).start()
        limit_s = try_limit_s(_PATIENCE_S)
        # Not the answer's own TimeoutError: a TimeoutError of hdfs-native would look the same.
        if not wait((answer,), limit_s).done:
            self._is_silent = True
            raise HdfsClientError(_TIMEOUT, f"no answer came in {limit_s:.1f} s")
        with _translate_failures():
            return answer.result()


def _run_and_answer(answer: Future[_Result], call: Callable[[], _Result]) -> None:
    try:
        result = call()
    except BaseException as error:  # noqa: BLE001 - the waiting thread raises it
        answer.set_exception(error)
    else:
        answer.set_result(result)


@contextlib.contextmanager
def _translate_failures() -> Iterator[None]:
    """Turn hdfs-native's errors into the Java classes behind them."""
    try:
        yield
    except FileNotFoundError as error:
        raise HdfsClientError(_MISSING, _first_line(error)) from error
    except FileExistsError as error:
        name = "org.apache.hadoop.fs.FileAlreadyExistsException"
        raise HdfsClientError(name, _first_line(error)) from error
    except PermissionError as error:
        name = "org.apache.hadoop.security.AccessControlException"
        raise HdfsClientError(name, _first_line(error)) from error
    except OSError as error:  # of the transport
        raise HdfsClientError("java.net.SocketException", _first_line(error)) from error
    except Exception as error:
        match = _JAVA_CLASS.match(str(error))
        raise HdfsClientError(match[1] if match else "", _first_line(error)) from error


def _first_line(error: Exception) -> str:
    """Return the first line of an error, without the name node's stack."""
    text = re.split(r"\n|\\n", str(error), maxsplit=1)[0]
    return _JAVA_CLASS.sub("", text).strip()
