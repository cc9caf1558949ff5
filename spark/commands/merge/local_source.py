"""Collecting the rows of a small source in the driver, as Arrow."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from optimist.core.local.value_building import needs_spark
from optimist.spark.session.jvm import Jvm, arrow_of_rows, iterate
from optimist.spark.session.pyspark_versions import is_connect

__all__ = ["collected", "is_in_plan"]

_SMALL_NODES = ("LocalRelation", "Range", "LogicalRelation", "Project", "Filter", "SubqueryAlias")
"""Plans of these nodes return no more rows than their leaves have."""
_INFLATION = 8
"""How many times larger rows of a Parquet file roughly are in memory."""


def is_in_plan(source: DataFrame) -> bool:
    """Check whether the rows are in the plan, so that no job is needed to collect them."""
    return not is_connect(source.sparkSession) and _optimized(source).nodeName() == "LocalRelation"


def collected(source: DataFrame, max_bytes: int) -> pa.Table:
    """Collect the rows of a source.

    Raises:
        UsageError: There may be many rows (kind `OPTIMIST_NEEDS_SPARK`).
    """
    plan = _optimized(source)
    names = {str(node.nodeName()) for node in _nodes(plan)}
    leaf_factor = 1 if names <= {"LocalRelation"} else _INFLATION
    size = int(str(plan.stats().sizeInBytes()))
    if not names <= set(_SMALL_NODES) or size * leaf_factor > max_bytes:
        raise needs_spark("the source", "may have many rows")
    if plan.nodeName() == "LocalRelation":
        return arrow_of_rows(Jvm.of(source.sparkSession), plan, source.schema)
    return source.toArrow()


def _optimized(source: DataFrame) -> Any:
    return source._jdf.queryExecution().optimizedPlan()


def _nodes(plan: Any) -> list[Any]:
    found = [plan]
    for child in iterate(plan.children()):
        found += _nodes(child)
    return found
