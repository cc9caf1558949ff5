"""Children forked at any moment while threads of the parent work.

In the child, a lock that another thread held at the fork stays locked, a connection is shared, and
a pool has lost its threads. A plug-in that does not renew these waits forever, or reads answers for
the parent.
"""

from __future__ import annotations

import faulthandler
import logging
import os
import select
import signal
import threading
import traceback
import warnings
from collections.abc import Callable
from typing import NoReturn

__all__ = ["run_in_forked_children"]

_THREADS = 3
_TIMEOUT_S = 30
_DONE = b"done"


def run_in_forked_children(
    work: Callable[[int], object],
    *,
    meanwhile: Callable[[int], object] | None = None,
    children: int = 5,
) -> int:
    """Fork children one after another, while threads of this process work.

    Args:
        work: The work of each child, called with the child's number.
        meanwhile: The work of the threads, called again and again with a number that no other call
            gets. Without it there are no such threads.
        children: The number of children to fork.

    Returns:
        The number of calls of `meanwhile`; all have returned.

    Raises:
        AssertionError: A child raised, or did not end; the message has its stack. No child is left
            running.
    """
    # Python's own streams have locks that a child inherits, too, so nothing is logged meanwhile.
    was_disabled = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    numbers = iter(range(10**9))  # next() is one atomic step, so threads may share it
    over, errors = threading.Event(), []
    calls = [0] * _THREADS  # counted, not stored: a fast call is made millions of times

    def keep_busy(thread: int, call: Callable[[int], object]) -> None:
        try:
            while not over.is_set():
                call(next(numbers))
                calls[thread] += 1
        except BaseException as error:  # noqa: BLE001 - raised below, in the thread of the test
            errors.append(error)

    threads = [
        threading.Thread(target=keep_busy, args=(thread, meanwhile))
        for thread in range(_THREADS if meanwhile else 0)
    ]
    for thread in threads:
        thread.start()
    try:
        for child in range(children):
            _run_child(work, child)
            while threads and not errors and sum(calls) < child:
                threads[0].join(0.001)  # so that each child is forked at another moment
    finally:
        over.set()
        for thread in threads:
            thread.join()
        logging.disable(was_disabled)
    if errors:
        raise errors[0]
    return sum(calls)


def _run_child(work: Callable[[int], object], child: int) -> None:
    reading, writing = os.pipe()
    # Before the fork, so that a child shows its stack even if it hangs in the hooks of the fork.
    faulthandler.register(signal.SIGUSR1, file=writing, all_threads=True)
    with warnings.catch_warnings():
        # Newer Pythons warn about exactly what is tested here.
        warnings.simplefilter("ignore", DeprecationWarning)
        process = os.fork()
    if process == 0:
        _be_child(work, child, writing)
    faulthandler.unregister(signal.SIGUSR1)
    os.close(writing)
    try:
        output = _read_output(reading, process)
    finally:
        os.close(reading)
        _, status = os.waitpid(process, 0)
    code = os.waitstatus_to_exitcode(status)
    assert output == _DONE.decode(), f"child {child} ended with {code}:\n{output}"


def _be_child(work: Callable[[int], object], child: int, writing: int) -> NoReturn:
    # The child never leaves this function; otherwise the test's own cleanup would run twice.
    try:
        work(child)
        os.write(writing, _DONE)
    except BaseException:  # noqa: BLE001 - the parent gets it
        os.write(writing, traceback.format_exc().encode())
    finally:
        os._exit(0)


def _read_output(reading: int, process: int) -> str:
    found = b""
    for attempt in range(2):
        while select.select([reading], [], [], _TIMEOUT_S / (1 + 10 * attempt))[0]:
            piece = os.read(reading, 1 << 16)
            if not piece:
                return found.decode(errors="replace")
            found += piece
        os.kill(
            process, signal.SIGKILL if attempt else signal.SIGUSR1
        )  # the first signal asks for its stack
    return f"it hung\n{found.decode(errors='replace')}"
