"""Exact evaluation of partition filters by Catalyst itself (spec 9.4).

Spark does not check partition filters again after the scan, so each answer must be exact. Catalyst
interprets the filters over the partition values, as it does for the partitions of its own file
tables. No plan is made, no code is compiled and no job is run.
"""

from __future__ import annotations

from functools import cached_property, reduce
from typing import Any

import pyarrow as pa
from pyspark.sql.types import StructType

from optimist.core.forking import ForkSafeLock
from optimist.spark.native.scala_functions import row_test
from optimist.spark.session.jvm import Jvm, frame_of_rows, iterate

__all__ = ["PartitionRows", "internal_rows"]

_EXPRESSIONS = "org.apache.spark.sql.catalyst.expressions"


def internal_rows(jvm: Jvm, table: pa.Table, schema: StructType) -> Any:
    """Return the rows of an Arrow table as a Scala `Seq[InternalRow]`, bit for bit.

    Args:
        jvm: The session's handles.
        table: Columns in the order and of the types of `schema` (timestamps in microseconds).
        schema: Spark's types of the columns.
    """
    execution = frame_of_rows(jvm, table, schema)._jdf.queryExecution()
    plan = execution.analyzed()
    if plan.nodeName() == "LocalRelation":
        return plan.data()
    # Spark keeps only so many values in a plan (`arrow.localRelationThreshold`): a job returns
    # more.
    return jvm.array_seq(execution.executedPlan().executeCollect())


class PartitionRows:
    """The partitions of one listing inside the JVM, made at the first use and shared by threads.

    Args:
        jvm: The session's handles.
        partitions: A row for each partition, in the order of their ordinals.
        schema: The partition columns as the relation names them.
    """

    def __init__(self, jvm: Jvm, partitions: pa.Table, schema: StructType) -> None:
        self.schema = schema
        self._jvm = jvm
        self._partitions = partitions
        self._lock = ForkSafeLock()
        self._values: Any = None

    def values(self) -> Any:
        """Return a `Seq[InternalRow]` of the partition values.

        Its width must be that of the schema.
        """
        with self._lock:
            if self._values is None:
                rows = internal_rows(self._jvm, self._partitions, self.schema)
                self._values = rows.toIndexedSeq()  # rows are looked up by their ordinals
            return self._values

    def ordinals(self, filters: Any) -> pa.Array:
        """Return the ordinals of the partitions for which all filters (a Scala `Seq`) are true."""
        values = self.values()
        passes = row_test(self._jvm, self._compile_filters(list(iterate(filters))))
        # One text for all ordinals: a round trip for each would take longer than the pruning.
        text = values.indices().filter(values.andThen(passes)).mkString(";")
        return pa.array(text.split(";") if text else [], pa.string()).cast(pa.int32())

    def _compile_filters(self, filters: list[Any]) -> Any:
        condition = reduce(self._jvm.catalyst.expressions.And, filters)
        columns = self._jvm.module(f"{_EXPRESSIONS}.package$").AttributeSeq(
            self._attributes(filters)
        )
        binding = self._jvm.module(f"{_EXPRESSIONS}.BindReferences$")
        bound = binding.bindReference(condition, columns, False)
        return self._jvm.module(f"{_EXPRESSIONS}.Predicate$").createInterpreted(bound)

    def _attributes(self, filters: list[Any]) -> Any:
        """Return the filters' own attributes, by their ids, and new ones for other columns."""
        seen = {
            attribute.name().lower(): attribute
            for item in filters
            for attribute in iterate(item.references())
        }
        names = enumerate(self.schema.names)
        return self._jvm.seq(
            seen.get(name.lower()) or self._unused_attributes.apply(at) for at, name in names
        )

    @cached_property
    def _unused_attributes(self) -> Any:
        """An attribute for each column, with ids that no query has."""
        types = self._jvm.module("org.apache.spark.sql.catalyst.types.DataTypeUtils$")
        return types.toAttributes(self._jvm.struct(self.schema))
