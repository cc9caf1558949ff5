"""Partition filters, evaluated exactly, by Catalyst itself (spec 9.4).

Spark does not check partition filters again after the scan, so there is no room for "don't know".
The filters go back to Catalyst as a `Filter` over a `LocalRelation` of the partition values; the
optimizer folds it to the rows that survive, without a job.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

import pyarrow as pa
from pyspark.sql.types import IntegerType, StructField, StructType

from optimist.spark.session.jvm import Jvm, frame_of_rows, iterate

__all__ = ["ORDINAL", "PartitionPruner", "internal_rows"]

ORDINAL = "__optimist_ordinal"


def internal_rows(jvm: Jvm, table: pa.Table, schema: StructType) -> Any:
    """The rows of an Arrow table as a Scala `Seq[InternalRow]`; values go over bit by bit.

    Args:
        jvm: The session's handles.
        table: Columns in the order and of the types of `schema` (timestamps in microseconds).
        schema: Spark's types of the columns.
    """
    execution = frame_of_rows(jvm, table, schema)._jdf.queryExecution()
    plan = execution.analyzed()
    if plan.nodeName() == "LocalRelation":
        return plan.data()
    # More values than Spark keeps in a plan (`arrow.localRelationThreshold`): they come back by a
    # job.
    return jvm.array_seq(execution.executedPlan().executeCollect())


class PartitionPruner:
    """The partitions of one listing, as rows that Catalyst can filter."""

    def __init__(self, jvm: Jvm, schema: StructType, rows: Any) -> None:
        """Keep the rows.

        Args:
            jvm: The session's handles.
            schema: The partition columns, without the ordinal.
            rows: `Seq[InternalRow]` of the partition values with the ordinal as last column.
        """
        self._jvm = jvm
        self._names = schema.names
        self._struct = jvm.struct(StructType([*schema.fields, StructField(ORDINAL, IntegerType())]))
        self._rows = rows

    def ordinals(self, filters: Any) -> list[int]:
        """The ordinals of the partitions on which all the filters (a Scala `Seq`) are true."""
        logical = self._jvm.catalyst.plans.logical
        expressions = list(iterate(filters))
        output = self._output(expressions)
        condition = reduce(self._jvm.catalyst.expressions.And, expressions)
        relation = logical.LocalRelation(self._jvm.seq(output), self._rows, False, self._jvm.none)
        plan = logical.Project(self._jvm.seq(output[-1:]), logical.Filter(condition, relation))
        return _first_column(self._folded(plan))

    def _output(self, expressions: list[Any]) -> list[Any]:
        """The filters' own attributes (their ids matter); fresh ones for all other columns."""
        seen = {
            attribute.name().lower(): attribute
            for expression in expressions
            for attribute in iterate(expression.references())
        }
        types = self._jvm.module("org.apache.spark.sql.catalyst.types.DataTypeUtils$")
        fresh = types.toAttributes(self._struct)
        names = [*self._names, ORDINAL]
        return [seen.get(name.lower()) or fresh.apply(i) for i, name in enumerate(names)]

    def _folded(self, plan: Any) -> Any:
        optimized = self._jvm.optimized(plan)
        if optimized.nodeName() == "LocalRelation":
            return optimized.data()
        # An expression that the optimizer may not evaluate, or a conf that switches the rule off:
        # run it.
        executed = self._jvm.dataset.ofRows(self._jvm.session, plan).queryExecution().executedPlan()
        return self._jvm.array_seq(executed.executeCollect())


def _first_column(rows: Any) -> list[int]:
    # One text for all rows: a round trip each would take longer than the pruning itself.
    text = rows.mkString(";")
    return [_ordinal(row.strip("[]")) for row in text.split(";")] if text else []


def _ordinal(row: str) -> int:
    """An InternalRow's text: its values, or Spark's unsafe rows as hex words, null bits first."""
    null_bits, comma, word = row.partition(",")
    return int(word, 16) if comma else int(null_bits)
