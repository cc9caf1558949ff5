"""The candidates of a command in partitions for which its condition is true (spec 10.15)."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession
from pyspark.sql import types as st

from optimist.core.snapshot import Snapshot
from optimist.spark.conditions.condition import Condition
from optimist.spark.native.frame import listing_of
from optimist.spark.rows.local_rows import local_frame
from optimist.spark.rows.row_shape import free_name
from optimist.spark.rows.touched_files import aliased
from optimist.spark.spark_schema import to_spark_schema

__all__ = ["matching_partitions"]

_ORDINAL = "__optimist_ordinal"


def matching_partitions(
    spark: SparkSession,
    snapshot: Snapshot,
    candidates: pa.Table,
    condition: Condition,
    *,
    alias: str | None,
) -> pa.Table:
    """The candidates whose partition values match; Spark itself evaluates the condition."""
    listing = listing_of(spark, snapshot, candidates)
    numbers = pa.array(range(listing.partitions.num_rows), pa.int32())
    ordinal = free_name(_ORDINAL, snapshot.schema.names)
    values = listing.partitions.append_column(ordinal, numbers)
    schema = to_spark_schema(snapshot.partition_schema).add(ordinal, st.IntegerType())
    frame = aliased(local_frame(spark, values, schema), alias)
    matching = [row[ordinal] for row in frame.where(condition.column).select(ordinal).collect()]
    mask = pc.is_in(listing.ordinals, value_set=pa.array(matching, pa.int32()))
    return candidates.filter(mask)
