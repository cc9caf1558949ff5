"""The ownership and the description of Spark jobs, also on a session's clone or in other threads.

`interruptAll`, `interruptTag` and `cancelJobGroup` find the jobs to stop by properties of the
thread that started them, and by the tag of the plan's session. But a clone has its own tag, and a
new Python thread has no properties.

*Assumes* one JVM thread per Python thread (`PYSPARK_PIN_THREAD`, PySpark's default). Without that,
properties would stay in threads that later run other jobs, so nothing is done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from py4j.clientserver import ClientServer
from pyspark.sql import SparkSession
from pyspark.util import inheritable_thread_target

from optimist.core.secrets import without_secrets
from optimist.spark.session.jvm import iterate
from optimist.spark.session.pyspark_versions import is_connect

__all__ = ["described", "in_scope_of_caller", "stopped_with"]

_DESCRIPTION = "spark.job.description"

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


@contextmanager
def stopped_with(spark: SparkSession) -> Iterator[None]:
    """Stop the jobs of a session's clones, too, when the session's own are stopped."""
    with _adding_tags(spark, _tags(spark) if _is_pinned(spark) else ()):
        yield


@contextmanager
def described(spark: SparkSession, command: str, path: str) -> Iterator[None]:
    """Let Spark's UI say which command the jobs of the block serve, unless the caller says it.

    Args:
        spark: The session.
        command: The name of the command.
        path: The path of the table, or of a directory in it.
    """
    context = _context(spark) if _is_pinned(spark) else None
    if context is None or context.getLocalProperty(_DESCRIPTION):
        yield
        return
    context.setLocalProperty(_DESCRIPTION, f"{command}: {without_secrets(path)}")
    try:
        yield
    finally:
        context.setLocalProperty(_DESCRIPTION, None)


def in_scope_of_caller(
    spark: SparkSession, work: Callable[[_Item], _Result]
) -> Callable[[_Item], _Result]:
    """Wrap a function for another thread, so that its jobs belong to this thread's caller.

    The jobs get this thread's job group, tags, scheduler pool and description.

    Args:
        spark: The session.
        work: The function that the other thread is to call.
    """
    if is_connect(spark):
        inherited: Callable[[_Item], _Result] = inheritable_thread_target(spark)(work)
        return inherited
    if not _is_pinned(spark):
        return work
    context = _context(spark)
    properties, tags = context.getLocalProperties().clone(), _tags(spark)

    def within(item: _Item) -> _Result:
        context.setLocalProperties(properties.clone())
        with _adding_tags(spark, tags):
            return work(item)

    return within


@contextmanager
def _adding_tags(spark: SparkSession, tags: tuple[str, ...]) -> Iterator[None]:
    """Add tags to the jobs of this thread while the block runs."""
    if not tags:
        yield
        return
    context = _context(spark)
    before = set(iterate(context.getJobTags()))
    added = [tag for tag in tags if tag not in before]
    for tag in added:
        context.addJobTag(tag)
    try:
        yield
    finally:
        for tag in added:
            context.removeJobTag(tag)


def _tags(spark: SparkSession) -> tuple[str, ...]:
    """Return the tags that Spark gives the jobs of a session that this thread starts."""
    session: Any = spark._jsparkSession
    given = session.managedJobTags().get().values()
    return (str(session.sessionJobTag()), *map(str, iterate(given)))


def _context(spark: SparkSession) -> Any:
    return spark.sparkContext._jsc.sc()


def _is_pinned(spark: SparkSession) -> bool:
    return not is_connect(spark) and isinstance(spark.sparkContext._gateway, ClientServer)
