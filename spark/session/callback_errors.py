"""Errors raised while Spark calls back into Python keep their class.

py4j turns what a callback raises into text inside a Java exception. The callback keeps the original
under a ticket that is part of that text; our entry points look for the ticket and raise the
original.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager

from optimist.core.forking import ForkSafeLock
from optimist.spark.session.jvm import error_texts
from optimist.spark.session.task_errors import error_of_task

__all__ = ["callback", "original_errors"]

_MAX_KEPT = 100  # nobody asks for errors of queries that users run themselves; drop the oldest
_TICKET = re.compile(r"optimist-callback-error-(\d+)")
_LOCK = ForkSafeLock()
_KEPT: OrderedDict[int, BaseException] = OrderedDict()
_LAST_TICKET = 0


@contextmanager
def callback() -> Iterator[None]:
    """Wrap the body of a method that the JVM calls."""
    try:
        yield
    except BaseException as error:
        raise RuntimeError(f"{error} (optimist-callback-error-{_keep(error)})") from error


@contextmanager
def original_errors() -> Iterator[None]:
    """Wrap an entry point that runs Spark: errors of callbacks come out as they were raised."""
    try:
        yield
    except Exception as error:
        original = _find(str(error)) or error_of_task(error_texts(error))
        if original is None:
            raise
        raise original from None


def _keep(error: BaseException) -> int:
    global _LAST_TICKET
    with _LOCK:
        _LAST_TICKET += 1
        _KEPT[_LAST_TICKET] = error
        while len(_KEPT) > _MAX_KEPT:
            _KEPT.popitem(last=False)
        return _LAST_TICKET


def _find(text: str) -> BaseException | None:
    match = _TICKET.search(text)
    with _LOCK:
        return _KEPT.pop(int(match.group(1)), None) if match else None
