"""HDFS through hdfs-native: no JVM, no Spark; for Spark Connect and for plain Python.

*Does not provide* listing from a name (it lists the directory and drops what comes before), nor
`msync` (it synchronises once, when it connects; behind an observer name node a listing may lag).
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable, Iterator
from typing import BinaryIO

import hdfs_native

from optimist.logstores.hdfs.client import HdfsClient, HdfsClientError, HdfsEntry, HdfsPlace
from optimist.logstores.hdfs.options import HDFSOptions
from optimist.logstores.shared.ranged_file import open_ranged

__all__ = ["NativeHdfsClient"]

_DIRECTORY_MODE = 0o755
_JAVA_CLASS = re.compile(r'(?:Fatal)?RPCError\("([\w.$]+)", "')
"""hdfs-native gives the class of a remote exception in the debug form of its own error only."""


class NativeHdfsClient(HdfsClient):
    """One file system, one connection to its name node.

    Args:
        place: Any place of the file system.
        options: Hadoop's keys and where its files are.
    """

    def __init__(self, place: HdfsPlace, options: HDFSOptions) -> None:
        self._process = os.getpid()
        # ValueError: the settings name no name node. Nobody has a Hadoop exception for it.
        with _failures():
            self._client = hdfs_native.Client(place.root, dict(options.hadoop), options.conf_dir)

    def is_usable(self) -> bool:
        """See `HdfsClient.is_usable`; the threads below it do not survive a fork."""
        return self._process == os.getpid()

    def ensure_exclusive(self, directory: str) -> None:
        """See `HdfsClient.ensure_exclusive`; hdfs-native knows no file system but HDFS."""

    def create(self, path: str, content: Iterable[bytes]) -> None:
        """See `HdfsClient.create`."""
        how = hdfs_native.WriteOptions(overwrite=False, create_parent=False)
        with _failures():
            file = self._client.create(path, how)
            for piece in filter(None, content):
                file.write(piece)
            file.close()

    def rename(self, source: str, target: str, *, overwrite: bool) -> None:
        """See `HdfsClient.rename`."""
        with _failures():
            self._client.rename(source, target, overwrite)

    def delete(self, path: str) -> None:
        """See `HdfsClient.delete`."""
        with _failures():
            self._client.delete(path, False)

    def exists(self, path: str) -> bool:
        """See `HdfsClient.exists`."""
        with _failures():
            try:
                self._client.get_file_info(path)
            except FileNotFoundError:
                return False
        return True

    def read(self, path: str) -> bytes:
        """See `HdfsClient.read`."""
        with _failures():
            return self._client.read(path).read()

    def open(self, path: str) -> BinaryIO:
        """See `HdfsClient.open`; the blocks were located once, so it is one version."""
        with _failures():
            reader = self._client.read(path)

        def fetch(offset: int, length: int) -> bytes:
            with _failures():
                return reader.read_range(offset, length)

        return open_ranged(len(reader), fetch)

    def list_from(self, directory: str, first: str) -> Iterator[HdfsEntry]:
        """See `HdfsClient.list_from`; the whole directory is asked for."""
        with _failures():
            found = [
                HdfsEntry(
                    each.path.rpartition("/")[2], each.length, each.modification_time, each.isdir
                )
                for each in self._client.list_status(directory)
            ]
        return iter(sorted((e for e in found if e.name >= first), key=lambda entry: entry.name))

    def make_directories(self, path: str) -> None:
        """See `HdfsClient.make_directories`."""
        with _failures():
            self._client.mkdirs(path, _DIRECTORY_MODE, True)

    def discard(self, temporary: str) -> None:
        """See `HdfsClient.discard`."""
        with contextlib.suppress(HdfsClientError):
            self.delete(temporary)

    def let_observers_catch_up(self) -> None:
        """See `HdfsClient.let_observers_catch_up`; there is nothing that it could call."""


@contextlib.contextmanager
def _failures() -> Iterator[None]:
    """Turn what hdfs-native raises into the Java class that it stands for."""
    try:
        yield
    except FileNotFoundError as error:
        raise HdfsClientError("java.io.FileNotFoundException", _reason(error)) from error
    except FileExistsError as error:
        name = "org.apache.hadoop.fs.FileAlreadyExistsException"
        raise HdfsClientError(name, _reason(error)) from error
    except PermissionError as error:
        name = "org.apache.hadoop.security.AccessControlException"
        raise HdfsClientError(name, _reason(error)) from error
    except OSError as error:  # of its transport
        raise HdfsClientError("java.net.SocketException", _reason(error)) from error
    except (RuntimeError, ValueError, NotImplementedError) as error:
        match = _JAVA_CLASS.match(str(error))
        raise HdfsClientError(match[1] if match else "", _reason(error)) from error


def _reason(error: Exception) -> str:
    """The first line; what follows is the name node's stack."""
    text = re.split(r"\n|\\n", str(error), maxsplit=1)[0]
    return _JAVA_CLASS.sub("", text).strip()
