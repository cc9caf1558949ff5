"""Which of our scans a DataFrame is made of: a write may read the table it writes to."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame

from optimist.spark.arrow.source import SOURCE_PREFIX, ScanOptions
from optimist.spark.native.index import KEY_PREFIX
from optimist.spark.planes.connect_sources import connect_scans
from optimist.spark.session.jvm import analyzed_plan, iterate
from optimist.spark.session.pyspark_versions import is_connect

__all__ = ["TableSource", "table_sources"]

_KEY = re.compile(
    rf"^{re.escape(KEY_PREFIX)}(?P<path>.*)@(?P<version>\d+)#(?P<id>[^?#]*)\?(?P<rest>.*)$"
)


@dataclass(frozen=True, slots=True)
class TableSource:
    """One scan inside a query.

    Attributes:
        path: The table's path.
        table_id: The table's id.
        version: The version it reads.
        is_time_travel: The version was asked for by name or time.
    """

    path: str
    table_id: str
    version: int
    is_time_travel: bool


def table_sources(frame: DataFrame) -> tuple[TableSource, ...]:
    """All scans of Delta tables by us in a frame's query, those in subqueries included.

    A table some of whose files have deletion vectors comes once for each kind of file.
    """
    if is_connect(frame.sparkSession):
        return tuple(map(_of_scan, connect_scans(frame)))
    found = (_source(leaf) for leaf in _leaves(analyzed_plan(frame)))
    return tuple(source for source in found if source is not None)


def _source(leaf: Any) -> TableSource | None:
    """The table that a leaf of a plan reads, on either plane; None where it is no table of ours."""
    kind = leaf.getClass().getSimpleName()
    if kind == "DataSourceV2Relation" and str(leaf.table().name()).startswith(SOURCE_PREFIX):
        return _of_scan(ScanOptions.from_options(dict(leaf.options().asCaseSensitiveMap())))
    if kind != "LogicalRelation":
        return None
    relation = leaf.relation()
    if relation.getClass().getSimpleName() != "HadoopFsRelation":
        return None
    match = _KEY.match(str(relation.location().toString()))
    if match is None:
        return None
    return TableSource(match["path"], match["id"], int(match["version"]), "asof=1" in match["rest"])


def _of_scan(scan: ScanOptions) -> TableSource:
    return TableSource(scan.path, scan.table_id, scan.version, scan.is_time_travel)


def _leaves(plan: Any) -> Iterator[Any]:
    yield from iterate(plan.collectLeaves())
    for subquery in iterate(plan.subqueriesAll()):
        yield from iterate(subquery.collectLeaves())
