"""VACUUM, with the rows that Delta answers (spec 10.12); the driver does it without a job."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StringType, StructField, StructType

from optimist.core.paths import scheme_of, with_file_scheme
from optimist.core.sql import SqlText, TableName
from optimist.core.sql.statements import Vacuum
from optimist.core.table.delta_log import DeltaLog
from optimist.spark.rows.local_rows import local_frame

__all__ = ["VACUUM_SCHEMA", "vacuum"]

VACUUM_SCHEMA = StructType([StructField("path", StringType())])


def vacuum(spark: SparkSession, log: DeltaLog, command: Vacuum) -> DataFrame:
    """Run the statement.

    Returns:
        The table's path; of a dry run the paths of the files that would be deleted.

    Raises:
        UsageError, TableError, StorageError: See `DeltaLog.vacuum`.
    """
    hours = command.retain_hours
    done = log.vacuum(
        float(hours) if isinstance(hours, Decimal) else hours,
        dry_run=command.is_dry_run,
        mode=command.mode,
        inventory=None if command.inventory is None else _rows(spark, command.inventory),
    )
    paths = done.paths if command.is_dry_run else pa.array([log.table_path], pa.string())
    if scheme_of(log.table_path) == "":
        paths = pa.array(list(map(with_file_scheme, paths.to_pylist())), pa.string())
    return local_frame(spark, pa.table({"path": paths}), VACUUM_SCHEMA)


def _rows(spark: SparkSession, inventory: TableName | SqlText) -> pa.Table:
    if isinstance(inventory, SqlText):
        return spark.sql(inventory.sql).toArrow()
    if inventory.path is not None:
        return spark.read.format("delta").load(inventory.path).toArrow()
    return spark.table(str(inventory)).toArrow()
