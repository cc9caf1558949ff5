"""The condition that joins a table with other rows: what it says of the table's rows alone.

Its conjuncts over columns of the table skip files. Those that ask a column of the table to equal a
value of the other rows skip files once these values are known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import and_
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from optimist.core.commands.merge.resolved import JoinKey
from optimist.core.predicates import Predicate
from optimist.core.schema.types import StructType
from optimist.spark.conditions.attributes import attributes_of
from optimist.spark.conditions.bound_condition import conjuncts, has_subquery
from optimist.spark.conditions.catalyst_expressions import kind_of
from optimist.spark.conditions.condition import resolve_condition
from optimist.spark.conditions.connect_join import read_sent_join
from optimist.spark.conditions.join_reading import JoinReading
from optimist.spark.session.jvm import Jvm, analyzed_plan, filter_condition, iterate
from optimist.spark.session.pyspark_versions import is_connect

__all__ = ["JoinParts", "read_join", "split_join"]

_EQUALITIES = {"EqualTo": False, "EqualNullSafe": True}
"""Spark's equalities, and whether null equals null in them."""


@dataclass(frozen=True, slots=True)
class JoinParts:
    """The conjuncts of a condition as Spark analysed it, by the rows that they are about.

    Attributes:
        target: Those over the table's rows alone.
        source: Those over the other rows alone.
        keys: Equalities between the two.
        others: All others.
    """

    target: list[Any] = field(default_factory=list)
    source: list[Any] = field(default_factory=list)
    keys: list[JoinKey[Any]] = field(default_factory=list)
    others: list[Any] = field(default_factory=list)


def read_join(
    target: DataFrame,
    source: DataFrame,
    condition: Column | str,
    *,
    schema: StructType,
    partition_columns: Sequence[str],
    alias: str,
) -> JoinReading:
    """Read a condition as Spark analysed it, or in Spark Connect as the client sends it.

    Args:
        target: The table's rows, under their alias.
        source: The other rows.
        condition: The condition, which Spark can resolve.
        schema: The table's schema.
        partition_columns: The table's partition columns.
        alias: The alias of the table's rows.
    """
    if is_connect(target.sparkSession):
        return read_sent_join(target, source, condition, schema, alias)
    jvm = Jvm.of(target.sparkSession)
    parts = split_join(target, source, condition)
    predicates = [
        resolve_condition(
            target,
            jvm.column(part),
            schema=schema,
            partition_columns=partition_columns,
            alias=alias,
        ).predicate
        for part in parts.target
    ]
    sources = [jvm.column(part) for part in parts.source]
    return JoinReading(
        reduce(and_, predicates) if predicates else Predicate.TRUE,
        tuple(
            JoinKey(jvm.column(key.target), jvm.column(key.source), key.is_null_safe)
            for key in parts.keys
        ),
        reduce(and_, sources) if sources else None,
    )


def split_join(target: DataFrame, source: DataFrame, condition: Column | str) -> JoinParts:
    """Split a condition as Spark analyses it, in a classic session.

    Args:
        target: The table's rows, under their alias.
        source: The other rows.
        condition: The condition, which Spark can resolve.
    """
    column = sf.expr(condition) if isinstance(condition, str) else condition
    jvm = Jvm.of(target.sparkSession)
    sides = _Sides(_ids(attributes_of(target)), _ids(attributes_of(source)))
    pairs = target.crossJoin(source).filter(column)
    parts = JoinParts()
    for part in conjuncts(filter_condition(analyzed_plan(pairs))):
        if has_subquery(jvm, part):
            parts.others.append(part)  # what joins the rows asks it, once
        elif sides.is_target(part):
            parts.target.append(part)
        elif sides.is_source(part):
            parts.source.append(part)
        elif (key := _key_of(part, sides)) is not None:
            parts.keys.append(key)
        else:
            parts.others.append(part)
    return parts


@dataclass(frozen=True, slots=True)
class _Sides:
    """The ids of the attributes of either side."""

    target: frozenset[int]
    source: frozenset[int]

    def is_target(self, expression: Any) -> bool:
        found = _ids(expression.references().toSeq())
        return bool(found) and found <= self.target

    def is_source(self, expression: Any) -> bool:
        found = _ids(expression.references().toSeq())
        return bool(found) and found <= self.source


def _ids(attributes: Any) -> frozenset[int]:
    return frozenset(int(item.exprId().id()) for item in iterate(attributes))


def _key_of(expression: Any, sides: _Sides) -> JoinKey[Any] | None:
    kind = kind_of(expression)
    if kind not in _EQUALITIES:
        return None
    left, right = expression.left(), expression.right()
    if sides.is_target(right) and sides.is_source(left):
        left, right = right, left
    if not (sides.is_target(left) and sides.is_source(right)):
        return None
    return JoinKey(left, right, _EQUALITIES[kind])
