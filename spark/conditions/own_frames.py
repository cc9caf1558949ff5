"""`table.delete(table.toDF()["id"] == 3)`: columns of a table's own frame in its own commands.

Spark binds such a column to that one frame, but a command reads the table's newest version by
another. Delta has one frame per `DeltaTable`; here the frames that were handed out are remembered,
and their columns are taken by name. Columns of other frames stay as they are, and Spark refuses
them.
"""

from __future__ import annotations

import copy
from collections import deque
from typing import Any

from pyspark.sql import Column, DataFrame

from optimist.spark.conditions.attributes import attributes_of, by_name
from optimist.spark.session.pyspark_versions import is_connect

__all__ = ["OwnFrames"]

_MAX_REMEMBERED = 64


class OwnFrames:
    """The frames that one `DeltaTable` has handed out; of very many, only the newest."""

    def __init__(self) -> None:
        self._marks: deque[Any] = deque(maxlen=_MAX_REMEMBERED)

    def remember(self, frame: DataFrame) -> DataFrame:
        """Remember a frame, and return it."""
        plan: Any = frame
        connected = is_connect(frame.sparkSession)
        self._marks.append(plan._plan._plan_id if connected else attributes_of(frame))
        return frame

    def by_name(self, spark: Any, value: Column | str) -> Column | str:
        """A condition or a value, with columns of these frames taken by their names."""
        if isinstance(value, str) or not self._marks:
            return value
        marks = tuple(self._marks)
        if is_connect(spark):
            sent: Column = _unbound(value, frozenset(marks))
            return sent
        return by_name(spark, value, marks)


def _unbound(part: Any, plan_ids: frozenset[int]) -> Any:
    """A copy of what a Connect client sends, without the ids of those plans."""
    if isinstance(part, (list, tuple)):
        return type(part)(_unbound(item, plan_ids) for item in part)
    if not hasattr(type(part), "to_plan"):
        return part
    made = copy.copy(part)
    for name, value in vars(part).items():
        setattr(made, name, _unbound(value, plan_ids))
    if vars(made).get("_plan_id") in plan_ids:
        made._plan_id = None
    return made
