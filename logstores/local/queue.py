"""Turns of one log's writers across a machine's processes, by `flock` on its directory.

Turns save work and decide nothing: the link still decides who wins. So a writer that can't get the
lock continues without it: on a file system that can't lock directories, after too long a wait (the
holder may be stopped), or if the directory can't be opened.

The lock is on the open directory, so it leaves no file in the table or elsewhere, and the kernel
frees it when its holder dies. Linux gives it to the writer that has waited longest. A thread waits
for it in the kernel without polling, so that the caller can be interrupted and can stop waiting.
"""

from __future__ import annotations

import fcntl
import logging
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from optimist.core.forking import closed_in_child

__all__ = ["turn_at"]

_LOG = logging.getLogger(__name__)


@contextmanager
def turn_at(directory: str, *, timeout_s: float) -> Iterator[None]:
    """Run the body when it is our turn at a directory, or without a turn after `timeout_s`."""
    try:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        yield
        return
    with closed_in_child(descriptor):
        turn = _Turn(descriptor)
        try:
            if not turn.wait(timeout_s):
                _LOG.warning(
                    "Another writer has held its turn at %s for %.0f s; this one no longer waits.",
                    directory,
                    timeout_s,
                )
            yield
        finally:
            turn.end()


class _Turn:
    """One open directory, and the thread that waits for its lock if needed."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._guard = threading.Lock()  # only for this call and its thread
        self._is_settled = threading.Event()
        self._is_over = False

    def wait(self, timeout_s: float) -> bool:
        """Wait for the lock, and return False after the time-out, but True without locks."""
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            threading.Thread(target=self._wait_in_kernel, daemon=True).start()
            return self._is_settled.wait(timeout_s)
        except OSError:
            pass  # this file system can't lock directories
        self._is_settled.set()
        return True

    def end(self) -> None:
        """Release the lock, also in a thread that is still waiting for it."""
        with self._guard:
            self._is_over = True
            if self._is_settled.is_set():
                self._release_and_close()

    def _wait_in_kernel(self) -> None:
        with suppress(OSError):
            fcntl.flock(self._descriptor, fcntl.LOCK_EX)
        with self._guard:
            self._is_settled.set()
            if self._is_over:
                self._release_and_close()

    def _release_and_close(self) -> None:
        # Closing is not enough: a child that was just forked may not have closed its copy yet.
        with suppress(OSError):
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)
        os.close(self._descriptor)
