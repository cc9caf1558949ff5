"""Errors that are raised while Spark calls back into Python, and that keep their class.

py4j turns an error of a callback into text inside a Java exception. The callback keeps the original
error under a ticket, which is part of that text. Our entry points look for the ticket and raise the
original. They also turn our errors into errors of PySpark (`spark_errors`).
"""

from __future__ import annotations

import re
import traceback
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from py4j import protocol
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.errors.exceptions.captured import install_exception_handler

from optimist.core.errors import OptimistError, SchemaError, StorageError
from optimist.core.errors.foreign_text import shown
from optimist.core.forking import ForkSafeLock
from optimist.core.runtime.begun_changes import num_changes_begun
from optimist.spark.session.jvm import error_texts
from optimist.spark.session.lost_server import is_of_lost_server
from optimist.spark.session.spark_errors import as_spark_error, place_in_sql
from optimist.spark.session.task_errors import error_of_task

__all__ = [
    "callback",
    "current_origin",
    "original_errors",
    "raise_original_errors",
    "told_as_write",
]

_MAX_KEPT = 100  # errors of users' own queries are never fetched: the oldest go
_MARK = "optimist_before"
_UNDECLARED = "java.lang.reflect.UndeclaredThrowableException"
_OVERFLOW = re.compile(
    r'CAST_OVERFLOW_IN_TABLE_INSERT\][^"]*"(?P<source>[^"]+)"[^"]*"(?P<target>[^"]+)"[^`]*'
    r"(?P<column>`.*`) due to"
)
_TICKET = re.compile(r"optimist-callback-error-(\d+)")
_LOCK = ForkSafeLock()
_BEFORE: ContextVar[int | None] = ContextVar("_BEFORE", default=None)
"""The number of changes begun before our outermost call, or None outside of calls."""
_KEPT: OrderedDict[int, BaseException] = OrderedDict()
_LAST_TICKET = 0


@contextmanager
def callback(origin: Callable[[], Any] | None = None) -> Iterator[None]:
    """Wrap the body of a method that the JVM calls.

    Args:
        origin: Returns the `Origin` in the SQL, a Java object, to which our errors point.
    """
    try:
        yield
    except BaseException as error:
        kept = error
        if isinstance(error, OptimistError):
            kept = as_spark_error(error, None if origin is None else place_in_sql(origin()))
        raise RuntimeError(
            f"{kept} (optimist-callback-error-{_keep_under_ticket(kept)})"
        ) from error


def current_origin(context: SparkContext) -> Any:
    """Return the `Origin` of what Spark analyses now in this thread, for `callback`."""
    jvm: Any = context._jvm
    return jvm.org.apache.spark.sql.catalyst.trees.CurrentOrigin.get()


@contextmanager
def original_errors(*, is_own_call: bool = True) -> Iterator[None]:
    """Wrap an entry point: raise errors of callbacks as they were, and ours as Spark's.

    Args:
        is_own_call: It is one of our calls, which commit as their last step. If such a call ends
            because Spark's server is gone, nothing was written, unless the outermost call has begun
            to change a table before.
    """
    outermost = _BEFORE.set(num_changes_begun()) if _BEFORE.get() is None else None
    try:
        yield
    except OptimistError as error:
        raise as_spark_error(error) from error.__cause__
    except Exception as error:
        original = _find_original(str(error)) or error_of_task(error_texts(error))
        if original is None and is_own_call and is_of_lost_server(error):
            has_begun = num_changes_begun() > (_BEFORE.get() or 0)
            original = _lost_server_midway() if has_begun else _lost_server()
        if original is None:
            raise
        raise _as_raised(original) from None
    finally:
        if outermost is not None:
            _BEFORE.reset(outermost)


