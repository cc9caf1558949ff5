"""Rows that a command reads more than once: computed once, and kept on the executors.

Spark's local checkpoints store them in memory, and on the executors' disks if memory is full. If a
block is lost, the command fails; computing it again might give other rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyspark.sql import DataFrame

from optimist.spark.session.jvm import analyzed_plan, iterate
from optimist.spark.session.pyspark_versions import is_connect

__all__ = ["stored_rows"]


@contextmanager
def stored_rows(frame: DataFrame, *, at_once: bool = True) -> Iterator[DataFrame]:
    """Store the rows of a frame unchanged, and release them at the end.

    On Spark Connect the server releases them once the client has dropped the frame.

    Args:
        frame: The rows.
        at_once: Store them now; otherwise the first query over all rows stores them.
    """
    stored: Any = frame.localCheckpoint(eager=at_once)
    try:
        yield stored
    finally:
        if not is_connect(frame.sparkSession):
            for leaf in iterate(analyzed_plan(stored).collectLeaves()):
                leaf.rdd().unpersist(False)
