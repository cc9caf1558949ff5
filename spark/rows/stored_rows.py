"""Rows that a command reads more than once: computed once, and kept on the executors.

Spark's local checkpoints store them in memory, and on the executors' disks if memory is full. If a
block is lost, the command fails; computing it again might give other rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from optimist.spark.session.jvm import analyzed_plan, iterate
from optimist.spark.session.lost_server import is_of_lost_server
from optimist.spark.session.pyspark_versions import is_connect

__all__ = ["stored_rows"]


@contextmanager
def stored_rows(frame: DataFrame, *, at_once: bool = True) -> Iterator[DataFrame]:
    """Store the rows of a frame unchanged, and release them at the end.

    On Spark Connect the server releases them once the client has dropped the frame. If the server
    is gone, the client does not ask for that: it would wait as long as its retry policies say.

    Args:
        frame: The rows.
        at_once: Store them now; otherwise the first query over all rows stores them.
    """
    stored = frame.localCheckpoint(eager=at_once)
    if is_connect(frame.sparkSession):
        with _stored_on_server(stored, frame.sparkSession) as own:
            yield own
        return
    try:
        yield stored
    finally:
        for leaf in iterate(analyzed_plan(stored).collectLeaves()):
            leaf.rdd().unpersist(False)


@contextmanager
def _stored_on_server(stored: Any, spark: SparkSession) -> Iterator[DataFrame]:
    """Give the stored rows as a frame of their session: PySpark gives one of the active session."""
    plan = stored._plan
    plan._spark_session = spark
    try:
        yield type(stored)(plan, spark)
    except Exception as error:
        if is_of_lost_server(error):
            plan._spark_session = None  # PySpark's clean-up asks no server then
        raise
