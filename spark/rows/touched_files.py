"""Which files hold rows that match a condition (spec 10.15)."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as st

from optimist.core.log.file_table import add_files
from optimist.core.protocol.actions import AddFile
from optimist.core.snapshot.snapshot import Snapshot
from optimist.spark.condition import Condition
from optimist.spark.native.frame import listing_of
from optimist.spark.rows.local_rows import local_frame
from optimist.spark.spark_schema import to_spark_schema

__all__ = ["TouchedFiles", "aliased", "matching_partitions"]

_ORDINAL = "__optimist_ordinal"


@dataclass(frozen=True, slots=True)
class TouchedFiles:
    """The candidates that hold matching rows.

    Attributes:
        table: Those files, as rows of `Snapshot.files`.
        num_matching: How many rows match, in all of them.
    """

    table: pa.Table
    num_matching: int

    @property
    def adds(self) -> tuple[AddFile, ...]:
        """The files as values."""
        return add_files(self.table)


def aliased(frame: DataFrame, alias: str | None) -> DataFrame:
    """The frame under the alias the user gave the table, so that conditions may name it."""
    return frame if alias is None else frame.alias(alias)


def matching_partitions(
    spark: SparkSession,
    snapshot: Snapshot,
    candidates: pa.Table,
    condition: Condition,
    *,
    alias: str | None,
) -> pa.Table:
    """The candidates whose partition values match, exactly: Spark itself evaluates them."""
    listing = listing_of(spark, snapshot, candidates)
    numbers = pa.array(range(listing.partitions.num_rows), pa.int32())
    values = listing.partitions.append_column(_ORDINAL, numbers)
    schema = to_spark_schema(snapshot.partition_schema).add(_ORDINAL, st.IntegerType())
    frame = aliased(local_frame(spark, values, schema), alias)
    matching = [row[_ORDINAL] for row in frame.where(condition.column).select(_ORDINAL).collect()]
    mask = pc.is_in(listing.ordinals, value_set=pa.array(matching, pa.int32()))
    return candidates.filter(mask)
