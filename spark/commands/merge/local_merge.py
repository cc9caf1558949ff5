"""A small MERGE in the driver, on Arrow, without a Spark job (docs/planes.md).

1. The expressions that Spark has resolved are translated: equalities of columns, conditions and
   values, each exactly or not at all.
2. The source is collected, if it is certainly small: its rows are in the plan, or come from small
   files.
3. The rest is what `DeltaLog.merge` does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame

from optimist.core.commands.row_changes import MergedRows
from optimist.core.commands.stopwatch import Stopwatch
from optimist.core.commands.uncommitted_files import UncommittedFiles
from optimist.core.data.column_shape import arrow_rows
from optimist.core.local.append import ensure_rows_can_be_checked
from optimist.core.local.merge.clauses import LocalMergeRequest
from optimist.core.local.merge.keys import JoinKey, join_key
from optimist.core.local.merge.resolution import (
    ResolvedClause,
    ResolvedMerge,
    ensure_insertable,
)
from optimist.core.local.merge.run import merge_rows, wanted_rows
from optimist.core.local.merge.scope import Scope
from optimist.core.local.row_writer import RowWriter
from optimist.core.local.value_building import needs_spark
from optimist.core.requests.merge_clauses import Clause, Kind
from optimist.core.schema.arrow_types import from_arrow_schema
from optimist.core.schema.column_paths import named_path
from optimist.spark.commands.dml.local_values import LocalValues, unknown
from optimist.spark.commands.dml.target import Target
from optimist.spark.commands.merge.local_source import collected, is_in_plan
from optimist.spark.commands.merge.request import MergeRequest
from optimist.spark.commands.merge.resolution import ResolvedClause as SparkClause
from optimist.spark.commands.merge.resolution import ResolvedMerge as SparkMerge
from optimist.spark.conditions.attributes import attributes_of
from optimist.spark.conditions.bound_condition import conjuncts
from optimist.spark.conditions.catalyst_expressions import (
    CatalystPredicates,
    ColumnPath,
    kind_of,
    type_name,
)
from optimist.spark.session.jvm import iterate

__all__ = ["merge_here"]

_OWN, _OTHER = "t", "s"
_EQUALITIES = {"EqualTo": False, "EqualNullSafe": True}


def merge_here(
    target: Target,
    rows: DataFrame,
    request: MergeRequest,
    merge: SparkMerge,
    pending: UncommittedFiles,
    watch: Stopwatch,
) -> MergedRows | None:
    """Run a MERGE in this process, up to its commit; None where Spark has to do it.

    Args:
        target: The table.
        rows: What `target.columns()` gave.
        request: The MERGE.
        merge: Its expressions, as Spark has resolved them.
        pending: Looks after what is written.
        watch: Told how long each part took.
    """
    shortcut, snapshot = target.shortcut, target.snapshot
    if not shortcut.max_bytes or merge.bound:
        return None
    if not (is_in_plan(request.source) or shortcut.takes(snapshot.files)):
        return None

    def work(writer: RowWriter) -> MergedRows:
        source = collected(request.source, shortcut.max_bytes)
        watch.lap("materializeSourceTimeMs")
        local = _Translation(target, rows, request, merge, source).merge()
        given = local.always_given(snapshot.schema)
        ensure_rows_can_be_checked(snapshot.metadata, snapshot.schema, given)
        if not shortcut.takes(snapshot.scan(wanted_rows(local)).files):
            raise needs_spark(merge.on.text, "may match rows of many files")
        return merge_rows(writer, local, watch)

    return shortcut.done(pending, work)


@dataclass(frozen=True, slots=True)
class _ByIds(CatalystPredicates):
    """Finds columns by the ids of their attributes, since both sides may have the same names."""

    places: Mapping[int, ColumnPath]

    def path_of(self, attribute: Any, inner: ColumnPath) -> ColumnPath | None:
        """See `CatalystPredicates.path_of`."""
        place = self.places.get(_id(attribute))
        return None if place is None else (*place, *inner)


@dataclass(frozen=True, slots=True)
class _Translation:
    """Translates Spark's expressions to those of `DeltaLog.merge`; raises where it can't."""

    target: Target
    rows: DataFrame
    request: MergeRequest
    spark_merge: SparkMerge
    source: pa.Table

    def merge(self) -> ResolvedMerge:
        schema, on = self.target.snapshot.schema, self.spark_merge.on
        other = from_arrow_schema(self.source.schema)
        sides = {_OWN: schema, _OTHER: other}
        scopes: dict[Kind, Scope] = {
            "MATCHED": Scope(sides),
            "NOT MATCHED": Scope({_OTHER: other}),
            "NOT MATCHED BY SOURCE": Scope({_OWN: schema}),
        }
        clauses = tuple(
            self._clause(item, scopes[item.clause.kind]) for item in self.spark_merge.clauses
        )
        request = LocalMergeRequest(
            arrow_rows(self.source, other),
            on.text,
            _OWN,
            _OTHER,
            tuple(item.clause for item in clauses),
        )
        return ResolvedMerge(request, self._keys(Scope(sides)), on.text, clauses)

    def _keys(self, scope: Scope) -> tuple[JoinKey, ...]:
        values = self._values(scope)
        condition = _analysed(self._frame("MATCHED"), self.spark_merge.on.column)
        return tuple(self._key(part, values, scope) for part in conjuncts(condition))

    def _key(self, part: Any, values: LocalValues, scope: Scope) -> JoinKey:
        kind = kind_of(part)
        if kind in _EQUALITIES:
            sides = [
                values.predicates.column(_inside(side)) for side in (part.left(), part.right())
            ]
            places = dict(scope.place(side.path) for side in sides if side is not None)
            if places.keys() == {_OWN, _OTHER}:
                key = join_key(places[_OWN], places[_OTHER], is_null_safe=_EQUALITIES[kind])
                if key is not None and str(key.data_type) == type_name(part.left().dataType()):
                    return key
        raise needs_spark(str(part.sql()))

    def _clause(self, item: SparkClause, scope: Scope) -> ResolvedClause:
        kind, action = item.clause.kind, item.clause.action
        values, condition = self._values(scope), None
        if item.condition is not None:
            expression = _analysed(self._frame(kind), item.condition.column)
            condition = values.condition(expression)
        if action == "delete":
            return ResolvedClause(Clause(kind, action, condition), scope, condition, None)
        if item.assignments is None:
            raise needs_spark(action)
        assignments = values.assignments(item.assignments, self.target.snapshot.schema)
        if action == "insert":
            ensure_insertable(assignments)
        return ResolvedClause(Clause(kind, action, condition), scope, condition, assignments)

    def _values(self, scope: Scope) -> LocalValues:
        places = dict(self._places(scope))
        predicates = _ByIds(scope.schema, named_path, unknown, places)
        return LocalValues(self.target.spark, predicates)

    def _places(self, scope: Scope) -> Iterator[tuple[int, ColumnPath]]:
        frames = {_OWN: self.rows, _OTHER: self.request.source}
        for alias, columns in scope.sides.items():
            attributes = list(iterate(attributes_of(frames[alias])))
            names = [str(item.name()) for item in attributes]
            if names != list(columns.names):
                raise needs_spark(alias, "has columns that are not told apart by their names")
            for item, name in zip(attributes, names, strict=True):
                yield _id(item), (alias, name)

    def _frame(self, kind: Kind) -> DataFrame:
        if kind == "MATCHED":
            return self.rows.crossJoin(self.request.source)
        return self.request.source if kind == "NOT MATCHED" else self.rows


def _analysed(frame: DataFrame, condition: Column) -> Any:
    plan = frame.filter(condition)._jdf.queryExecution().analyzed()
    while plan.nodeName() != "Filter":
        plan = plan.child()
    return plan.condition()


def _inside(side: Any) -> Any:
    """What a side of an equality compares, without the cast to the type of the other side."""
    return side.child() if kind_of(side) == "Cast" else side


def _id(attribute: Any) -> int:
    return int(attribute.exprId().id())
