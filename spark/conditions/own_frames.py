"""`table.delete(table.toDF()["id"] == 3)`: columns of a table's own frame in its own commands.

Spark binds such a column to that one frame, but a command reads the table's newest version by
another frame. Delta has one frame per `DeltaTable`. Here the returned frames are remembered, and
their columns are resolved by name. Columns of other frames are not changed, and Spark refuses them.
"""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from pyspark.sql import Column, DataFrame

from optimist.spark.conditions.attributes import attributes_of, by_name
from optimist.spark.rows.row_shape import quoted
from optimist.spark.session.pyspark_versions import is_connect

__all__ = ["OwnFrames"]

_MAX_REMEMBERED = 64


class OwnFrames:
    """The frames that one `DeltaTable` has returned, up to a number of the newest."""

    def __init__(self) -> None:
        self._marks: deque[Any] = deque(maxlen=_MAX_REMEMBERED)

    def remember(self, frame: DataFrame) -> DataFrame:
        """Remember a frame, and return it."""
        plan: Any = frame
        connected = is_connect(frame.sparkSession)
        self._marks.append(plan._plan._plan_id if connected else attributes_of(frame))
        return frame

    def by_name(self, spark: Any, value: Column | str) -> Column | str:
        """Resolve columns of these frames by name, in a condition or a value."""
        if isinstance(value, str) or not self._marks:
            return value
        marks = tuple(self._marks)
        if is_connect(spark):
            own = frozenset(marks)
            sent: Column = _copy_and_change(value, lambda part: _unbind(part, own, None))
            return sent
        return by_name(spark, value, marks)

    def beside(self, source: DataFrame, value: Column | str, qualifier: str) -> Column | str:
        """Resolve columns of these frames by name, in an expression that also names another frame.

        Args:
            source: The other frame; its columns stay bound to it.
            value: The expression.
            qualifier: The alias of the table's rows, put before columns of these frames.
        """
        if isinstance(value, str):
            return value
        spark, marks = source.sparkSession, tuple(self._marks)
        if not is_connect(spark):
            kept = attributes_of(source)
            return by_name(spark, value, marks, qualifier=qualifier, kept=kept) if marks else value
        plan: Any = source
        inner = frozenset(item._plan_id for item in _plans(plan._plan))
        own = frozenset(marks) - inner

        def change(part: Any) -> None:
            _unbind(part, own, qualifier)
            if part._plan_id in inner:
                # A materialised source has only this plan left.
                part._plan_id = plan._plan._plan_id

        sent: Column = _copy_and_change(value, change)
        return sent


def _copy_and_change(part: Any, change: Callable[[Any], None]) -> Any:
    """Copy a Connect client's expression, and change each part that is bound to a plan."""
    if isinstance(part, (list, tuple)):
        return type(part)(_copy_and_change(item, change) for item in part)
    if not hasattr(type(part), "to_plan"):
        return part
    copied = copy.copy(part)
    for name, value in vars(part).items():
        setattr(copied, name, _copy_and_change(value, change))
    if vars(copied).get("_plan_id") is not None:
        change(copied)
    return copied


def _unbind(part: Any, plan_ids: frozenset[int], qualifier: str | None) -> None:
    """Rebind a part by name, if it is bound to one of the plans."""
    if part._plan_id not in plan_ids:
        return
    part._plan_id = None
    name = vars(part).get("_unparsed_identifier")
    if qualifier is not None and name is not None:
        part._unparsed_identifier = f"{quoted(qualifier)}.{name}"


def _plans(plan: Any) -> Iterator[Any]:
    """Yield a plan of a Connect client, and those below it."""
    yield plan
    for value in vars(plan).values():
        for item in value if isinstance(value, (list, tuple)) else (value,):
            if hasattr(type(item), "to_proto") and hasattr(item, "_plan_id"):
                yield from _plans(item)
