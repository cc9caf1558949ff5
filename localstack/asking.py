"""Asking a server of 127.0.0.1 whether it answers."""

from __future__ import annotations

import http.client
import socket
from collections.abc import Mapping

__all__ = ["http_status", "talk"]

_LIMIT_S = 2.0


def http_status(
    port: int, path: str, *, body: str | None = None, headers: Mapping[str, str] | None = None
) -> int:
    """Return the status of a GET, or of a POST if a body is given; 0 if nobody answers."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_LIMIT_S)
    try:
        method = "GET" if body is None else "POST"
        connection.request(method, path, body=body, headers=dict(headers or {}))
        return connection.getresponse().status
    except (OSError, http.client.HTTPException):
        return 0
    finally:
        connection.close()


def talk(port: int, sent: bytes = b"") -> bytes | None:
    """Return the first answer: b"" after a bare connect, None if nobody listens or answers."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=_LIMIT_S) as connection:
            connection.sendall(sent)
            return connection.recv(64) if sent else b""
    except OSError:
        return None
