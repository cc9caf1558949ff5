"""A command's candidate files in partitions for which its condition is true (spec 10.15)."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession
from pyspark.sql import types as st

from optimist.core.data.declared_text import declared_lengths
from optimist.core.schema.types import StructType
from optimist.core.snapshot import Snapshot
from optimist.spark.conditions.condition import Condition
from optimist.spark.native.frame import listing_of
from optimist.spark.rows.local_rows import local_frame
from optimist.spark.rows.row_shape import free_name
from optimist.spark.rows.touched_files import aliased
from optimist.spark.spark_schema import to_spark_schema

__all__ = ["matching_partitions"]

_PADDING = {
    "spark.sql.readSideCharPadding": "true",
    "spark.sql.legacy.charVarcharAsString": "false",
}
"""The confs of a session whose scans pad values, which are Spark's defaults."""
_ORDINAL = "__optimist_ordinal"


def matching_partitions(
    spark: SparkSession,
    snapshot: Snapshot,
    candidates: pa.Table,
    condition: Condition,
    *,
    alias: str | None,
) -> pa.Table:
    """Return the candidates whose partition values match, by Spark's own evaluation."""
    listing = listing_of(spark, snapshot, candidates)
    numbers = pa.array(range(listing.partitions.num_rows), pa.int32())
    ordinal = free_name(_ORDINAL, snapshot.schema.names)
    padded = _as_scanned(spark, listing.partitions, snapshot.partition_schema)
    values = padded.append_column(ordinal, numbers)
    schema = to_spark_schema(snapshot.partition_schema).add(ordinal, st.IntegerType())
    frame = aliased(local_frame(spark, values, schema), alias)
    matching = [row[ordinal] for row in frame.where(condition.column).select(ordinal).collect()]
    mask = pc.is_in(listing.ordinals, value_set=pa.array(matching, pa.int32()))
    return candidates.filter(mask)


def _as_scanned(spark: SparkSession, values: pa.Table, schema: StructType) -> pa.Table:
    """Pad values of `char(n)` columns as scans do, since other engines may not pad them.

    Spark pads a constant that it compares with such a column, and assumes that the column is
    padded.
    """
    confs = {key: spark.conf.get(key, default) for key, default in _PADDING.items()}
    if {key: str(value).lower() for key, value in confs.items()} != _PADDING:
        return values
    for at, item in enumerate(schema):
        declared = declared_lengths(item).get(())
        if declared is not None and declared.is_padded:
            column = pc.utf8_rpad(values[item.name].cast(pa.string()), declared.length)
            values = values.set_column(at, item.name, column)
    return values
