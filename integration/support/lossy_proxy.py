"""An HTTP proxy between a client and an emulator that loses, delays, doubles and cuts messages.

Requests are passed on byte for byte, `Host` included, so that their signatures stay right; all but
`Expect: 100-continue`, which is answered here. A test plans what happens to the n-th request that a
rule takes; all others pass untouched.

    with LossyProxy("http://127.0.0.1:4566") as proxy:
        plan = proxy.plan(lambda request: request.method == "PUT", DROP_ANSWER)
        ...                       # the client at work, with `proxy.endpoint` for its server
        assert plan.was_met
"""

from __future__ import annotations

import contextlib
import http.client
import socket
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

from optimist.core.runtime.clock import SystemClock
from weather import Weather

__all__ = [
    "CLOSE",
    "CUT_ANSWER",
    "CUT_HEAD",
    "CUT_REQUEST",
    "DROP_ANSWER",
    "DUPLICATE",
    "HOLD_ANSWER",
    "HOLD_REQUEST",
    "LATE_ANSWER",
    "LATE_COPY",
    "LATE_REQUEST",
    "NO_ANSWER",
    "PASS",
    "RESET",
    "RESET_AFTER",
    "Fault",
    "LossyProxy",
    "Plan",
    "Request",
    "answer_after",
    "answer_instead",
]

_PATIENCE_S = 30.0
_CLOCK = SystemClock()


@dataclass(frozen=True)
class Request:
    """One request as it came: `path` with its query, percent-decoded; `body` whole."""

    method: str
    path: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    line: str

    @property
    def head(self) -> bytes:
        """The request line and the headers, as they go to the server."""
        kept = (f"{name}: {value}" for name, value in self.headers if name.lower() != "expect")
        return "\r\n".join((self.line, *kept, "", "")).encode("latin-1")


@dataclass(frozen=True)
class Fault:
    """What happens to one request.

    Attributes:
        name: For the names of tests.
        sent: How often the server gets the request.
        is_request_cut: Whether it gets the first half only.
        status: Answered in place of the server; None hands on the server's own (last) answer.
        answered: How much of the answer's body the client gets: 1 all, 0.5 half, 0 no answer.
        is_head_cut: Whether it gets a part of the answer's headers, and nothing after it.
        sent_after_s: The client is hung up on, and the server gets the request so much later.
        copied_after_s: The server gets the request once more, so much later.
        answered_after_s: The client waits so much longer for the answer.
        is_reset: Whether the connection ends with a reset.
        held: Waits for `Plan.release`: `""` nothing, `"request"` before the server gets it,
            `"answer"` after.
    """

    name: str
    sent: int = 1
    is_request_cut: bool = False
    status: int | None = None
    answered: float = 1
    is_head_cut: bool = False
    sent_after_s: float = 0
    copied_after_s: float = 0
    answered_after_s: float = 0
    is_reset: bool = False
    held: str = ""

    def __str__(self) -> str:
        return self.name


PASS = Fault("pass")
DROP_ANSWER = Fault("drop-answer", answered=0)
CLOSE = Fault("close-before-forwarding", sent=0, answered=0)
HOLD_REQUEST = Fault("hold-request", answered=0, held="request")
HOLD_ANSWER = Fault("hold-answer", answered=0, held="answer")
DUPLICATE = Fault("duplicate", sent=2)
CUT_REQUEST = Fault("cut-request", is_request_cut=True, answered=0)
CUT_ANSWER = Fault("cut-answer", answered=0.5)
CUT_HEAD = Fault("cut-head", is_head_cut=True)
RESET = Fault("reset", sent=0, answered=0, is_reset=True)
RESET_AFTER = Fault("reset-after", answered=0, is_reset=True)
LATE_REQUEST = Fault("late-request", sent=0, answered=0, sent_after_s=1.5)
LATE_COPY = Fault("late-copy", copied_after_s=0.7)
LATE_ANSWER = Fault("late-answer", answered_after_s=0.5)
NO_ANSWER = Fault("no-answer", answered=0, answered_after_s=3.0)


def answer_instead(status: int) -> Fault:
    """The server never sees the request; the client gets this status."""
    return Fault(f"{status}-instead", sent=0, status=status)


def answer_after(status: int) -> Fault:
    """The server does the work; the client gets this status."""
    return Fault(f"{status}-after", status=status)


