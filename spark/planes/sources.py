"""The scans of our tables that a DataFrame reads: a write may read its own target."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame

from optimist.spark.arrow.sent_scans import at_newest_versions
from optimist.spark.arrow.source import SOURCE_PREFIX, ScanOptions
from optimist.spark.native.index import KEY_PREFIX
from optimist.spark.planes.connect_sources import connect_scans
from optimist.spark.rows.scanned_table import ScannedTable
from optimist.spark.session.jvm import Jvm, analyzed_plan, iterate
from optimist.spark.session.pyspark_versions import is_connect

__all__ = ["of_fixed_versions", "plan_sources", "table_sources"]

_KEY = re.compile(
    rf"^{re.escape(KEY_PREFIX)}(?P<path>.*)@(?P<version>\d+)#(?P<id>[^?#]*)\?(?P<rest>.*)$"
)

_FOLLOWING = "optimist.dropin.NewestVersions"


def of_fixed_versions(frame: DataFrame) -> DataFrame:
    """Fix the tables that a frame reads to their present versions.

    Rows that Spark has cached stay the same rows, even if somebody unpersists the cache meanwhile.
    Frames of the drop-in follow their tables (docs/drop-in.md), but a command that reads more than
    once must see the same rows each time.
    """
    if is_connect(frame.sparkSession):
        return at_newest_versions(frame)
    jvm, plan = Jvm.of(frame.sparkSession), analyzed_plan(frame)
    if not jvm.has_class(_FOLLOWING):
        return frame  # nobody has enabled a session yet
    fixed = jvm.root.optimist.dropin.NewestVersions.fixed(jvm.session, plan)
    return frame if fixed.fastEquals(plan) else jvm.frame(fixed)


def table_sources(frame: DataFrame) -> tuple[ScannedTable, ...]:
    """Return all scans of our tables in a frame's query, those inside subqueries included.

    A table appears twice if only some of its files have deletion vectors: once per kind of file.
    """
    if is_connect(frame.sparkSession):
        return connect_scans(frame)
    return plan_sources(analyzed_plan(frame))


def plan_sources(plan: Any) -> tuple[ScannedTable, ...]:
    """Return all scans of our tables in an analyzed plan, those inside subqueries included."""
    found = (_source(leaf) for leaf in _leaves(plan))
    return tuple(source for source in found if source is not None)


def _source(leaf: Any) -> ScannedTable | None:
    """Return the table that a leaf of a plan reads, or None for other scans."""
    kind = leaf.getClass().getSimpleName()
    if kind == "DataSourceV2ScanRelation":
        leaf, kind = leaf.relation(), "DataSourceV2Relation"
    if kind == "DataSourceV2Relation" and str(leaf.table().name()).startswith(SOURCE_PREFIX):
        return ScanOptions.from_options(dict(leaf.options().asCaseSensitiveMap())).scanned_table
    if kind != "LogicalRelation":
        return None
    relation = leaf.relation()
    if relation.getClass().getSimpleName() != "HadoopFsRelation":
        return None
    match = _KEY.match(str(relation.location().toString()))
    if match is None:
        return None
    return ScannedTable(
        match["path"], match["id"], int(match["version"]), "asof=1" in match["rest"]
    )


def _leaves(plan: Any) -> Iterator[Any]:
    for part in (plan, *iterate(plan.subqueriesAll())):
        for leaf in iterate(part.collectLeaves()):
            kind = leaf.getClass().getSimpleName()
            if kind == "InMemoryRelation":
                yield from _cached_leaves(leaf.cacheBuilder().cachedPlan())
            elif kind == "AnsweredRows":  # a cached answer from the log
                yield from _leaves(leaf.query())
            else:
                yield leaf


def _cached_leaves(plan: Any) -> Iterator[Any]:
    """Return the leaves of a cached plan, whose last steps have no logical link."""
    if plan.getClass().getSimpleName() == "AdaptiveSparkPlanExec":
        plan = plan.inputPlan()
    link = plan.logicalLink()
    if link.isDefined():
        yield from _leaves(link.get())
        return
    for child in iterate(plan.children()):
        yield from _cached_leaves(child)
