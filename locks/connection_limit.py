"""Ends the wait for a database server that has gone silent.

Drivers limit the time to connect, but none limits the time of a statement: if a server has the
request and does not answer, they wait until the kernel gives the connection up, hours later.
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
    """Shut a connection's socket down if the body takes longer; its driver then raises.

    Args:
        limit_s: How long the body may take.
        connection: A driver's connection; one without a socket, such as SQLite's, is left alone.
    """
    fileno = getattr(connection, "fileno", None)
    if fileno is None:
        yield
        return
    # A descriptor of our own: the driver may close its own, and the number be given to another
    # file, before the timer fires.
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
