"""A limit on the wait for a database server that does not answer.

Drivers limit the time to connect, but none limits the time of a statement. If a server has the
request and does not answer, they wait until the kernel closes the connection, hours later.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["broken_off_after"]


@contextmanager
def broken_off_after(limit_s: float, connection: object) -> Iterator[None]:
    """Shut down a connection's socket if the body takes longer, so that its driver raises.

    Args:
        limit_s: The most seconds for the body.
        connection: A driver's connection; without a socket, as SQLite's, it has no limit.
    """
    fileno = getattr(connection, "fileno", None)
    if fileno is None:
        yield
        return
    # We use our own descriptor: the driver may close its own before the timer fires, and the system
    # may then give the number to another file.
    with contextlib.closing(socket.socket(fileno=os.dup(fileno()))) as held:
        timer = threading.Timer(limit_s, _shut_down, (held,))
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()


def _shut_down(held: socket.socket) -> None:
    with contextlib.suppress(OSError):
        held.shutdown(socket.SHUT_RDWR)
