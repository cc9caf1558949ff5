"""The condition that joins a table with other rows: what it says of the table's rows alone.

Its conjuncts over columns of the table skip files. Those that ask a column of the table to equal a
value of the other rows do so once the values are known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from optimist.core.predicates import Predicate
from optimist.core.schema.types import StructType
from optimist.spark.conditions.attributes import attributes_of
from optimist.spark.conditions.bound_condition import conjuncts, has_subquery
from optimist.spark.conditions.catalyst_expressions import kind_of
from optimist.spark.conditions.condition import resolve_condition
from optimist.spark.conditions.connect_join import read_sent_join
from optimist.spark.conditions.join_reading import JoinKey, JoinReading
from optimist.spark.session.jvm import Jvm, iterate
from optimist.spark.session.pyspark_versions import is_connect

__all__ = ["read_join"]


_EQUALITIES = {"EqualTo": False, "EqualNullSafe": True}


def read_join(
    own: DataFrame,
    other: DataFrame,
    condition: Column | str,
    *,
    schema: StructType,
    partition_columns: Sequence[str],
    alias: str,
) -> JoinReading:
    """Read a condition as Spark analysed it, or in Spark Connect as the client sends it.

    Args:
        own: The table's rows, under their alias.
        other: The other rows.
        condition: The condition, which Spark can resolve.
        schema: The table's schema.
        partition_columns: The table's partition columns.
        alias: The alias of the table's rows.
    """
    if is_connect(own.sparkSession):
        return read_sent_join(own, other, condition, schema, alias)
    column = sf.expr(condition) if isinstance(condition, str) else condition
    plan = own.crossJoin(other).filter(column)._jdf.queryExecution().analyzed()
    while plan.nodeName() != "Filter":
        plan = plan.child()
    jvm = Jvm.of(own.sparkSession)
    sides = _Sides(_ids(attributes_of(own)), _ids(attributes_of(other)))
    predicates, keys, others = [], [], []
    for part in conjuncts(plan.condition()):
        if has_subquery(jvm, part):
            continue  # it is asked once, by what joins the rows
        if sides.is_own(part):
            found = resolve_condition(
                own,
                jvm.column(part),
                schema=schema,
                partition_columns=partition_columns,
                alias=alias,
            )
            predicates.append(found.predicate)
        elif sides.is_other(part):
            others.append(jvm.column(part))
        elif (key := _key(jvm, part, sides)) is not None:
            keys.append(key)
    return JoinReading(
        reduce(and_, predicates) if predicates else Predicate.TRUE,
        tuple(keys),
        reduce(and_, others) if others else None,
    )


@dataclass(frozen=True, slots=True)
class _Sides:
    """The ids of the attributes of either side."""

    own: frozenset[int]
    other: frozenset[int]

    def is_own(self, expression: Any) -> bool:
        found = _ids(expression.references().toSeq())
        return bool(found) and found <= self.own

    def is_other(self, expression: Any) -> bool:
        found = _ids(expression.references().toSeq())
        return bool(found) and found <= self.other


def _ids(attributes: Any) -> frozenset[int]:
    return frozenset(int(item.exprId().id()) for item in iterate(attributes))


def _key(jvm: Jvm, expression: Any, sides: _Sides) -> JoinKey | None:
    kind = kind_of(expression)
    if kind not in _EQUALITIES:
        return None
    left, right = expression.left(), expression.right()
    if sides.is_own(right) and sides.is_other(left):
        left, right = right, left
    if not (sides.is_own(left) and sides.is_other(right)):
        return None
    return JoinKey(jvm.spark, jvm.column(left), jvm.column(right), _EQUALITIES[kind])
