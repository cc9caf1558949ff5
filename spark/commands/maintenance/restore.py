"""RESTORE, with the columns that Delta answers (spec 10.13); the driver does it without a job."""

from __future__ import annotations

from dataclasses import asdict

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import LongType, StructField, StructType

from optimist.core.maintenance.copies.restore import RestoreTo
from optimist.core.maintenance.copies.restore import restore as restore_table
from optimist.core.table.delta_log import DeltaLog
from optimist.spark.commands.reading.read import epoch_millis
from optimist.spark.rows.local_rows import answer_frame, numbers_frame

__all__ = ["RESTORE_SCHEMA", "restore"]

_COLUMNS = (
    "table_size_after_restore",
    "num_of_files_after_restore",
    "num_removed_files",
    "num_restored_files",
    "removed_files_size",
    "restored_files_size",
)
RESTORE_SCHEMA = StructType([StructField(name, LongType()) for name in _COLUMNS])


def restore(
    spark: SparkSession, log: DeltaLog, *, version: int | None = None, timestamp: str | None = None
) -> DataFrame:
    """Bring a table back to a version or a time.

    Args:
        spark: The session.
        log: The table.
        version: The version's number, or
        timestamp: a time in the session's zone.

    Returns:
        One row of numbers; none if the table is at that version.

    Raises:
        UsageError: The text is no time (kind `DELTA_TIMESTAMP_INVALID`).
        TableError, ConcurrentWriteException: See `core.maintenance.copies.restore`.
    """
    time_ms = None if timestamp is None else epoch_millis(spark, timestamp)
    to = RestoreTo(version, time_ms, timestamp)
    done = restore_table(log.start_transaction(log.snapshot()), to, log.snapshot)
    if done is None:
        none = pa.schema([(name, pa.int64()) for name in _COLUMNS]).empty_table()
        return answer_frame(spark, none, RESTORE_SCHEMA)
    numbers = asdict(done)
    return numbers_frame(spark, {name: numbers[name] for name in _COLUMNS})
