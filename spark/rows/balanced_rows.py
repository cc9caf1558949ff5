"""Rows that are brought together before a write, so that files are few and large (spec 10.14).

Each writing task writes its own file to each partition of the table. So we ask Spark to rebalance
the rows: it shuffles them by partition, and once it knows the sizes of the pieces, it joins small
ones and cuts large ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame

from optimist.spark.rows.row_shape import column_of
from optimist.spark.session.jvm import Jvm, analyzed_plan
from optimist.spark.session.pyspark_versions import is_connect

__all__ = ["balanced_rows"]

_CONFS: Mapping[str, str] = {
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.adaptive.coalescePartitions.enabled": "true",
    # Else there would be at least one file per core, however small.
    "spark.sql.adaptive.coalescePartitions.parallelismFirst": "false",
    "spark.sql.adaptive.optimizeSkewsInRebalancePartitions.enabled": "true",
}
"""The conf that runs the plan well, which users of Spark Connect must set themselves."""


def balanced_rows(rows: DataFrame, partition_columns: Sequence[str], bin_bytes: int) -> DataFrame:
    """Return the same rows, with the rows of a partition next to each other.

    Args:
        rows: The rows.
        partition_columns: Columns of the rows by which the table is partitioned; without any, the
            rows are spread evenly.
        bin_bytes: The approximate bytes of shuffled rows per task. On Spark Connect the session's
            `spark.sql.adaptive.advisoryPartitionSizeInBytes` decides this.
    """
    columns = [column_of(name) for name in partition_columns]
    if is_connect(rows.sparkSession):
        return rows.hint("rebalance", *columns)
    # A hint can't give a size, and Spark ignores it if the session does not adapt plans.
    jvm, plan = Jvm.of(rows.sparkSession), analyzed_plan(rows)
    by = analyzed_plan(rows.select(*columns)).output() if columns else jvm.nil
    size = jvm.root.scala.jdk.javaapi.OptionConverters.toScala(
        jvm.root.java.util.OptionalLong.of(bin_bytes)
    )
    balanced = jvm.catalyst.plans.logical.RebalancePartitions(by, plan, jvm.none, size)
    return jvm.isolated(jvm.frame(balanced, rows._jdf.sparkSession()), _CONFS)
