"""Statements about partitions: SHOW PARTITIONS, and the refusal of TRUNCATE ... PARTITION."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, SparkSession

from optimist.core.errors import UsageError
from optimist.core.snapshot import Snapshot
from optimist.core.statements.partitions import ensure_partitioned, partition_rows
from optimist.spark.drop_in.python_command import python_command
from optimist.spark.rows.local_rows import local_frame
from optimist.spark.session.conf import session_zone_name
from optimist.spark.session.jvm import iterate
from optimist.spark.spark_schema import to_spark_schema

__all__ = ["show_partitions", "truncates_partition"]


def show_partitions(spark: SparkSession, snapshot: Snapshot, name: str, node: Any) -> Any:
    """Return a plan with a row for each partition, and a column for each of its values.

    Args:
        spark: The session.
        snapshot: The version.
        name: The name of the table, for messages.
        node: Spark's `ShowPartitions`, which may name values of some columns.

    Raises:
        UsageError: The table is not partitioned (kind
            `DELTA_SHOW_PARTITION_IN_NON_PARTITIONED_TABLE`), or has no partition column of a name
            that the statement gives (kind `DELTA_SHOW_PARTITION_IN_NON_PARTITIONED_COLUMN`).
    """
    wanted = {}
    if node.pattern().isDefined():
        wanted = {str(pair._1()): str(pair._2()) for pair in iterate(node.pattern().get().spec())}
    ensure_partitioned(snapshot, name, wanted)
    schema = to_spark_schema(snapshot.partition_schema)

    def run(session: SparkSession) -> DataFrame:
        rows = partition_rows(snapshot, wanted, session_zone_name(session))
        return local_frame(session, rows, schema)

    return python_command(spark, f"SHOW PARTITIONS {name}", schema, run)


def truncates_partition(name: str) -> UsageError:
    """Return the error for TRUNCATE TABLE ... PARTITION.

    Args:
        name: The table's, as SQL writes it.
    """
    return UsageError(
        f"TRUNCATE TABLE takes no PARTITION for a Delta table, such as {name}. Nothing was "
        "written. Delete the rows with DELETE FROM ... WHERE.",
        kind="DELTA_TRUNCATE_TABLE_PARTITION_NOT_SUPPORTED",
    )