def _lost_server() -> StorageError:
    return StorageError(
        "The Spark Connect server does not answer. Nothing was written: the client commits as "
        "the last step, and had not started to. Start the server, make a new session, and run "
        "it again. Its retry policies say how long the client waits (docs/connect.md).",
        kind="OPTIMIST_SPARK_SERVER_LOST",
        retryable=True,
    )


def _lost_server_midway() -> StorageError:
    return StorageError(
        "The Spark Connect server does not answer any more, and the call had begun to change the "
        "table: what it has committed is in the table, and files that it has deleted are gone. "
        "Start the server, make a new session, look at the table's history, and run again what is "
        "missing there.",
        kind="OPTIMIST_SPARK_SERVER_LOST_MIDWAY",
    )


@contextmanager
def told_as_write() -> Iterator[None]:
    """Wrap UPDATE and MERGE: report a value that does not fit as Delta does, not as INSERT.

    Raises:
        SchemaError: A value does not fit its column (kind `DELTA_CAST_OVERFLOW_IN_TABLE_WRITE`).
    """
    try:
        yield
    except (PySparkException, protocol.Py4JJavaError) as error:
        found = next(filter(None, map(_OVERFLOW.search, error_texts(error))), None)
        if found is None:
            raise
        raise _overflow_in_write(**found.groupdict()) from None


def raise_original_errors() -> None:
    """Restore the original errors in all calls into the JVM, also in users' own calls.

    It does for them what `original_errors` does for our calls. Each new session of PySpark wraps
    py4j's function, so our function goes inside of that wrapper. Calling it again changes nothing.
    """
    before: Any = protocol.get_return_value
    if getattr(before, _MARK, None) is not None:
        return

    def get_return_value(*arguments: Any, **named: Any) -> Any:
        try:
            return before(*arguments, **named)
        except protocol.Py4JJavaError as error:
            # The text costs round trips, and most of the JVM's errors are not ours.
            original = _find_original(str(error)) if _KEPT else None
            if original is not None:
                raise _as_raised(original) from None
            error.java_exception = _unpack_undeclared(error.java_exception)
            raise

    setattr(get_return_value, _MARK, before)
    protocol.get_return_value = get_return_value
    install_exception_handler()


def _unpack_undeclared(thrown: Any) -> Any:
    """Unpack an error that Java wrapped because our parser, a proxy, does not declare it."""
    is_packed = str(thrown.getClass().getName()) == _UNDECLARED
    return thrown.getCause() if is_packed else thrown


def _as_raised(original: BaseException) -> BaseException:
    return as_spark_error(original) if isinstance(original, OptimistError) else original


def _keep_under_ticket(error: BaseException) -> int:
    global _LAST_TICKET
    _forget_locals(error)
    with _LOCK:
        _LAST_TICKET += 1
        _KEPT[_LAST_TICKET] = error
        while len(_KEPT) > _MAX_KEPT:
            _KEPT.popitem(last=False)
        return _LAST_TICKET


def _forget_locals(error: BaseException) -> None:
    """Keep the tracebacks' lines, but drop the tables and frames of their functions."""
    waiting: list[BaseException | None] = [error]
    seen: set[int] = set()
    while waiting:
        item = waiting.pop()
        if item is not None and id(item) not in seen:
            seen.add(id(item))
            traceback.clear_frames(item.__traceback__)
            waiting += [item.__cause__, item.__context__]


def _find_original(text: str) -> BaseException | None:
    match = _TICKET.search(text)
    with _LOCK:
        return _KEPT.pop(int(match.group(1)), None) if match else None


def _overflow_in_write(column: str, source: str, target: str) -> SchemaError:
    return SchemaError(
        f"Failed to write a value of {shown(source)} type into the {shown(target)} type column "
        f"{shown(column)} due to an overflow. Nothing was written. Use try_cast to get null for "
        "such a value, or give the column a wider type.",
        kind="DELTA_CAST_OVERFLOW_IN_TABLE_WRITE",
        columnName=column,
        sourceType=source,
        targetType=target,
    )
