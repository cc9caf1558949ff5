"""A service over HTTP in this process, whose answers a test can plan.

`ScriptedService` receives, records and answers; a subclass says what the service does.
"""

import socket
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

LOST = "lost"


@dataclass(frozen=True)
class Request:
    """What arrived.

    `target` is path and query as they were sent; names of `headers` are found in any case.
    """

    method: str
    target: str
    headers: Message
    body: bytes

    @property
    def path(self):
        return unquote(urlsplit(self.target).path)

    @property
    def query(self):
        return {name: each[0] for name, each in parse_qs(urlsplit(self.target).query).items()}

    @property
    def every_query(self):
        """The same with the names that have no value."""
        found = parse_qs(urlsplit(self.target).query, keep_blank_values=True)
        return {name: each[0] for name, each in found.items()}


@dataclass(frozen=True)
class Reply:
    """What is answered."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def wire(self):
        """The bytes that are sent."""
        named = {**self.headers, "Content-Length": str(len(self.body))}
        lines = "".join(f"{name}: {value}\r\n" for name, value in named.items())
        return f"HTTP/1.1 {self.status} Whatever\r\n{lines}\r\n".encode("latin-1") + self.body


@dataclass(frozen=True)
class Bytes:
    """What is sent in place of a reply, before the connection is closed."""

    sent: bytes
    is_closed: bool = True


class ScriptedService(ThreadingHTTPServer):
    """Answers one request at a time.

    `requests` are those that came. `script` holds what the next ones get: a status and an error
    code in place of the work, `LOST` for an answer that is dropped once the work is done, or None
    for the answer as it is.
    """

    daemon_threads = True
    request_queue_size = 128

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.lock = threading.Lock()
        self.script = []
        self.requests = []

    @property
    def endpoint(self):
        return f"http://127.0.0.1:{self.server_address[1]}"

    def work(self, request):
        """Carry out a request; returns the reply."""
        raise NotImplementedError

    def refusal(self, status, code):
        """The reply that refuses a request for the reason of this code."""
        raise NotImplementedError

    def aside(self, request):
        """The reply to a request that is not the test's, and is neither recorded nor planned."""

    def reply(self, request):
        """The reply to a request, or None if it is to be lost."""
        aside = self.aside(request)
        if aside is not None:
            return aside
        with self.lock:
            self.requests.append(request)
            planned = self.script.pop(0) if self.script else None
            if planned not in (None, LOST):
                return self.refusal(*planned)
            reply = self.work(request)
        return None if planned == LOST else reply

    def handle_error(self, request, client_address):
        """A client that went away is no failure of the test."""

    def __enter__(self):
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def handle_any(self):
        # Read before anything is answered, or the rest is taken for the next request.
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        reply = self.server.reply(Request(self.command, self.path, self.headers, body))
        if reply is None:
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True
            return
        if isinstance(reply, Bytes):
            self.wfile.write(reply.sent)
            self.close_connection = reply.is_closed
            return
        self.send_response(reply.status)
        for name, value in {**reply.headers, "Content-Length": str(len(reply.body))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(reply.body)

    do_GET = do_POST = do_PUT = do_HEAD = do_DELETE = handle_any  # noqa: N815 - looked for
