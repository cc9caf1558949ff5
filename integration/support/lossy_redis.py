"""A proxy before Redis that breaks connections around a script, before or after it has run."""

from __future__ import annotations

import contextlib
import socket
import socketserver
import threading
from urllib.parse import urlsplit

__all__ = ["LossyRedis"]

_PATIENCE_S = 30.0
_CHUNK = 1 << 20


class LossyRedis:
    """Passes everything on, but for the scripts that a test plans to lose.

    Args:
        url: `redis://host:port/database` of the server.
    """

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self.server_address = (parts.hostname, parts.port)
        self._database = parts.path
        self._lock = threading.Lock()
        self._numbers = range(0)
        self._is_run = False
        self._seen = 0
        self._server = _Server(self)

    @property
    def url(self) -> str:
        """What clients get in place of the server's."""
        return f"redis://127.0.0.1:{self._server.server_address[1]}{self._database}"

    @property
    def was_met(self) -> bool:
        """Whether a script was lost."""
        return self._seen >= self._numbers.start > 0

    def lose(self, numbers: range, *, is_run: bool) -> None:
        """Break the connection at those scripts, counted from 1 and from now.

        Args:
            numbers: Which scripts.
            is_run: Whether the server runs them first.
        """
        with self._lock:
            self._numbers, self._is_run, self._seen = numbers, is_run, 0

    def heal(self) -> None:
        """Lose nothing from now on."""
        self.lose(range(0), is_run=True)

    def __enter__(self) -> LossyRedis:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def fate_of(self, command: bytes) -> tuple[bool, bool]:
        """Whether the server gets a command, and the client its answer."""
        if b"EVAL" not in command:
            return True, True
        with self._lock:
            self._seen += 1
            is_lost = self._seen in self._numbers
            return not is_lost or self._is_run, not is_lost


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, proxy: LossyRedis) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.proxy = proxy


class _Handler(socketserver.BaseRequestHandler):
    server: _Server

    def handle(self) -> None:
        """One connection: a command and its answer in turn, as the client library does it."""
        address = self.server.proxy.server_address
        with contextlib.suppress(OSError), socket.create_connection(address, _PATIENCE_S) as server:
            while command := self.request.recv(_CHUNK):
                reaches_server, reaches_client = self.server.proxy.fate_of(command)
                if reaches_server:
                    server.sendall(command)
                    answer = server.recv(_CHUNK)
                if not reaches_client:
                    return
                self.request.sendall(answer)
