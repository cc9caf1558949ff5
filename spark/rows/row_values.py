"""A check that new values depend on the row alone: no aggregates, windows or generators.

A value may be random. Then it must be drawn once.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from optimist.core.errors import UsageError
from optimist.spark.session.jvm import analyzed_plan, iterate
from optimist.spark.session.pyspark_versions import is_connect

__all__ = ["drawn_values", "ensure_row_values", "may_be_drawn"]

_NODES = {
    "Aggregate": "an aggregate function",
    "Window": "a window function",
    "Generate": "a generator such as explode",
}
_DRAWN = "INVALID_NON_DETERMINISTIC_EXPRESSIONS"
"""Spark's error for a value that may differ each time."""


def ensure_row_values(frame: DataFrame, values: Sequence[Column], selected: DataFrame) -> None:
    """Refuse values that need several rows, or that make several rows.

    The choice of these rows would depend on how a command finds its rows.

    Args:
        frame: The rows on which the values are computed.
        values: The values, which Spark can resolve.
        selected: `frame.select` of them.

    Raises:
        UsageError: A value does not depend on its row alone (kind `UNSUPPORTED_EXPR_FOR_OPERATOR`).
    """
    if is_connect(frame.sparkSession):
        _ensure_sent_row_values(frame, values)
        return
    own, plan = analyzed_plan(frame), analyzed_plan(selected)
    while not plan.equals(own):
        name = str(plan.nodeName())
        if name in _NODES:
            raise _needs_several_rows(_NODES[name])
        if plan.children().size() != 1:
            return
        plan = plan.children().head()


def drawn_values(frame: DataFrame, values: Sequence[Column], selected: DataFrame) -> Sequence[bool]:
    """Return which values may differ each time that they are computed for the same row.

    Args:
        frame: See `ensure_row_values`, which accepts these values.
        values: See `ensure_row_values`.
        selected: See `ensure_row_values`.
    """
    if is_connect(frame.sparkSession):
        return [may_be_drawn(frame, sf.isnull(sf.struct(*values)))] * len(values)
    plan = analyzed_plan(selected)
    if plan.deterministic():
        return [False] * len(values)
    return [not item.deterministic() for item in iterate(plan.expressions())]


def may_be_drawn(frame: DataFrame, condition: Column) -> bool:
    """Ask the Spark Connect server whether a condition may differ each time.

    Only the server knows the functions that users have registered, and it refuses to join by such a
    condition.

    Args:
        frame: The rows, in a Connect session.
        condition: The condition, which the server can resolve.
    """
    nothing = frame.sparkSession.range(1).select()
    try:
        _ = frame.join(nothing, condition).select(sf.lit(1)).schema
    except AnalysisException as error:
        return error.getCondition() == _DRAWN
    return False


def _ensure_sent_row_values(frame: DataFrame, values: Sequence[Column]) -> None:
    """Refuse such values of a client, which sees no plan, by a filter with them."""
    try:
        _ = frame.where(sf.isnull(sf.struct(*values))).select(sf.lit(1)).schema
    except AnalysisException:
        what = "an aggregate function, a window function or a generator"
        raise _needs_several_rows(what) from None


def _needs_several_rows(what: str) -> UsageError:
    return UsageError(
        f"A new value holds {what}, but it may depend only on its row. Nothing was written. "
        "Compute the value first, and join it with the source of a MERGE.",
        kind="UNSUPPORTED_EXPR_FOR_OPERATOR",
    )
