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

from optimist.core.forking import ForkSafeLock
from optimist.spark.session.jvm import Jvm, frame_of_rows, iterate

__all__ = ["ORDINAL", "PartitionRows", "internal_rows"]

ORDINAL = "__optimist_ordinal"


def internal_rows(jvm: Jvm, table: pa.Table, schema: StructType) -> Any:
    """The rows of an Arrow table as a Scala `Seq[InternalRow]`; values arrive bit for bit.

    Args:
        jvm: The session's handles.
        table: Columns in the order and of the types of `schema` (timestamps in microseconds).
        schema: Spark's types of the columns.
    """
    execution = frame_of_rows(jvm, table, schema)._jdf.queryExecution()
    plan = execution.analyzed()
    if plan.nodeName() == "LocalRelation":
        return plan.data()
    # There are more values than Spark keeps in a plan (`arrow.localRelationThreshold`): a job
    # returns them.
    return jvm.array_seq(execution.executedPlan().executeCollect())


class PartitionRows:
    """The partitions of one listing inside the JVM, made when first asked for; threads share it.

    Args:
        jvm: The session's handles.
        partitions: A row for each partition, in the order of their ordinals.
        schema: The partition columns as the relation names them.
    """

    def __init__(self, jvm: Jvm, partitions: pa.Table, schema: StructType) -> None:
        self.schema = schema
        self._jvm = jvm
        self._partitions = partitions
        self._numbered = StructType([*schema.fields, StructField(ORDINAL, IntegerType())])
        self._lock = ForkSafeLock()
        self._values: Any = None
        self._numbered_values: Any = None
        self._struct: Any = None

    def values(self) -> Any:
        """`Seq[InternalRow]` of the partition values; its width must be that of the schema."""
        with self._lock:
            if self._values is None:
                self._values = internal_rows(self._jvm, self._partitions, self.schema)
            return self._values

    def ordinals(self, filters: Any) -> list[int]:
        """The ordinals of the partitions on which all the filters (a Scala `Seq`) are true."""
        with self._lock:
            if self._numbered_values is None:
                numbers = pa.array(range(self._partitions.num_rows), pa.int32())
                numbered = self._partitions.append_column(ORDINAL, numbers)
                self._struct = self._jvm.struct(self._numbered)
                self._numbered_values = internal_rows(self._jvm, numbered, self._numbered)
        logical = self._jvm.catalyst.plans.logical
        expressions = list(iterate(filters))
        output = self._output(expressions)
        condition = reduce(self._jvm.catalyst.expressions.And, expressions)
        relation = logical.LocalRelation(
            self._jvm.seq(output), self._numbered_values, False, self._jvm.none
        )
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
        names = enumerate(self._numbered.names[:-1])
        columns = [seen.get(name.lower()) or fresh.apply(i) for i, name in names]
        return [*columns, fresh.last()]  # by its place: a partition column may have its name

    def _folded(self, plan: Any) -> Any:
        optimized = self._jvm.optimized(plan)
        if optimized.nodeName() == "LocalRelation":
            return optimized.data()
        # The optimizer may not evaluate the expression, or a conf switches the rule off: run the
        # plan.
        executed = self._jvm.dataset.ofRows(self._jvm.session, plan).queryExecution().executedPlan()
        return self._jvm.array_seq(executed.executeCollect())


def _first_column(rows: Any) -> list[int]:
    # One text for all rows: a round trip each would take longer than the pruning itself.
    text = rows.mkString(";")
    return [_ordinal(row.strip("[]")) for row in text.split(";")] if text else []


def _ordinal(row: str) -> int:
    """The value in a row's text, which for Spark's unsafe rows is hex words, null bits first."""
    null_bits, comma, word = row.partition(",")
    return int(word, 16) if comma else int(null_bits)
