"""New values must follow from the row alone: no aggregates, windows or generators."""

from __future__ import annotations

from pyspark.sql import DataFrame

from optimist.core.errors import UsageError
from optimist.spark.session.jvm import analyzed_plan
from optimist.spark.session.pyspark_versions import is_connect

__all__ = ["ensure_row_values"]

_NODES = {
    "Aggregate": "an aggregate function",
    "Window": "a window function",
    "Generate": "a generator such as explode",
}


def ensure_row_values(selected: DataFrame, frame: DataFrame) -> None:
    """Refuse values for which Spark must look at several rows, or of which it makes several.

    Which rows those are would depend on the way that a command takes to its rows. In Spark Connect
    nothing is refused here, for the client does not see the plan.

    Args:
        selected: `frame.select` of the values.
        frame: The rows that the values see.

    Raises:
        UsageError: A value does not follow from its row alone (kind
            `UNSUPPORTED_EXPR_FOR_OPERATOR`).
    """
    if is_connect(frame.sparkSession):
        return
    own, plan = analyzed_plan(frame), analyzed_plan(selected)
    while not plan.equals(own):
        name = str(plan.nodeName())
        if name in _NODES:
            raise UsageError(
                f"A new value holds {_NODES[name]}, but it must follow from its row alone. Nothing "
                "was written. Compute the value first, and join it with the source of a MERGE.",
                kind="UNSUPPORTED_EXPR_FOR_OPERATOR",
            )
        if plan.children().size() != 1:
            return
        plan = plan.children().head()
