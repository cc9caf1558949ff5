"""What a table must never reach: a file, a host, a secret in the environment, a program.

- The files lie in a folder that the kernel watches (inotify): Arrow's own readers are seen too.
- The host is a socket that listens on this machine; proxies and endpoints of the environment name
  it, so that a driver which asks for another host comes here as well.
- The secret is in the environment and in the text file, and is looked for in all that is told.
- Python's audit events tell of programs, of names that are looked up, and of files that are changed
  outside the table.
"""

from __future__ import annotations

import ctypes
import json
import os
import socket
import struct
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from hostile_values import ENVIRONMENT_CANARY

__all__ = ["SECRET", "Canaries"]

SECRET = "canary-5d1f8b0c-that-nobody-may-tell"
_EVENTS = {
    0x001: "read",
    0x002: "changed",
    0x004: "given other attributes",
    0x020: "opened",
    0x040: "moved away",
    0x080: "moved here",
    0x100: "made",
    0x200: "deleted",
}
_LOOKS = 0x001 | 0x020
_ALL = sum(_EVENTS)
_ASKS_HOSTS = (
    "http_proxy",
    "https_proxy",
    "ftp_proxy",
    "all_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "AWS_ENDPOINT_URL",
    "STORAGE_EMULATOR_HOST",
)
_PROGRAMS = frozenset(
    {
        "subprocess.Popen",
        "os.system",
        "os.exec",
        "os.posix_spawn",
        "os.spawn",
        "os.fork",
        "pty.spawn",
    }
)
_HOSTS = frozenset(
    {
        "socket.connect",
        "socket.getaddrinfo",
        "socket.gethostbyname",
        "socket.gethostbyaddr",
        "socket.sendto",
        "urllib.Request",
        "ftplib.connect",
        "smtplib.connect",
    }
)
_CHANGES = frozenset(
    {"os.remove", "os.rename", "os.rmdir", "os.link", "os.symlink", "os.mkdir", "os.truncate"}
)


class Canaries:
    """The watch of one process.

    Attributes:
        folder: Where the files are.
        port: Where the host listens.
    """

    def __init__(self, folder: Path, own: Path) -> None:
        self.folder = folder
        self._own = own.as_posix()
        self._noticed: list[str] = []
        self._is_on = False
        folder.mkdir(parents=True)
        _write_files(folder)
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self._listener.setblocking(False)
        self.port: int = self._listener.getsockname()[1]
        self._watch = _watched(folder)
        os.environ[ENVIRONMENT_CANARY] = SECRET
        os.environ.update(dict.fromkeys(_ASKS_HOSTS, f"http://127.0.0.1:{self.port}"))
        os.environ["AWS_EC2_METADATA_DISABLED"] = "true"
        sys.addaudithook(self._audit)

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Notice what Python tells of within this."""
        self._is_on = True
        try:
            yield
        finally:
            self._is_on = False

    def noticed(self, *, may_be_read: bool) -> list[str]:
        """What was touched since the last call.

        Args:
            may_be_read: The files may be looked at, as Delta's shallow clones need; never changed.
        """
        found, self._noticed = self._noticed, []
        found += [f"the file {what}" for what in self._file_events(may_be_read=may_be_read)]
        try:
            while True:
                connection, _ = self._listener.accept()
                connection.close()
                found.append("the host was called")
        except BlockingIOError:
            return found

    def _file_events(self, *, may_be_read: bool) -> list[str]:
        found = []
        try:
            data = os.read(self._watch, 1 << 16)
        except BlockingIOError:
            return []
        while data:
            _, mask, _, length = struct.unpack_from("iIII", data)
            name = data[16 : 16 + length].rstrip(b"\0").decode()
            data = data[16 + length :]
            if not (may_be_read and not mask & ~_LOOKS & _ALL):
                found += [f"{name} was {what}" for bit, what in _EVENTS.items() if mask & bit]
        return found

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self._is_on:
            return
        if event in _PROGRAMS:
            self._noticed.append(f"a program was started: {event} {arguments!r:.300}")
        elif event in _HOSTS:
            self._noticed.append(f"a host was asked for: {event} {arguments!r:.300}")
        elif event in _CHANGES:
            self._noticed += [
                f"{event} of {path!r:.300}" for path in arguments if self._is_foreign(path)
            ]
        elif event == "open" and _is_to_write(arguments[2]) and self._is_foreign(arguments[0]):
            self._noticed.append(f"{arguments[0]!r:.300} was opened to write")

    def _is_foreign(self, path: object) -> bool:
        if not isinstance(path, str | bytes):
            return False  # descriptors, which were opened before
        text = os.fsdecode(path)
        if not text.startswith("/"):
            return True
        real = os.path.realpath(os.path.dirname(text))  # noqa: PTH120 - text, as it was given
        return real != self._own and not real.startswith(f"{self._own}/")


def _is_to_write(flags: int) -> bool:
    return bool(flags & (os.O_WRONLY | os.O_RDWR))


def _write_files(folder: Path) -> None:
    rows = pa.table({"id": [666], "s": [SECRET], "p": [SECRET], "x": [666]})
    pq.write_table(rows, folder / "canary.parquet")
    (folder / "canary.txt").write_text(SECRET)
    marker = folder / "a-command-was-run"
    references: Mapping[str, Any] = {
        "version": 1,
        "templates": {"u": f"{{{{ cycler.__init__.__globals__.os.popen('touch {marker}') }}}}"},
        "gen": [],
        "refs": {"k": ["{{u}}", 0, 4]},
    }
    (folder / "references.json").write_text(json.dumps(references))


def _watched(folder: Path) -> int:
    """A descriptor that tells what happens in a folder."""
    libc = ctypes.CDLL(None, use_errno=True)
    descriptor = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    if descriptor < 0 or libc.inotify_add_watch(descriptor, os.fsencode(folder), _ALL) < 0:
        raise OSError(ctypes.get_errno(), "the kernel does not watch folders")
    return int(descriptor)
