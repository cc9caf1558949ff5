"""Spark jobs of a call belong to the caller, also on a clone of the session and in other threads.

Spark finds the jobs that `interruptAll`, `interruptTag` and `cancelJobGroup` stop by properties of
the thread that starts them, and adds the tag of the session that the plan belongs to. A clone has
a tag of its own, and a thread of Python's has no properties.

*Assumes* a thread of the JVM for each of Python's (`PYSPARK_PIN_THREAD`, PySpark's default).
Without that, properties would stay in threads that run others' jobs, so nothing is done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from py4j.clientserver import ClientServer
from pyspark.sql import SparkSession
from pyspark.util import inheritable_thread_target

from optimist.spark.session.jvm import iterate
from optimist.spark.session.pyspark_versions import is_connect

__all__ = ["in_scope_of_caller", "stopped_with"]

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


@contextmanager
def stopped_with(spark: SparkSession) -> Iterator[None]:
    """Have whatever stops the jobs of a session stop those that its clones start meanwhile."""
    with _tagged(spark, _tags(spark) if _is_pinned(spark) else ()):
        yield


def in_scope_of_caller(
    spark: SparkSession, work: Callable[[_Item], _Result]
) -> Callable[[_Item], _Result]:
    """What another thread is to run, with jobs that belong to what those of this thread belong to.

    That is: the job group, the tags, the scheduler's pool, the description.

    Args:
        spark: The session.
        work: The function that the other thread is to call.
    """
    if is_connect(spark):
        made: Callable[[_Item], _Result] = inheritable_thread_target(spark)(work)
        return made
    if not _is_pinned(spark):
        return work
    context = _context(spark)
    properties, tags = context.getLocalProperties().clone(), _tags(spark)

    def within(item: _Item) -> _Result:
        context.setLocalProperties(properties.clone())
        with _tagged(spark, tags):
            return work(item)

    return within


@contextmanager
def _tagged(spark: SparkSession, tags: tuple[str, ...]) -> Iterator[None]:
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
    """The tags that Spark gives the jobs of a session when this thread starts them."""
    session: Any = spark._jsparkSession
    given = session.managedJobTags().get().values()
    return (str(session.sessionJobTag()), *map(str, iterate(given)))


def _context(spark: SparkSession) -> Any:
    return spark.sparkContext._jsc.sc()


def _is_pinned(spark: SparkSession) -> bool:
    return not is_connect(spark) and isinstance(spark.sparkContext._gateway, ClientServer)
