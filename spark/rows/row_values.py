"""New values must follow from the row alone: no aggregates, windows or generators."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from optimist.core.errors import UsageError
from optimist.spark.session.jvm import analyzed_plan
from optimist.spark.session.pyspark_versions import is_connect

__all__ = ["ensure_row_values"]

_NODES = {
    "Aggregate": "an aggregate function",
    "Window": "a window function",
    "Generate": "a generator such as explode",
}


def ensure_row_values(frame: DataFrame, values: Sequence[Column], selected: DataFrame) -> None:
    """Refuse values for which Spark must look at several rows, or of which it makes several.

    Which rows those are would depend on the way that a command takes to its rows.

    Args:
        frame: The rows that the values see.
        values: The values, which Spark can resolve.
        selected: `frame.select` of them.

    Raises:
        UsageError: A value does not follow from its row alone (kind
            `UNSUPPORTED_EXPR_FOR_OPERATOR`).
    """
    if is_connect(frame.sparkSession):
        _ensure_sent(frame, values)
        return
    own, plan = analyzed_plan(frame), analyzed_plan(selected)
    while not plan.equals(own):
        name = str(plan.nodeName())
        if name in _NODES:
            raise _of_several_rows(_NODES[name])
        if plan.children().size() != 1:
            return
        plan = plan.children().head()


def _ensure_sent(frame: DataFrame, values: Sequence[Column]) -> None:
    """The same for a client, which sees no plan: values of one row may stand in a filter."""
    try:
        _ = frame.where(sf.isnull(sf.struct(*values))).select(sf.lit(1)).schema
    except AnalysisException:
        what = "an aggregate function, a window function or a generator"
        raise _of_several_rows(what) from None


def _of_several_rows(what: str) -> UsageError:
    return UsageError(
        f"A new value holds {what}, but it must follow from its row alone. Nothing was written. "
        "Compute the value first, and join it with the source of a MERGE.",
        kind="UNSUPPORTED_EXPR_FOR_OPERATOR",
    )
