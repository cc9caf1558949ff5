"""A wire between a Spark Connect client and its server, cut at a chosen request of the client.

To the client it looks as if the server had been killed: all connections end, and nobody answers any
more. The server itself lives on, so that the next case need not wait for another one.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

__all__ = ["Wire"]

_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_DATA, _HEADERS = 0, 1
_END_STREAM = 1


class Wire:
    """Carries what a client and a server say, frame by frame of HTTP/2.

    Attributes:
        endpoint: Where a client reaches the server.
        num_requests: How many requests were made since `arm`.
        durations_s: How long the server had for each of them, where it has answered.
        is_cut: Whether the wire was cut.
        was_busy: Whether the server was about other requests when the wire was cut.
    """

    def __init__(self, server: str, cut: Callable[[], None] = lambda: None) -> None:
        """Listen on a free port.

        Args:
            server: The server's host and port.
            cut: Also called when the wire is cut.
        """
        host, _, port = server.partition(":")
        self._server = (host, int(port))
        self._cut_too = cut
        self._lock = threading.RLock()
        self._sockets: list[socket.socket] = [socket.create_server(("127.0.0.1", 0))]
        self._cut_at: tuple[int, str, float] | None = None
        self._asked: dict[int, tuple[int, float]] = {}
        self.num_requests = 0
        self.durations_s: dict[int, float] = {}
        self.is_cut = self.was_busy = False
        self.endpoint = f"localhost:{self._sockets[0].getsockname()[1]}"
        threading.Thread(target=self._listen, args=(self._sockets[0],), daemon=True).start()

    def arm(self, at: int | None, moment: str = "asked", after_s: float = 0) -> None:
        """Count requests from now on, and cut the wire at one of them.

        Args:
            at: Which, from 0 on; None to cut it at none.
            moment: `asked`: before the server hears the request. `working`: while the server works
                on it. `answered`: when it has done what was asked, and nobody hears the answer.
            after_s: How long the server has worked by then.
        """
        with self._lock:
            self.num_requests, self._cut_at = 0, None if at is None else (at, moment, after_s)
            self.durations_s, self._asked = {}, {}

    def cut(self) -> None:
        """End all connections, and take no more."""
        with self._lock:
            if self.is_cut:
                return
            self.is_cut, self.was_busy = True, bool(self._asked)
            for end in self._sockets:
                with suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
                end.close()
        self._cut_too()

    def _listen(self, listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                client, _ = listener.accept()
                server = socket.create_connection(self._server)
                with self._lock:
                    self._sockets += [client, server]
                    if self.is_cut:
                        client.close()
                        server.close()
                held: set[int] = set()
                for carry in (self._carry_requests, self._carry_answers):
                    threading.Thread(target=carry, args=(client, server, held), daemon=True).start()

    def _carry_requests(self, client: socket.socket, server: socket.socket, held: set[int]) -> None:
        newest = 0
        with suppress(OSError, EOFError):
            server.sendall(_exactly(client, len(_PREFACE)))
            for kind, _, stream, frame in _frames(client):
                if kind == _HEADERS and stream > newest:
                    newest = stream
                    if self._is_last(stream, held):
                        self.cut()
                server.sendall(frame)

    def _is_last(self, stream: int, held: set[int]) -> bool:
        """Count a request; whether the server is not to hear it."""
        with self._lock:
            number, self.num_requests = self.num_requests, self.num_requests + 1
            self._asked[stream] = (number, time.monotonic())
            if self._cut_at is None or self._cut_at[0] != number:
                return False
            _, moment, after_s = self._cut_at
            if moment == "asked":
                del self._asked[stream]
                return True
            if moment == "working":
                threading.Timer(after_s, self.cut).start()
            held.add(stream)
            return False

    def _carry_answers(self, client: socket.socket, server: socket.socket, held: set[int]) -> None:
        with suppress(OSError, EOFError):
            for kind, flags, stream, frame in _frames(server):
                is_end = kind in (_DATA, _HEADERS) and bool(flags & _END_STREAM)
                if is_end:
                    self._note_end(stream)
                if stream not in held:
                    client.sendall(frame)
                elif is_end:
                    self.cut()

    def _note_end(self, stream: int) -> None:
        with self._lock:
            asked = self._asked.pop(stream, None)
            if asked is not None:  # else it was begun before `arm`
                self.durations_s[asked[0]] = time.monotonic() - asked[1]


def _frames(end: socket.socket) -> Iterator[tuple[int, int, int, bytes]]:
    """Read frames: the kind, flags and stream of each, and all its bytes."""
    while True:
        head = _exactly(end, 9)
        body = _exactly(end, int.from_bytes(head[:3], "big"))
        yield head[3], head[4], int.from_bytes(head[5:9], "big") & 0x7FFFFFFF, head + body


def _exactly(end: socket.socket, size: int) -> bytes:
    parts = bytearray()
    while len(parts) < size:
        part = end.recv(size - len(parts))
        if not part:
            raise EOFError
        parts += part
    return bytes(parts)
