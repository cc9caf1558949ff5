"""A save by Spark's own writer that returns the number of rows that Spark counted.

*Assumes* that Spark counts each successful task's rows once. Rows of a failed task, or of a task's
second run, are not in the number.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.readwriter import DataFrameWriter

from optimist.spark.session.jvm import Jvm

__all__ = ["save_counted"]

_MODES = "org.apache.spark.sql.execution.CommandExecutionMode$"
_COMMAND_OF_WRITER = "saveCommand"
_COMMAND = "DataWritingCommandExec"
_ADAPTIVE = "AdaptiveSparkPlanExec"
_STAGE = "QueryStageExec"
_ROWS = "numOutputRows"


def save_counted(rows: DataFrame, writer: DataFrameWriter, path: str) -> int | None:
    """Save rows at a path, as `writer.save(path)` does, and return their number.

    Args:
        rows: The rows.
        writer: Their writer, with its format, mode and options.
        path: The directory, as Hadoop writes it.

    Returns:
        The number; None if this Spark does not show the command that it makes of a save, or if a
        plug-in has replaced the node that counts.
    """
    if _COMMAND_OF_WRITER not in dir(writer._jwrite):
        writer.save(path)
        return None
    jvm = Jvm.of(rows.sparkSession)
    command = writer._jwrite.saveCommand(jvm.root.scala.Option.apply(path))
    at_once = jvm.module(_MODES).ALL()
    query = rows._jdf.sparkSession().sessionState().executePlan(command, at_once)
    query.assertCommandExecuted()
    return _find_count(query.commandExecuted().commandPhysicalPlan())


def _find_count(plan: Any) -> int | None:
    """Return the rows that the command at the top of a plan has counted."""
    kind = str(plan.getClass().getSimpleName())
    if kind == _COMMAND:
        metric = plan.metrics().get(_ROWS)
        return int(metric.get().value()) if metric.isDefined() else None
    if kind == _ADAPTIVE:
        return _find_count(plan.executedPlan())
    return _find_count(plan.plan()) if kind.endswith(_STAGE) else None