class Plan:
    """A fault that waits for its request.

    Attributes:
        was_met: Whether the request came.
    """

    def __init__(
        self,
        rule: Callable[[Request], bool],
        fault: Fault,
        numbers: range,
        before: Callable[[], None] | None,
    ) -> None:
        self.fault = fault
        self.before = before
        self.was_met = False
        self._rule = rule
        self._numbers = numbers
        self._seen = 0
        self._open = threading.Event()
        self._over = threading.Event()

    def release(self) -> None:
        """Let a held request go on, and wait until it is over."""
        self._open.set()
        assert not self.was_met or self._over.wait(_PATIENCE_S), "the held request did not end"

    def takes(self, request: Request) -> bool:
        """Count the request; whether it is the one. The proxy's to call, one at a time."""
        if not self._rule(request):
            return False
        self._seen += 1
        if self._seen not in self._numbers:
            return False
        self.was_met = True
        return True

    def wait_for_release(self) -> None:
        assert self._open.wait(_PATIENCE_S), "nobody released the held request"

    def end(self) -> None:
        self._over.set()


@dataclass(frozen=True)
class _Answer:
    status: int
    reason: str
    headers: tuple[tuple[str, str], ...]
    body: bytes


ErrorAnswer = Callable[[int], tuple[dict[str, str], bytes]]


def plain_error(status: int) -> tuple[dict[str, str], bytes]:
    """What a load balancer says: headers and a body that no SDK knows."""
    return {"Content-Type": "text/html"}, f"<html>{status}</html>".encode()


