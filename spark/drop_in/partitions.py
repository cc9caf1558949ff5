"""SHOW PARTITIONS: the partitions that hold a file, as the log says them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StringType, StructField, StructType

from optimist.core.data.partition_values import (
    parse_partition_value,
    partition_columns_of,
    partition_directory,
    serialize_partition_value,
)
from optimist.core.errors import UsageError
from optimist.core.snapshot import Snapshot
from optimist.spark.drop_in.python_command import python_command
from optimist.spark.rows.local_rows import local_frame
from optimist.spark.session.conf import session_zone_name
from optimist.spark.session.jvm import iterate

__all__ = ["show_partitions"]

_SCHEMA = StructType([StructField("partition", StringType(), False)])


def show_partitions(spark: SparkSession, snapshot: Snapshot, name: str, node: Any) -> Any:
    """A plan with a row such as `year=2026/month=1` for each partition.

    Args:
        spark: The session.
        snapshot: The version.
        name: The table's, for messages.
        node: Spark's `ShowPartitions`, which may name values of some columns.

    Raises:
        UsageError: The table is not partitioned, or has no partition column of a name that the
            statement gives (kind `OPTIMIST_NO_SUCH_PARTITION_COLUMN`).
    """
    wanted = {}
    if node.pattern().isDefined():
        wanted = {str(pair._1()): str(pair._2()) for pair in iterate(node.pattern().get().spec())}
    known = [field.name for field in snapshot.partition_schema]
    missing = [column for column in wanted if snapshot.partition_schema.find(column) is None]
    if missing or not known:
        raise UsageError(
            f"The table {name} has no partition column {missing[0] if missing else 'at all'}. "
            f"Nothing was read. Its partition columns are: {', '.join(known) or 'none'}.",
            kind="OPTIMIST_NO_SUCH_PARTITION_COLUMN",
            columns=tuple(missing),
        )

    def run(session: SparkSession) -> DataFrame:
        table = pa.table({"partition": _directories(snapshot, wanted, session_zone_name(session))})
        return local_frame(session, table, _SCHEMA)

    return python_command(spark, f"SHOW PARTITIONS {name}", _SCHEMA, run)


def _directories(snapshot: Snapshot, wanted: dict[str, str], zone: str) -> pa.Array:
    """The names of the partitions, sorted, with the values as the session's zone shows them."""
    fields = snapshot.partition_schema
    values = partition_columns_of(snapshot.files, fields, zone=zone)
    rows = values.group_by(values.column_names).aggregate([]).to_pylist()
    for column, text in wanted.items():
        field = fields.find(column)
        if field is not None:
            value = parse_partition_value(text, field.data_type, zone=zone)
            rows = [row for row in rows if row[field.name] == value]
    names = {
        partition_directory(
            {
                field.name: serialize_partition_value(row[field.name], field.data_type)
                for field in fields
            }
        )
        for row in rows
    }
    return pa.array(sorted(names), pa.string())
