"""A wire that makes each request take longer, as a store far away does."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from urllib.parse import urlsplit

from optimist.core.runtime.clock import SystemClock

__all__ = ["slow_wire"]

_CHUNK = 1 << 16


@dataclass(slots=True)
class _Connection:
    """One connection, passed on; `was_answered` tells where a new request begins."""

    client: socket.socket
    server: socket.socket
    delay_s: float
    was_answered: bool = True

    def start(self) -> None:
        for work in (self._requests, self._answers):
            threading.Thread(target=work, daemon=True).start()

    def _requests(self) -> None:
        with suppress(OSError):
            while data := self.client.recv(_CHUNK):
                if self.was_answered:
                    self.was_answered = False
                    SystemClock().sleep(self.delay_s)
                self.server.sendall(data)
        self._close()

    def _answers(self) -> None:
        with suppress(OSError):
            while data := self.server.recv(_CHUNK):
                self.was_answered = True
                self.client.sendall(data)
        self._close()

    def _close(self) -> None:
        for each in (self.client, self.server):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


@contextmanager
def slow_wire(endpoint: str, delay_s: float) -> Iterator[str]:
    """Open an endpoint that passes each request on to another, `delay_s` seconds later."""
    target = urlsplit(endpoint)
    assert target.hostname is not None
    address = (target.hostname, target.port or 80)
    listener = socket.create_server(("127.0.0.1", 0), backlog=256)

    def accept() -> None:
        with suppress(OSError):  # the listener was closed
            while True:
                client, _ = listener.accept()
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                _Connection(client, socket.create_connection(address), delay_s).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.close()
