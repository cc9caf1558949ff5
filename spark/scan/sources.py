"""Which of our scans a DataFrame is made of: a write may read the table it writes to."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame

from optimist.spark.jvm import analyzed_plan, iterate
from optimist.spark.scan.index import KEY_PREFIX

__all__ = ["TableSource", "table_sources"]

_KEY = re.compile(
    rf"^{re.escape(KEY_PREFIX)}(?P<path>.*)@(?P<version>\d+)#(?P<id>[^?#]*)\?(?P<rest>.*)$"
)


@dataclass(frozen=True, slots=True)
class TableSource:
    """One scan inside a query.

    Attributes:
        path: The table's path, as Hadoop has it.
        table_id: The table's id.
        version: The version it reads.
        is_time_travel: The version was asked for by name or time.
    """

    path: str
    table_id: str
    version: int
    is_time_travel: bool


def table_sources(frame: DataFrame) -> tuple[TableSource, ...]:
    """All scans of Delta tables by us in a frame's query, those in subqueries included."""
    found = []
    for leaf in _leaves(analyzed_plan(frame)):
        if leaf.getClass().getSimpleName() != "LogicalRelation":
            continue
        relation = leaf.relation()
        if relation.getClass().getSimpleName() != "HadoopFsRelation":
            continue
        match = _KEY.match(str(relation.location().toString()))
        if match:
            found.append(
                TableSource(
                    match["path"], match["id"], int(match["version"]), "asof=1" in match["rest"]
                )
            )
    return tuple(found)


def _leaves(plan: Any) -> Iterator[Any]:
    yield from iterate(plan.collectLeaves())
    for subquery in iterate(plan.subqueriesAll()):
        yield from iterate(subquery.collectLeaves())
