"""Rows brought together before they are written, so that files are few and large (spec 10.14).

Each task of a write writes a file of its own to each partition of the table. So Spark is asked to
rebalance the rows: it shuffles them by their partition, and once it knows how large the pieces are,
puts small ones together and cuts large ones.
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
    # Else there would be at least a file for each core, however small.
    "spark.sql.adaptive.coalescePartitions.parallelismFirst": "false",
    "spark.sql.adaptive.optimizeSkewsInRebalancePartitions.enabled": "true",
}
"""What a session must be told to run the plan well; on Spark Connect the user has to tell it."""


def balanced_rows(rows: DataFrame, partition_columns: Sequence[str], bin_bytes: int) -> DataFrame:
    """The same rows, those of a partition next to each other.

    Args:
        rows: The rows.
        partition_columns: Columns of the rows by which the table is partitioned; none to spread
            them evenly.
        bin_bytes: About how many bytes of shuffled rows a task gets. On Spark Connect the session's
            `spark.sql.adaptive.advisoryPartitionSizeInBytes` decides that.
    """
    columns = [column_of(name) for name in partition_columns]
    if is_connect(rows.sparkSession):
        return rows.hint("rebalance", *columns)
    # A hint would be passed over where the session does not adapt plans, and can't tell a size.
    jvm, plan = Jvm.of(rows.sparkSession), analyzed_plan(rows)
    by = analyzed_plan(rows.select(*columns)).output() if columns else jvm.nil
    size = jvm.root.scala.jdk.javaapi.OptionConverters.toScala(
        jvm.root.java.util.OptionalLong.of(bin_bytes)
    )
    balanced = jvm.catalyst.plans.logical.RebalancePartitions(by, plan, jvm.none, size)
    return jvm.isolated(jvm.frame(balanced, rows._jdf.sparkSession()), _CONFS)
