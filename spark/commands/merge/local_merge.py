"""A small MERGE in the driver, on Arrow, without a Spark job (docs/planes.md).

1. The expressions that Spark has resolved are translated: equalities of columns, conditions and
   values, each exactly or not at all.
2. The source is collected, if it is certainly small: its rows are in the plan, or come from small
   files.
3. The rest is the same as in `DeltaLog.merge`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from optimist.core.commands.merge.resolved import JoinKey, ResolvedClause
from optimist.core.commands.merge.run import MergedRows, merge_rows
from optimist.core.commands.row_rules import ensure_rows_can_be_checked
from optimist.core.commands.stopwatch import Stopwatch
from optimist.core.commands.uncommitted_files import UncommittedFiles
from optimist.core.local.merge.join import JoinBranch
from optimist.core.local.merge.keys import ColumnKey, column_key
from optimist.core.local.merge.merge_target import LocalMergeTarget
from optimist.core.local.merge.resolution import (
    LocalResolvedClause,
    LocalResolvedMerge,
    ensure_insertable,
)
from optimist.core.local.merge.scope import Sides
from optimist.core.local.merge.source_rows import SourceRows
from optimist.core.local.row_writer import RowWriter
from optimist.core.local.value_building import needs_spark
from optimist.core.predicates import Predicate
from optimist.core.requests.merge_clauses import Kind
from optimist.core.schema.arrow_types import from_arrow_schema
from optimist.core.schema.column_paths import named_path
from optimist.core.schema.types import StructType
from optimist.spark.commands.dml.local_values import LocalValues, unknown
from optimist.spark.commands.dml.target import Target
from optimist.spark.commands.merge.resolution import SparkResolvedClause, SparkResolvedMerge
from optimist.spark.conditions.analysis import without_zone_dependence
from optimist.spark.conditions.attributes import attributes_of
from optimist.spark.conditions.catalyst_expressions import (
    CatalystPredicates,
    ColumnPath,
    kind_of,
    type_name,
)
from optimist.spark.conditions.join_condition import split_join
from optimist.spark.session.conf import session_zone_name
from optimist.spark.session.jvm import (
    Jvm,
    analyzed_plan,
    arrow_of_rows,
    filter_condition,
    iterate,
)
from optimist.spark.session.pyspark_versions import is_connect

__all__ = ["merge_in_driver"]

_SMALL_NODES = ("LocalRelation", "Range", "LogicalRelation", "Project", "Filter", "SubqueryAlias")
"""Plans of these nodes return no more rows than their leaves have."""
_INFLATION = 8
"""How many times larger rows of a Parquet file roughly are in memory."""


def merge_in_driver(
    target: Target, merge: SparkResolvedMerge, pending: UncommittedFiles, watch: Stopwatch
) -> MergedRows | None:
    """Run a MERGE in this process, up to its commit.

    Args:
        target: The table.
        merge: The MERGE.
        pending: Looks after what is written.
        watch: Told how long each part took.

    Returns:
        What was done; None where Spark has to do it.
    """
    shortcut, snapshot, source = target.shortcut, target.snapshot, merge.sides.source
    is_evolving = target.txn.metadata != snapshot.metadata
    if not shortcut.max_bytes or merge.bound or is_evolving:
        return None
    if not (_is_in_plan(source) or shortcut.takes_rows()):
        return None

    def work(writer: RowWriter) -> MergedRows:
        rows = _collect(source, shortcut.max_bytes)
        watch.lap("materializeSourceTimeMs")
        local = _Translation.of(target, merge, rows).merge(rows)
        given = local.always_given(snapshot.schema)
        ensure_rows_can_be_checked(snapshot.metadata, snapshot.schema, given, in_session=True)
        wanted = _wanted_rows(local, target)
        if not shortcut.takes_rows(wanted):
            raise needs_spark(merge.on, "may match rows of many files")
        return merge_rows(LocalMergeTarget(writer, local), wanted, writer.pending, watch)

    return shortcut.done(pending, work)


def _wanted_rows(merge: LocalResolvedMerge, target: Target) -> Predicate | None:
    """Return a predicate that is true for every row that can change, or None for all rows."""
    wanted, snapshot = merge.wanted_rows(), target.snapshot
    if wanted is None:
        return None
    zone = session_zone_name(target.spark)
    return without_zone_dependence(wanted, snapshot.schema, snapshot.partition_columns, zone)


@dataclass(frozen=True, slots=True)
class _PredicatesById(CatalystPredicates):
    """Finds columns by the ids of their attributes, since both sides can have the same names.

    Attributes:
        paths: The paths of columns by the ids of their attributes.
    """

    paths: Mapping[int, ColumnPath]

    def path_of(self, attribute: Any, inner: ColumnPath) -> ColumnPath | None:
        """See `CatalystPredicates.path_of`."""
        path = self.paths.get(int(attribute.exprId().id()))
        return None if path is None else (*path, *inner)


@dataclass(frozen=True, slots=True)
class _Translation:
    """Translates Spark's expressions to those of `DeltaLog.merge`, or raises an error.

    Attributes:
        target: The table.
        spark_merge: The MERGE as Spark resolved it.
        sides: The columns of the table and of the source.
    """

    target: Target
    spark_merge: SparkResolvedMerge
    sides: Sides

    @classmethod
    def of(cls, target: Target, merge: SparkResolvedMerge, source: pa.Table) -> _Translation:
        columns = from_arrow_schema(source.schema)
        return cls(target, merge, Sides("t", target.snapshot.schema, "s", columns))

    def merge(self, source: pa.Table) -> LocalResolvedMerge:
        clauses = tuple(map(self._clause, self.spark_merge.clauses))
        rows = SourceRows.of(source, self.sides.source)
        branches = (JoinBranch(self._keys()),)
        return LocalResolvedMerge(self.spark_merge.on, clauses, branches, self.sides, rows)

    def _keys(self) -> tuple[ColumnKey, ...]:
        values, sides = self._values("MATCHED"), self.spark_merge.sides
        parts = split_join(sides.target, sides.source, self.spark_merge.join.column)
        for part in (*parts.target, *parts.source, *parts.others):
            raise needs_spark(str(part.sql()))
        return tuple(self._key(key, values) for key in parts.keys)

    def _key(self, key: JoinKey[Any], values: LocalValues) -> ColumnKey:
        expressions = map(_without_cast, (key.target, key.source))
        columns = list(filter(None, map(values.predicates.column, expressions)))
        if len(columns) == 2:
            paths = [column.path for column in columns]
            found = column_key(paths, self.sides, is_null_safe=key.is_null_safe)
            if found is not None and str(found.data_type) == type_name(key.target.dataType()):
                return found
        raise needs_spark(str(key.target.sql()))

    def _clause(self, item: SparkResolvedClause) -> LocalResolvedClause:
        values, condition, assignments = self._values(item.kind), None, None
        if item.condition is not None:
            rows = self.spark_merge.sides.of_kind(item.kind).filter(item.condition.column)
            condition = values.condition(filter_condition(analyzed_plan(rows)))
        if item.assignments is not None:
            assignments = values.assignments(item.assignments, self.target.snapshot.schema)
        elif item.action != "delete":
            raise needs_spark(item.action)
        if assignments is not None and item.action == "insert":
            ensure_insertable(assignments)
        return ResolvedClause(
            item.number, item.kind, item.action, condition, item.condition_text, assignments
        )

    def _values(self, kind: Kind) -> LocalValues:
        sides, rows = self.sides, self.spark_merge.sides
        paths: dict[int, ColumnPath] = {}
        if kind != "NOT MATCHED":
            paths |= _paths_by_id(rows.target, sides.target_alias, sides.target)
        if kind != "NOT MATCHED BY SOURCE":
            paths |= _paths_by_id(rows.source, sides.source_alias, sides.source)
        predicates = _PredicatesById(sides.scopes[kind].schema, named_path, unknown, paths)
        return LocalValues(self.target.spark, predicates)


def _paths_by_id(rows: DataFrame, alias: str, columns: StructType) -> dict[int, ColumnPath]:
    """Return the paths of one side's columns by the ids of their attributes."""
    attributes = list(iterate(attributes_of(rows)))
    names = [str(item.name()) for item in attributes]
    if names != list(columns.names):
        raise needs_spark(alias, "has columns that are not told apart by their names")
    ids = (int(item.exprId().id()) for item in attributes)
    return {key: (alias, name) for key, name in zip(ids, names, strict=True)}


def _without_cast(side: Any) -> Any:
    """Return a side of an equality without the cast to the other side's type."""
    return side.child() if kind_of(side) == "Cast" else side


def _is_in_plan(source: DataFrame) -> bool:
    """Check whether the rows are in the plan, so that no job is needed to collect them."""
    return not is_connect(source.sparkSession) and _optimized(source).nodeName() == "LocalRelation"


def _collect(source: DataFrame, max_bytes: int) -> pa.Table:
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