class LossyProxy:
    """A proxy for one server, on a port of its own.

    Args:
        target: The server's URL; its path becomes the end of `endpoint`.
        error_answer: Headers and body of the answers that the proxy itself gives, for a status.
    """

    def __init__(self, target: str, *, error_answer: ErrorAnswer = plain_error) -> None:
        url = urlsplit(target)
        assert url.hostname is not None
        assert url.port is not None
        self._server_address = (url.hostname, url.port)
        self._path = url.path
        self._error_answer = error_answer
        self._lock = threading.Lock()
        self._plans: list[Plan] = []
        self._requests: list[Request] = []
        self._weather: Weather[Fault] | None = None
        self._late: list[threading.Thread] = []
        self._server = _Server(self)

    @property
    def endpoint(self) -> str:
        """The URL that clients get in place of the server's."""
        return f"http://127.0.0.1:{self._server.server_address[1]}{self._path}"

    @property
    def requests(self) -> tuple[Request, ...]:
        """Every request so far, in order of arrival."""
        with self._lock:
            return tuple(self._requests)

    def plan(
        self,
        rule: Callable[[Request], bool],
        fault: Fault,
        *,
        numbers: range = range(1, 2),
        before: Callable[[], None] | None = None,
    ) -> Plan:
        """Have the fault happen to the requests that the rule takes.

        A request goes to the first plan that takes it, and later ones do not count it.

        Args:
            rule: Which requests count.
            fault: What happens.
            numbers: Which of those counted, from 1.
            before: Called when such a request has come, before anything else happens to it.
        """
        planned = Plan(rule, fault, numbers, before)
        with self._lock:
            self._plans.append(planned)
        return planned

    def heal(self) -> None:
        """Forget all plans, release what is held, and wait for it."""
        with self._lock:
            plans, self._plans = self._plans, []
        for plan in plans:
            plan.release()

    def disturb(self, weather: Weather[Fault] | None) -> None:
        """Let it rain from now on upon what no plan takes; None for fair weather."""
        with self._lock:
            self._weather = weather

    def settle(self) -> None:
        """Fair weather, and wait until every request that is late has arrived."""
        self.disturb(None)
        with self._lock:
            late, self._late = self._late, []
        for thread in late:
            thread.join(_PATIENCE_S)

    def forget_requests(self) -> None:
        """Count from here."""
        with self._lock:
            self._requests.clear()

    def send_again(self, request: Request) -> None:
        """Let the server have a request once more, as if it had been held up on the way."""
        with contextlib.suppress(ConnectionError):  # a server may refuse before it has heard all
            self._ask(request)

    def __enter__(self) -> LossyProxy:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.heal()
        self._server.shutdown()
        self._server.server_close()

    # For the handler

    def pass_on(self, request: Request) -> tuple[_Answer | None, Fault]:
        """The answer to give, and what is to happen to it."""
        with self._lock:
            self._requests.append(request)
            plan = next((plan for plan in self._plans if plan.takes(request)), None)
            weather = self._weather
        fault = weather.draw() if plan is None and weather is not None else None
        if fault is not None:
            plan = Plan(lambda _: True, fault, range(1, 2), None)
        if plan is None:
            return self._ask(request), PASS
        try:
            return self._with_fault(request, plan), plan.fault
        finally:
            plan.end()

    def _with_fault(self, request: Request, plan: Plan) -> _Answer | None:
        fault = plan.fault
        if plan.before is not None:
            plan.before()
        if fault.held == "request":
            plan.wait_for_release()
        answer = None
        for _ in range(fault.sent):
            answer = self._ask(request, is_cut=fault.is_request_cut)
        if fault.held == "answer":
            plan.wait_for_release()
        self._delay(request, fault)
        if fault.status is None:
            return answer
        headers, body = self._error_answer(fault.status)
        return _Answer(fault.status, http.client.responses[fault.status], (*headers.items(),), body)

    def _delay(self, request: Request, fault: Fault) -> None:
        for after_s in filter(None, (fault.sent_after_s, fault.copied_after_s)):
            late = threading.Thread(target=self._ask_later, args=(request, after_s), daemon=True)
            late.start()
            with self._lock:
                self._late.append(late)
        if fault.answered_after_s:
            _CLOCK.sleep(fault.answered_after_s)

    def _ask_later(self, request: Request, after_s: float) -> None:
        _CLOCK.sleep(after_s)
        self._ask(request)

    def _ask(self, request: Request, *, is_cut: bool = False) -> _Answer | None:
        """The server's answer; None where it got half a request and so gives none."""
        head = request.head
        with socket.create_connection(self._server_address, _PATIENCE_S) as connection:
            if is_cut:
                length = len(head) + len(request.body) // 2 if request.body else len(head) // 2
                connection.sendall((head + request.body)[:length])
                connection.shutdown(socket.SHUT_WR)
                while connection.recv(65536):  # the server is done with it when it closes
                    pass
                return None
            connection.sendall(head + request.body)
            with http.client.HTTPResponse(connection, method=request.method) as response:
                response.begin()
                headers = tuple(response.getheaders())
                return _Answer(response.status, response.reason, headers, response.read())


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, proxy: LossyProxy) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.proxy = proxy

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that went away is what these tests are about."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def log_message(self, *_: object) -> None:
        pass

    def handle_any(self) -> None:
        request = Request(
            self.command,
            unquote(self.path),
            tuple(self.headers.items()),
            self._body(),
            self.requestline,
        )
        answer, fault = self.server.proxy.pass_on(request)
        if answer is None or fault.answered == 0:
            self._hang_up(is_reset=fault.is_reset)
            return
        self._give(answer, fault)

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = do_PATCH = handle_any  # noqa: N815 - so named

    def _body(self) -> bytes:
        assert "chunked" not in self.headers.get("Transfer-Encoding", ""), "send a length"
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def _give(self, answer: _Answer, fault: Fault) -> None:
        head = self._head_of(answer)
        if fault.is_head_cut:
            # Right behind a line, where what is missing can't be seen.
            lines = head.splitlines(keepends=True)
            self.wfile.write(b"".join(lines[: 1 + len(lines) // 4]))
            self._hang_up()
            return
        self.wfile.write(head)
        if self.command != "HEAD":
            self.wfile.write(answer.body[: int(len(answer.body) * fault.answered)])
            if fault.answered < 1:
                self._hang_up()

    def _head_of(self, answer: _Answer) -> bytes:
        lines = [f"HTTP/1.1 {answer.status} {answer.reason}"]
        length = str(len(answer.body))
        for name, value in answer.headers:
            if name.lower() == "content-length" and self.command == "HEAD":
                length = value
            elif name.lower() not in ("content-length", "transfer-encoding", "connection"):
                lines.append(f"{name}: {value}")
        if answer.status not in (204, 304):
            lines.append(f"Content-Length: {length}")
        return "\r\n".join((*lines, "", "")).encode("latin-1")

    def _hang_up(self, *, is_reset: bool = False) -> None:
        self.close_connection = True
        self.wfile.flush()
        if is_reset:
            linger = struct.pack("ii", 1, 0)
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            self.connection.close()
            return
        # Closed with a reset if need be: what matters is that no answer comes.
        self.connection.shutdown(socket.SHUT_RDWR)
