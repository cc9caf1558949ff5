"""Rows that a command reads more than once: computed once, and kept on the executors.

They are stored by Spark's local checkpoints, in memory as far as there is room and on the
executors' disks beyond. A block that is lost ends the command instead of being computed again,
perhaps with other rows.
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
    """The rows of a frame, which stay the same; what is stored is given back at the end.

    In Spark Connect the server gives it back once the client has let go of the frame.

    Args:
        frame: The rows.
        at_once: Store them now; otherwise the first query over all of them does.
    """
    stored: Any = frame.localCheckpoint(eager=at_once)
    try:
        yield stored
    finally:
        if not is_connect(frame.sparkSession):
            for leaf in iterate(analyzed_plan(stored).collectLeaves()):
                leaf.rdd().unpersist(False)
