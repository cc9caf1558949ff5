"""A proxy for servers that speak no HTTP: it breaks off, cuts and delays what is sent either way.

It knows nothing of the protocol: a message is what one side sends before the other answers.
"""

from __future__ import annotations

import contextlib
import socket
import socketserver
import struct
import threading
from dataclasses import dataclass

from optimist.core.runtime.clock import SystemClock
from weather import Weather

__all__ = ["TCP_FAULTS", "LossyTcp", "TcpFault"]

_PATIENCE_S = 30.0
_SILENCE_S = 5.0
_CHUNK = 1 << 20
_CLOCK = SystemClock()


@dataclass(frozen=True)
class TcpFault:
    """What happens to one message of a client.

    Attributes:
        name: For what a test prints.
        sent: How much of it the server gets.
        answered: How much of the answer the client gets.
        sent_after_s: When the server gets it, if the client has been cut off meanwhile.
        answered_after_s: How much later the client gets the answer.
        is_silent: Whether the connection stays open without an answer.
    """

    name: str
    sent: float = 1
    answered: float = 1
    sent_after_s: float = 0
    answered_after_s: float = 0
    is_silent: bool = False

    def __str__(self) -> str:
        return self.name


TCP_FAULTS = (
    TcpFault("reset", sent=0, answered=0),
    TcpFault("drop-answer", answered=0),
    TcpFault("cut-request", sent=0.5, answered=0),
    TcpFault("cut-answer", answered=0.5),
    TcpFault("late-request", answered=0, sent_after_s=1.0),
    TcpFault("late-answer", answered_after_s=0.5),
    TcpFault("silent", sent=0, answered=0, is_silent=True),
)


class LossyTcp:
    """A proxy for one server, on a port of its own.

    Args:
        host: The server's.
        port: The server's.
    """

    def __init__(self, host: str, port: int) -> None:
        self.server_address = (host, port)
        self.weather: Weather[TcpFault] | None = None
        self.is_over = threading.Event()
        self._server = _Server(self)

    @property
    def port(self) -> int:
        """Where clients connect, on 127.0.0.1."""
        return int(self._server.server_address[1])

    def disturb(self, weather: Weather[TcpFault] | None) -> None:
        """Let it rain from now on; None for fair weather."""
        self.weather = weather

    def settle(self) -> None:
        """Fair weather, and wait until everything that is late has arrived."""
        self.weather = None
        _CLOCK.sleep(2 * max(fault.sent_after_s for fault in TCP_FAULTS))

    def __enter__(self) -> LossyTcp:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.is_over.set()
        self._server.shutdown()
        self._server.server_close()


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 128

    def __init__(self, proxy: LossyTcp) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.proxy = proxy

    def handle_error(self, request: object, client_address: object) -> None:
        """A peer that went away is what these tests are about."""


class _Handler(socketserver.BaseRequestHandler):
    server: _Server

    def handle(self) -> None:
        self.answer_fault: TcpFault | None = None
        proxy = self.server.proxy
        with socket.create_connection(proxy.server_address, _PATIENCE_S) as self.upstream:
            self.upstream.settimeout(None)
            answers = threading.Thread(target=self._answers, daemon=True)
            answers.start()
            with contextlib.suppress(OSError):
                while message := self.request.recv(_CHUNK):
                    fault = proxy.weather.draw() if proxy.weather is not None else None
                    if fault is None:
                        self.upstream.sendall(message)
                    elif not self._send(message, fault):
                        break
            self._end(self.upstream)
            answers.join()

    def _send(self, message: bytes, fault: TcpFault) -> bool:
        """Whether the connection goes on."""
        if fault.is_silent:
            self.server.proxy.is_over.wait(_SILENCE_S)
        elif fault.sent_after_s:
            self._reset(self.request)
            _CLOCK.sleep(fault.sent_after_s)
            self.upstream.sendall(message)
            _CLOCK.sleep(0.2)  # what is answered is read by nobody
        elif fault.sent < 1:
            self.upstream.sendall(message[: int(len(message) * fault.sent)])
        else:
            self.answer_fault = fault
            self.upstream.sendall(message)
            return True
        self._reset(self.request)
        return False

    def _answers(self) -> None:
        with contextlib.suppress(OSError):
            while answer := self.upstream.recv(_CHUNK):
                fault, self.answer_fault = self.answer_fault, None
                if fault is not None and fault.answered_after_s:
                    _CLOCK.sleep(fault.answered_after_s)
                elif fault is not None:
                    self.request.sendall(answer[: int(len(answer) * fault.answered)])
                    self._end(self.upstream)
                    break
                self.request.sendall(answer)
        self._end(self.request)

    @staticmethod
    def _reset(connection: socket.socket) -> None:
        with contextlib.suppress(OSError):
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.close()

    @staticmethod
    def _end(connection: socket.socket) -> None:
        with contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)
