"""Which files hold rows that match a condition, found by one pass of Spark (spec 10.15)."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql import types as st

from optimist.core.actions import AddFile
from optimist.core.errors import TableError
from optimist.core.log.file_table import add_files, canonical_paths
from optimist.core.snapshot import Snapshot
from optimist.spark.condition import Condition
from optimist.spark.jvm import Jvm, local_frame
from optimist.spark.scan.frame import listing_of, scan_frame
from optimist.spark.spark_schema import to_spark_schema

__all__ = ["TouchedFiles", "aliased", "matching_partitions", "touched_files"]

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


def touched_files(
    spark: SparkSession,
    snapshot: Snapshot,
    candidates: pa.Table,
    condition: Condition,
    *,
    alias: str | None,
) -> TouchedFiles:
    """Count the matching rows of each candidate; rows stay on the executors."""
    if candidates.num_rows == 0:
        return TouchedFiles(candidates, 0)
    frame = aliased(scan_frame(spark, snapshot, candidates), alias)
    counts = (
        frame.where(condition.column)
        .groupBy(sf.col("_metadata.file_path").alias("path"))
        .agg(sf.count(sf.lit(1)).alias("rows"))
        .toArrow()
    )
    found = canonical_paths(counts["path"].cast(pa.string())).combine_chunks()
    full_paths = listing_of(spark, snapshot, candidates).paths
    # Hadoop spells local URIs with one slash or with three.
    paths = pc.replace_substring_regex(full_paths, "^file:/+", "/")
    touched = candidates.filter(pc.is_in(paths, value_set=found))
    if touched.num_rows != counts.num_rows:
        raise TableError(
            f"Spark found matching rows in {counts.num_rows} files, and {touched.num_rows} of them "
            "are known in the log. Nothing was written. Give the table's path in its plain form.",
            kind="OPTIMIST_UNKNOWN_FILE_PATHS",
            path=snapshot.table_path,
        )
    return TouchedFiles(touched, pc.sum(counts["rows"], min_count=0).as_py())


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
    frame = aliased(local_frame(Jvm.of(spark), values, schema), alias)
    matching = [row[_ORDINAL] for row in frame.where(condition.column).select(_ORDINAL).collect()]
    mask = pc.is_in(listing.ordinals, value_set=pa.array(matching, pa.int32()))
    return candidates.filter(mask)
