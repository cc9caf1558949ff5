"""Statements about partitions: SHOW PARTITIONS, with those that hold a file, as the log says them.

Delta knows no other: TRUNCATE TABLE ... PARTITION is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from optimist.core.data.partition_values import (
    partition_columns_of,
    partition_directory,
    partition_scalar,
    serialize_partition_value,
    value_for_text,
)
from optimist.core.errors import UsageError
from optimist.core.schema.types import StructType
from optimist.core.snapshot import Snapshot
from optimist.spark.drop_in.python_command import python_command
from optimist.spark.rows.local_rows import local_frame
from optimist.spark.session.conf import session_zone_name
from optimist.spark.session.jvm import iterate
from optimist.spark.spark_schema import to_spark_schema

__all__ = ["all_partitions", "show_partitions", "truncates_partition"]


def show_partitions(spark: SparkSession, snapshot: Snapshot, name: str, node: Any) -> Any:
    """A plan with a row for each partition, and a column for each of its values.

    Args:
        spark: The session.
        snapshot: The version.
        name: The table's, for messages.
        node: Spark's `ShowPartitions`, which may name values of some columns.

    Raises:
        UsageError: The table is not partitioned (kind
            `DELTA_SHOW_PARTITION_IN_NON_PARTITIONED_TABLE`), or has no partition column of a name
            that the statement gives (kind `DELTA_SHOW_PARTITION_IN_NON_PARTITIONED_COLUMN`).
    """
    wanted = {}
    if node.pattern().isDefined():
        wanted = {str(pair._1()): str(pair._2()) for pair in iterate(node.pattern().get().spec())}
    _ensure_partitioned(snapshot, name, wanted)
    schema = to_spark_schema(snapshot.partition_schema)

    def run(session: SparkSession) -> DataFrame:
        return _frame(session, snapshot, wanted)

    return python_command(spark, f"SHOW PARTITIONS {name}", schema, run)


def all_partitions(spark: SparkSession, snapshot: Snapshot, name: str) -> DataFrame:
    """The same rows of all partitions, as a frame.

    Args:
        spark: The session.
        snapshot: The version.
        name: The table's, for messages.

    Raises:
        UsageError: The table is not partitioned, see `show_partitions`.
    """
    _ensure_partitioned(snapshot, name, {})
    return _frame(spark, snapshot, {})


def _ensure_partitioned(snapshot: Snapshot, name: str, wanted: Mapping[str, str]) -> None:
    known = [field.name for field in snapshot.partition_schema]
    missing = [column for column in wanted if snapshot.partition_schema.find(column) is None]
    if missing or not known:
        raise UsageError(
            f"The table {name} has no partition column {missing[0] if missing else 'at all'}. "
            f"Nothing was read. Its partition columns are: {', '.join(known) or 'none'}.",
            kind="DELTA_SHOW_PARTITION_IN_NON_PARTITIONED_COLUMN"
            if known
            else "DELTA_SHOW_PARTITION_IN_NON_PARTITIONED_TABLE",
            columns=tuple(missing),
        )


def _frame(spark: SparkSession, snapshot: Snapshot, wanted: dict[str, str]) -> DataFrame:
    found = _partitions(snapshot, wanted, session_zone_name(spark))
    return local_frame(spark, found, to_spark_schema(snapshot.partition_schema))


def truncates_partition(name: str) -> UsageError:
    """The error for TRUNCATE TABLE ... PARTITION.

    Args:
        name: The table's, as SQL writes it.
    """
    return UsageError(
        f"TRUNCATE TABLE takes no PARTITION for a Delta table, such as {name}. Nothing was "
        "written. Delete the rows with DELETE FROM ... WHERE.",
        kind="DELTA_TRUNCATE_TABLE_PARTITION_NOT_SUPPORTED",
    )


def _partitions(snapshot: Snapshot, wanted: dict[str, str], zone: str) -> pa.Table:
    """The values of the partitions, in the order of their directories' names.

    Args:
        snapshot: The version.
        wanted: Texts of the values that some columns must have.
        zone: The time zone of times that were written without one.
    """
    fields = snapshot.partition_schema
    values = partition_columns_of(snapshot.files, fields, zone=zone)
    table = values.group_by(values.column_names).aggregate([])
    for column, text in wanted.items():
        field = fields.find(column)
        if field is not None:
            value = partition_scalar(text, field.data_type, zone=zone)
            held = table[field.name]
            table = table.filter(pc.equal(held, value) if value.is_valid else pc.is_null(held))
    directories = [_directory(table, row, fields) for row in range(table.num_rows)]
    places = sorted(range(table.num_rows), key=directories.__getitem__)
    return table.take(pa.array(places, pa.int64()))


def _directory(table: pa.Table, row: int, fields: StructType) -> str:
    return partition_directory(
        {
            field.name: serialize_partition_value(
                value_for_text(table[field.name][row]), field.data_type
            )
            for field in fields
        }
    )
